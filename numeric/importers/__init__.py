"""Conversion of Hugging Face, TransformerLens and torch.nn models to otimes models."""
