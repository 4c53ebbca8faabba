"""The reference forward pass in float64, its error estimates, and comparison with it."""
