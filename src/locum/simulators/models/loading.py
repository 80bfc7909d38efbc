"""A checkpoint as T's, one for each layer, in the kind of array that it is to be run in."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array, like
from locum.simulators.models.checkpoint import Checkpoint, read_checkpoint
from locum.simulators.models.forms import from_arrays
from locum.simulators.modules.encoder import Encoder


class LoadedModel:
    """A checkpoint as T's, in one kind of array, ready to be run by U."""

    def __init__(
        self,
        path: str | Path | Checkpoint,
        *,
        form: str = "factored",
        dtype: str | None = None,
        backend: str | None = None,
        layers: int | None = None,
    ) -> None:
        """Take ``path``: a folder, or "minilm"; ``form``: factored or paper, as heads are written.

        ``backend`` is torch (where that is installed, unless said) or numpy; ``dtype`` float32 or
        float64 (NumPy: float64 only). ``layers``: only so many of the first.
        """
        self.checkpoint = path if isinstance(path, Checkpoint) else read_checkpoint(path)
        self.form = form
        self.kind = kind_of_array(dtype, backend)
        count = self.checkpoint.layers
        self.count = count if layers is None else layers
        if type(self.count) is not int or not 1 <= self.count <= count:
            raise InputError(f"the model has {count} layers: expected 1 to {count}, got {self.count!r}")
        self.embeddings = {
            name: like(np.atleast_2d(tensor), self.kind)
            for name, tensor in self.checkpoint.embeddings.items()
        }
        self.layers = [self._layer(number) for number in range(self.count)]

    def _layer(self, number: int) -> Encoder:
        checkpoint = self.checkpoint
        tensors = {name: like(t, self.kind) for name, t in checkpoint.layer(number).items()}
        T = from_arrays(
            tensors,
            checkpoint.heads,
            activation=checkpoint.activation,
            epsilon=checkpoint.epsilon,
            mask=np.ones(1),  # one for each key comes with every run
            form=self.form,
        )
        assert isinstance(T, Encoder)
        return T


def kind_of_array(dtype: str | None, backend: str | None) -> Array:
    """Return an empty array of the kind that a model is to be run in."""
    if backend not in (None, "torch", "numpy"):
        raise InputError(f"expected the backend torch or numpy, got {backend!r}")
    if dtype not in (None, "float32", "float64"):
        raise InputError(f"expected the dtype float32 or float64, got {dtype!r}")
    if backend != "numpy":
        try:
            import torch
        except ImportError:
            if backend == "torch":
                raise InputError("torch is not installed: pip install 'locum[torch]'") from None
        else:
            return torch.zeros(0, dtype=getattr(torch, dtype or "float32"))
    if dtype == "float32":
        raise InputError("float32 is run by torch (pip install 'locum[torch]'); NumPy runs float64")
    return np.zeros(0)
