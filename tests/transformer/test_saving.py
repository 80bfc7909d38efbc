"""Folders: a round trip is bit for bit, a save is whole or nothing, and bad folders are refused."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import locum
from locum.errors import InputError, LocumError
from locum.execution import run
from locum.networks.transformer import CompiledTransformer, load
from locum.networks.transformer.folder.description import describe
from locum.networks.transformer.folder.shapes import Shape
from tests.transformer.random_models import random_inputs, random_model


def same(a: CompiledTransformer, b: CompiledTransformer) -> bool:
    return describe(a.config, Shape.of(a.weights)) == describe(b.config, Shape.of(b.weights)) and all(
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


def test_a_model_saved_by_an_earlier_version_loads() -> None:
    """Load a folder that Locum 0.2.0 wrote: the mean of the positions of ones, for three tokens."""
    model = locum.load(Path(__file__).parent / "saved_by_0_2_0")
    program = model.program
    assert program is not None
    for tokens in itertools.chain.from_iterable(
        itertools.product(range(3), repeat=length) for length in range(1, 5)
    ):
        assert model(list(tokens)) == run(program, list(tokens))


def test_a_report_of_arrays_is_written_as_lists(tmp_path: Path) -> None:
    model = random_model(0)
    model.config.report.update(bounds=np.array([1.0, np.inf]), units=np.int64(3), pair=(1, None))
    model.save(tmp_path / "model")
    report = load(tmp_path / "model").config.report
    assert (report["bounds"], report["units"], report["pair"]) == ([1.0, np.inf], 3, [1, None])


def test_the_metadata(tmp_path: Path) -> None:
    model = random_model(0)
    model.save(tmp_path / "model")
    with safetensors.safe_open(tmp_path / "model" / "model.safetensors", framework="np") as file:
        metadata = file.metadata()
    assert metadata["version"] == "1"
    assert metadata["program"] == model.config.program_hash
    assert metadata["weights"] == model.hash


# Saving is whole or nothing ----------------------------------------------------------------------


@pytest.mark.parametrize("how", [KeyboardInterrupt(), OSError(28, "No space left on device")])
@pytest.mark.parametrize(
    ("when", "after", "old"),
    [
        *[("fsync", after, old) for after in (0, 1, 2) for old in (False, True)],
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


def test_parallel_saves_and_loads(tmp_path: Path) -> None:
    """Every save succeeds, every load gives one of the models, and no temporary folder stays."""
    place = tmp_path / "model"
    models = [random_model(seed) for seed in range(3)]
    hashes = {model.hash for model in models}
    models[0].save(place)
    problems: list[Any] = []

    def work(model: CompiledTransformer | None) -> None:
        try:
            for _ in range(25):
                if model is not None:
                    model.save(place)
                elif load(place).hash not in hashes:
                    problems.append("another model")
        except Exception as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(model,)) for model in [*models, None, None, None]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    model = random_model(0)
    model.weights.b_U[0] = np.nan
    with pytest.raises(InputError, match="expected finite numbers"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
