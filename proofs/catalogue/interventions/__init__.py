"""Chapter 9: what happens when activations are replaced, and the parts that matter."""
