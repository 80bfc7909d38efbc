"""Load datasets and items.

>>> load("nowhere")
Traceback (most recent call last):
locum.errors.InputError: expected a dataset, or the folder of an item, got nowhere
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from locum.errors import InputError
from locum.experiments.dataset.index import INDEX, read_index
from locum.experiments.dataset.scoring import Truth
from locum.files import read_json, read_text
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer import load as load_model
from locum.networks.transformer.circuit import Circuit

#: Maximum size in bytes of a text or JSON file of an item that this module reads.
_LIMIT = 2**26


@dataclass(frozen=True)
class Item:
    """An item of a dataset: a network with its program and circuit; files are read on demand."""

    folder: Path
    #: Row of the index; empty if the item was not loaded through an index.
    row: dict[str, Any]

    @cached_property
    def program(self) -> str:
        """Program of the network, as RASP text."""
        return read_text(self.folder / "program.rasp", _LIMIT)

    @cached_property
    def circuit(self) -> Circuit:
        """True circuit of the network."""
        return Circuit.load(self.folder / "circuit.json")

    @cached_property
    def truth(self) -> Truth:
        """True circuit at the level of parts: embeddings, heads, feed-forwards and the output."""
        return Truth(self.circuit.data())

    @cached_property
    def model(self) -> CompiledTransformer:
        """Network with its circuit, hooks and exports."""
        model = load_model(self.folder)
        report = {**model.config.report, "circuit": self.circuit.data()}
        return CompiledTransformer(replace(model.config, report=report), model.weights)

    @cached_property
    def _examples(self) -> dict[str, Any]:
        examples: dict[str, Any] = read_json(self.folder / "examples.json", _LIMIT)
        return examples

    @property
    def inputs(self) -> list[list[Any]]:
        """Example inputs of the item, as lists of tokens."""
        return list(self._examples["inputs"])

    @property
    def outputs(self) -> list[list[Any]]:
        """Output of the program for each example input."""
        return list(self._examples["outputs"])

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Counterfactual pairs of inputs."""
        return list(self._examples["pairs"])

    @cached_property
    def certificate(self) -> dict[str, Any]:
        """Certificate that states on which inputs the network and the program agree."""
        certificate: dict[str, Any] = read_json(self.folder / "certificate.json", _LIMIT)
        return certificate


class Dataset(Sequence[Item]):
    """The items of a dataset in the order of the index."""

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
        """Return the items whose columns have the given values, such as ``where(layers=2)``."""
        for name in columns:
            if self.rows and name not in self.rows[0]:
                raise InputError(
                    f"expected a column of the index ({', '.join(self.rows[0])}), got {name!r}"
                )
        rows = [row for row in self.rows if all(row[name] == columns[name] for name in columns)]
        return Dataset(self.folder, rows)


def load_item(folder: str | Path) -> Item:
    """Return the item in a folder."""
    place = Path(folder)
    if not (place / "config.json").is_file():
        raise InputError(f"expected the folder of an item, got {folder}")
    return Item(place, {})


def load(folder: str | Path) -> Any:
    """Return the :class:`Dataset` in a folder, or the :class:`Item` if the folder is the folder of an
    item.
    """
    place = Path(folder)
    if (place / INDEX).is_file():
        return Dataset(place, read_index(place))
    if (place / "config.json").is_file():
        return load_item(place)
    raise InputError(f"expected a dataset, or the folder of an item, got {folder}")
