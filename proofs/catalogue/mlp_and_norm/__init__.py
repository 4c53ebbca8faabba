"""Chapter 4: feed-forward layers, norms and biases."""
