"""Sums of tensor diagrams: the data of a normal form, canonical labels, matching, contraction."""
