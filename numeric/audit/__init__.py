"""Does this code compute the transformer that it claims to? Foreign code against the reference.

evaluate    the reference operation by operation, from whatever was shown
judge       each place on the implementation's own inputs, within a bound of rounding
stream      the residual stream in other coordinates: centred, rotated
readings    other ways of saying the same, found and confirmed
mistakes    the known mistakes, each written once
diagnose    which of them makes just what was shown
walk, front the order of these, and the report
"""
