"""Save transformers in folders with config.json and model.safetensors, and load them."""
