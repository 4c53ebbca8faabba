"""Does this code compute the transformer that it claims to? Foreign code against the reference.

capture     run the implementation and record its activations
judge       compare each activation with the reference, on the implementation's own inputs
diagnose    find the known mistake that explains a wrong activation
report      the findings in sentences, as JSON, as a page

reference   the forward pass, one operation at a time, with error bounds; comparisons with it
precision   what lower and mixed precision do to a correct implementation
mistakes    the known mistakes, each a change of some operations
symmetries  rewrites that leave the logits unchanged: folded norms, rotations, permutations
diagnosis   which mistake explains a wrong activation; fits where none does
analyses    the same for analyses of activations and weights
"""
