"""Try every model type of the transformers library that can be built small on U."""
