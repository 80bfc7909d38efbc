"""Compiled transformers in other people's forms: torch, a stock encoder, TransformerLens, ONNX."""
