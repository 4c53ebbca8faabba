"""Audits of functions that analyse a model: circuits, attributions, logit lens, path terms."""
