"""Load datasets and items: in plain Python, as a torch ``Dataset``, in TransformerLens.

>>> load("nowhere")
Traceback (most recent call last):
locum.errors.InputError: expected a dataset, or the folder of an item, got nowhere
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from locum.errors import InputError
from locum.experiments.dataset.index import INDEX, read_index
from locum.experiments.dataset.parts import Truth
from locum.experiments.dataset.verify import Network, load_network
from locum.files import read_json, read_text
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer import load as load_model
from locum.networks.transformer.circuit import Circuit
from locum.networks.transformer.weights import Array

#: The most bytes of a file of an item that is read here.
_LIMIT = 2**26


@dataclass(frozen=True)
class Item:
    """An item of a dataset; everything is read when it is asked for."""

    folder: Path
    #: Its row in the index, where it was loaded by one.
    row: dict[str, Any]

    @cached_property
    def program(self) -> str:
        """The program, as RASP text."""
        return read_text(self.folder / "program.rasp", _LIMIT)

    @cached_property
    def circuit(self) -> Circuit:
        """The label."""
        return Circuit.load(self.folder / "circuit.json")

    @cached_property
    def truth(self) -> Truth:
        """The label at the level of parts."""
        return Truth(self.circuit)

    @cached_property
    def directions(self) -> Array:
        """The direction of each slot of the circuit, [slot, d_model]."""
        directions: Array = load_file(str(self.folder / "slots.safetensors"))["directions"]
        return directions

    @cached_property
    def network(self) -> Network:
        """The network in NumPy, whatever its tier."""
        return load_network(self.folder)

    @cached_property
    def model(self) -> CompiledTransformer:
        """The network with hooks and exports; there is none for networks with norms."""
        if self.network.config.get("norm") is not None:
            raise InputError(
                f"{self.folder.name} has layer norms, which a CompiledTransformer has not; try .network"
            )
        model = load_model(self.folder)
        report = {**model.config.report, "circuit": self.circuit.data()}
        return CompiledTransformer(replaced(model.config, report=report), model.weights)

    @cached_property
    def _examples(self) -> dict[str, Any]:
        examples: dict[str, Any] = read_json(self.folder / "examples.json", _LIMIT)
        return examples

    @property
    def inputs(self) -> list[list[Any]]:
        """Inputs, as lists of tokens."""
        return list(self._examples["inputs"])

    @property
    def outputs(self) -> list[list[Any]]:
        """What the program says to each input."""
        return list(self._examples["outputs"])

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Counterfactual pairs."""
        return list(self._examples["pairs"])

    @cached_property
    def certificate(self) -> dict[str, Any]:
        """On what network and program were found to agree."""
        certificate: dict[str, Any] = read_json(self.folder / "certificate.json", _LIMIT)
        return certificate

    def to_transformer_lens(self) -> Any:
        """Return it in TransformerLens (softmax heads, no norms)."""
        return self.model.to_transformer_lens()


class Dataset(Sequence[Item]):
    """The items of a dataset, in the order of the index; a torch ``DataLoader`` takes it as it is."""

    def __init__(self, folder: Path, rows: list[dict[str, Any]]) -> None:
        self.folder, self.rows = folder, rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return Dataset(self.folder, self.rows[place])
        row = self.rows[place]
        return Item(self.folder / row["folder"], row)

    def __iter__(self) -> Iterator[Item]:
        return (self[place] for place in range(len(self)))

    def where(self, **columns: Any) -> Dataset:
        """Return the items whose columns have these values: ``where(tier="plain", layers=2)``."""
        for name in columns:
            if self.rows and name not in self.rows[0]:
                raise InputError(
                    f"expected a column of the index ({', '.join(self.rows[0])}), got {name!r}"
                )
        rows = [row for row in self.rows if all(row[name] == columns[name] for name in columns)]
        return Dataset(self.folder, rows)

    def to_torch(self) -> Any:
        """Return a ``torch.utils.data.Dataset`` of (tensors by name, label) pairs.

        A label has the true edges and heads, by their names.
        """
        from locum.experiments.dataset.torch_data import TorchCircuits

        return TorchCircuits(self)


def load_item(folder: str | Path) -> Item:
    """Return the item of a folder."""
    place = Path(folder)
    if not (place / "config.json").is_file():
        raise InputError(f"expected the folder of an item, got {folder}")
    return Item(place, {})


def load(folder: str | Path) -> Any:
    """Return the :class:`Dataset` of a folder, or the :class:`Item` of an item's folder."""
    place = Path(folder)
    if (place / INDEX).is_file():
        return Dataset(place, read_index(place))
    if (place / "config.json").is_file():
        return load_item(place)
    raise InputError(f"expected a dataset, or the folder of an item, got {folder}")
