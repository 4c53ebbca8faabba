"""From a SymPy expression to a sum of tensor diagrams."""
