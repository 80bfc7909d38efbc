"""Folders: a round trip is bit for bit, a save is whole or nothing, and bad folders are refused."""

from __future__ import annotations

import json
import os
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import locum
from locum.errors import InputError, LocumError
from locum.networks.transformer import CompiledTransformer, load
from locum.networks.transformer.folder.description import describe
from tests.old.networks.random_models import random_inputs, random_model


def same(a: CompiledTransformer, b: CompiledTransformer) -> bool:
    return describe(a.config, a.weights) == describe(b.config, b.weights) and all(
        name == other and x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        for (name, x), (other, y) in zip(a.weights.named(), b.weights.named(), strict=True)
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_round_trip_is_bit_for_bit(seed: int, tmp_path: Path) -> None:
    model = random_model(seed)
    model.save(tmp_path / "model")
    back = locum.load(tmp_path / "model")
    assert same(model, back)
    assert back.config == model.config
    assert back.hash == model.hash
    assert back.program is model.program
    inputs = random_inputs(model, seed)
    assert back(inputs) == model(inputs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    first = [(tmp_path / "model" / name).read_bytes() for name in ("config.json", "model.safetensors")]
    back.save(tmp_path / "model")
    again = [(tmp_path / "model" / name).read_bytes() for name in ("config.json", "model.safetensors")]
    assert first == again


def test_what_was_loaded_is_as_good_as_new(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    model = random_model(8, heads=["softmax"], feeds=["gelu"], layers=2, dtype="float64")
    model.save(tmp_path / "model")
    back = load(tmp_path / "model")
    inputs = torch.tensor(model.encode(random_inputs(model, 8)))
    assert torch.equal(back.to_torch()(inputs), model.to_torch()(inputs))
    back.weights.b_U[0] += 1
    assert back.hash != model.hash


def test_a_report_of_arrays_is_written_as_lists(tmp_path: Path) -> None:
    model = random_model(0)
    model.config.report.update(bounds=np.array([1.0, np.inf]), units=np.int64(3), pair=(1, None))
    model.save(tmp_path / "model")
    report = load(tmp_path / "model").config.report
    assert (report["bounds"], report["units"], report["pair"]) == ([1.0, np.inf], 3, [1, None])


# Saving is whole or nothing ----------------------------------------------------------------------


@pytest.mark.parametrize("how", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize(
    ("when", "after", "old"),
    [
        ("rename", 0, False),
        ("rename", 0, True),
        ("rename", 1, True),  # between the renames
    ],
)
def test_an_interrupted_save_leaves_what_was_there(
    when: str,
    after: int,
    old: bool,
    how: BaseException,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = tmp_path / "model"
    if old:
        random_model(1).save(target)
    calls = 0
    real: Callable[..., Any] = getattr(os, when)

    def failing(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == after + 1:
            raise how
        return real(*arguments)

    monkeypatch.setattr(os, when, failing)
    with pytest.raises(KeyboardInterrupt if isinstance(how, KeyboardInterrupt) else LocumError):
        random_model(2).save(target)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == (["model"] if old else [])
    assert not old or same(load(target), random_model(1))


def test_other_files_are_never_touched(tmp_path: Path) -> None:
    model = random_model(0)
    place = tmp_path / "mine"
    place.mkdir()
    model.save(place)  # empty: nothing is lost
    (place / "notes.txt").write_text("keep me")
    with pytest.raises(InputError, match="it holds other files"):
        model.save(place)
    assert (place / "notes.txt").read_text() == "keep me"
    other = tmp_path / "bert"
    other.mkdir()
    (other / "config.json").write_text('{"model_type": "bert"}')
    (other / "model.safetensors").write_bytes(b"precious")
    with pytest.raises(InputError, match="it holds other files"):
        model.save(other)
    assert (other / "model.safetensors").read_bytes() == b"precious"
    (tmp_path / "file").write_text("keep me")
    with pytest.raises(InputError, match="not a folder"):
        model.save(tmp_path / "file")
    with pytest.raises(InputError, match="there is no folder"):
        model.save(tmp_path / "nowhere" / "model")


def test_the_current_folder_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "model"
    random_model(1).save(place)
    monkeypatch.chdir(place)
    with pytest.raises(InputError, match="it is the current folder"):
        random_model(2).save(".")
    assert same(load("."), random_model(1))


# Damage ------------------------------------------------------------------------------------------

#: One with heads of both kinds, an exact feed-forward with a table, and a vocabulary.
SEED = next(
    seed
    for seed in range(500)
    if '"table"' in (text := describe((m := random_model(seed)).config, m.weights))
    and '"hard"' in text.split('"layers"')[-1]
    and m.config.vocabulary is not None
)


def fields(data: Any) -> list[tuple[Any, Any]]:
    """Every object or list of a JSON text with each of its keys."""
    keys = list(data) if isinstance(data, dict) else range(len(data) if isinstance(data, list) else 0)
    return [(data, key) for key in keys] + [pair for key in keys for pair in fields(data[key])]


@pytest.mark.parametrize("seed", range(100))
def test_a_damaged_folder_is_refused_or_equal(seed: int, tmp_path: Path) -> None:
    model, draw = random_model(SEED), random.Random(seed)
    model.save(tmp_path / "model")
    path = tmp_path / "model" / ("config.json" if seed % 2 else "model.safetensors")
    content = bytearray(path.read_bytes())
    if seed % 4 == 1:  # a field
        data = json.loads(content)
        where, key = draw.choice(fields(data))
        where[key] = draw.choice([None, True, -1, 10**30, "x", [], {}, [[where[key]]]])
        content = bytearray(json.dumps(data).encode())
    else:  # a byte, often in the header of the weights
        place = draw.randrange(len(content) if seed % 4 else min(len(content), 1200))
        match draw.randrange(3):
            case 0:
                content[place] = draw.randrange(256)
            case 1:
                del content[place : place + draw.choice([1, 8, 10**6])]
            case 2:
                content.insert(place, draw.randrange(256))
    path.write_bytes(content)
    try:
        back = load(tmp_path / "model")
    except InputError as error:
        assert "expected a folder with a saved model" in str(error)
    else:
        assert same(model, back)


def test_other_folders_are_refused(tmp_path: Path) -> None:
    model = random_model(SEED)
    other = tmp_path / "other"
    with pytest.raises(InputError, match="No such file"):
        load(other)
    other.mkdir()
    (other / "config.json").write_text('{"model_type": "bert"}')
    (other / "model.safetensors").write_bytes(safetensors.numpy.save(dict(model.weights.named())))
    with pytest.raises(InputError, match="there is no hash"):
        load(other)
    (other / "model.safetensors").write_bytes(pickle.dumps(model.weights))
    with pytest.raises(InputError, match="expected a folder with a saved model"):
        load(other)
    model.save(tmp_path / "model")
    text = (tmp_path / "model" / "config.json").read_text()
    (tmp_path / "model" / "config.json").write_text(text.replace(f"random {SEED}", "another name"))
    with pytest.raises(InputError, match="have changed since they were saved"):
        load(tmp_path / "model")
