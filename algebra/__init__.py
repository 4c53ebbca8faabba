"""Statements about transformers as equations of matrices, and whether they hold for every size.

From the bottom up: `language` (expressions, shapes, printing), `diagrams` (normal forms as sums of
tensor diagrams), `reading` (expression to normal form), `draw`, `normal_form`, `evaluate` (exact
and floating-point values), `decide` (proofs and refutations), `rules` (named equations), `facts`
(properties of matrices), `paths` (expansion into paths), `explain` (chains of named steps),
`verdict` (`decide`, with counterexample, steps and certificate), `chain` (steps of an author).
"""
