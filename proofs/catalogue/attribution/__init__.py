"""Chapter 8: which part of a pass a prediction is owed to."""
