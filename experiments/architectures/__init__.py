"""Architectures of transformers on U: tries every model type that can be built small."""
