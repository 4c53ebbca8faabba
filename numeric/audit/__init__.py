"""Comparison of another implementation of a transformer with the reference forward pass.

capture     run the implementation and record its activations
judge       compare each activation with the reference, on the implementation's own inputs
diagnose    find the known mistake that explains a wrong activation
report      the findings as text, JSON or HTML

reference   the forward pass, one operation at a time, with error bounds; comparisons with it
precision   the effects of lower and mixed precision on a correct implementation
mistakes    the known mistakes, each a change of some operations
symmetries  rewrites that leave the logits unchanged: folded norms, rotations, permutations
diagnosis   which mistake explains a wrong activation; otherwise a fitted relation
analyses    audits of analyses of activations and weights
"""
