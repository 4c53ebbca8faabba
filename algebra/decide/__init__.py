"""Whether an equation holds for every size: proofs, counterexamples, certificates."""
