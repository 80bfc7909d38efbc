"""Run small models of the types in the transformers library on U."""
