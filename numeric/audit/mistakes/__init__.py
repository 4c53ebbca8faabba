"""Known mistakes of implementations, each as a change to the reference forward pass."""
