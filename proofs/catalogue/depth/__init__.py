"""Chapter 6: what layers make of each other."""
