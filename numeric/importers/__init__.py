"""Models of other libraries as otimes models: Hugging Face, TransformerLens, torch modules."""
