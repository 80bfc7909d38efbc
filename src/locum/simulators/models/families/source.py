"""Where a model comes from, a folder or a live object of transformers: its config and its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from locum.errors import InputError
from locum.execution.arrays import Array, is_tensor
from locum.simulators.matrices import require_readable
from locum.simulators.models.families.fields import Field, read_fields
from locum.simulators.models.families.stage import Stage


@dataclass(frozen=True)
class Source:
    """A config and the tensors that belong to it."""

    #: What it is called in messages: the folder, or the class of the object.
    where: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Array] = field(repr=False)
    #: The class of the model, which says what there is behind the last states.
    architecture: str
    #: The folder, where it is one: it may have a tokenizer.
    folder: Path | None = None
    #: How heads are parametrised: factored, or paper.
    form: str = "factored"
    #: Of a live model, its generation config.
    generation: Mapping[str, Any] | None = None
    #: Settings of generation that its config has, where the library does not want them.
    misplaced: Mapping[str, Any] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """Return the model_type of the config."""
        return str(self.config.get("model_type"))

    def fields(self, table: Mapping[str, Field]) -> dict[str, Any]:
        """Read the config by the table of a family."""
        if self.config.get("auto_map"):
            raise InputError(f"{self.where}: auto_map names code of the model's own, not simulated")
        if self.config.get("quantization_config"):
            raise InputError(f"{self.where}: quantization_config: quantised weights are not simulated")
        return read_fields(self.config, table, self.where, self.family)

    def has(self, name: str) -> bool:
        """Tell whether there is a tensor of this name."""
        return name in self.tensors

    def tensor(self, name: str, *shape: int | None) -> Array:
        """Return a tensor of finite floating-point numbers, of this shape (None: any size)."""
        older = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        older = older.replace("LayerNorm.bias", "LayerNorm.beta")
        tensor = self.tensors.get(name, self.tensors.get(older))
        if tensor is None:
            raise InputError(f"{self.where}: the weights lack {name}, which a {self.family} has")
        if len(shape) != tensor.ndim or any(
            size not in (None, own) for size, own in zip(shape, tensor.shape, strict=True)
        ):
            expected = "×".join("·" if size is None else str(size) for size in shape)
            own = "×".join(map(str, tensor.shape))
            raise InputError(f"{self.where}: expected {name} as {expected}, got {own}")
        if is_tensor(tensor):
            require_readable(tensor, name)
            floating, finite = tensor.is_floating_point(), bool(tensor.isfinite().all())
        else:
            floating, finite = tensor.dtype.kind == "f", bool(np.isfinite(tensor).all())
        if not floating:
            raise InputError(f"{self.where}: expected floating-point numbers in {name}")
        if not finite:
            raise InputError(f"{self.where}: {name} has numbers that are not finite")
        return tensor

    def shared(self, name: str, table: Array, tied: bool = True) -> Array:
        """Return a table that is another one if tied; files leave it out then, or repeat it."""
        if self.folder is not None and tied and not self.has(name):
            return table
        own = self.tensor(name, *table.shape)
        if self.folder is not None and tied and not np.array_equal(own, table):
            raise InputError(
                f"{self.where}: expected {name} to be the table of words (tie_word_embeddings), but "
                "the file has another: versions of the library differ in which they take"
            )
        return own

    def linear(self, name: str, inputs: int, outputs: int, bias: bool = True) -> tuple[Array, Any]:
        """Return W (inputs×outputs) and b of a Linear, whose weight lies the other way round."""
        weights = self.tensor(f"{name}.weight", outputs, inputs).T
        return weights, self.tensor(f"{name}.bias", outputs) if bias else None

    def norm(self, name: str, columns: int) -> tuple[Array, Array]:
        """Return gain and bias of a LayerNorm."""
        return self.tensor(f"{name}.weight", columns), self.tensor(f"{name}.bias", columns)

    def layer_norm(self, stage: Stage, name: str, columns: int, epsilon: float) -> Stage:
        """Add a LayerNorm to a stage."""
        return stage.norm("layer_norm", epsilon, *self.norm(name, columns))
