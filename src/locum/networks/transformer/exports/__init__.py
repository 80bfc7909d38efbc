"""Export compiled transformers to PyTorch modules and TransformerLens."""
