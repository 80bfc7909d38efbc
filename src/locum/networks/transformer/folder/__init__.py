"""Transformers as folders (config.json, model.safetensors), written whole and read without trust."""
