"""Tensor diagrams as SVG pictures."""
