"""``torch.compile(model, backend="locum")``: PyTorch programs as RASP programs."""
