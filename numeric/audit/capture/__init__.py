"""Running the audited model and recording its activations."""
