"""Derivations: the steps that lead from one side of an equation to the other."""
