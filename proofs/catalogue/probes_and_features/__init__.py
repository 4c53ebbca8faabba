"""Chapter 10: what activations hold, and directions that are read from them or written to them."""
