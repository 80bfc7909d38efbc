"""Export compiled transformers to PyTorch modules, stock PyTorch layers, TransformerLens and ONNX."""
