"""Sparse dictionaries of activations: autoencoders, transcoders, their measures and training."""
