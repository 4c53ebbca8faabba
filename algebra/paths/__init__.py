"""Residual networks as sums over paths."""
