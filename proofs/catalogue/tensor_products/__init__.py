"""Chapter 1: what ⊗ is, indices and conventions."""
