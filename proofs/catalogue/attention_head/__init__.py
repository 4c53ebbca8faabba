"""Chapter 3: softmax, QK, OV, and heads as sums."""
