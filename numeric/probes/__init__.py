"""Probes and erasure: what can be read linearly off activations, and how to remove it.

- `data`: checked activations and labels;
- `probe`: ridge and logistic probes, control tasks, selectivity, description length;
- `erasure`: projections, LEACE;
- `steering`: a vector added to activations in a pass.
"""
