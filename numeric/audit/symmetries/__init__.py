"""Rewrites that leave the logits unchanged: other conventions for the same model."""
