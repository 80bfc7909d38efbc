"""Whole datasets: the same to the last byte after an interruption; damaged ones are rejected."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from locum.errors import InputError, LocumError
from locum.experiments.dataset import load, making
from locum.experiments.dataset.generating import generate
from locum.experiments.dataset.index import read_index
from locum.interface.cli.main import cli

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A dataset of three circuits."""
    place = tmp_path_factory.mktemp("generated") / "set"
    return place, generate(place, 3, workers=1)


def test_a_dataset_says_what_it_has(dataset: tuple[Path, dict[str, Any]]) -> None:
    place, summary = dataset
    assert summary["items"] == 3
    rows = read_index(place)
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    sides: dict[str, set[str]] = {}
    for item in load(place):
        sides.setdefault(item.row["shape"], set()).add(item.row["split"])
        assert item.certificate["agrees"]
        for row, answer in zip(item.inputs, item.outputs, strict=True):
            assert item.model(row) == pytest.approx(answer)
    assert all(len(result) == 1 for result in sides.values())
    assert len(load(place).where(family="random")) == 2


def test_random_programs_are_a_split_of_their_own(tmp_path: Path) -> None:
    row = making.make(str(tmp_path), "random", layers=1, seed=3)["row"]
    assert row["split"] in ("random_train", "random_test")


def test_what_was_lost_is_made_again_to_the_last_byte(dataset: tuple[Path, dict[str, Any]]) -> None:
    place, summary = dataset
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    shutil.rmtree(place / read_index(place)[0]["folder"])
    (place / "index.jsonl").unlink()
    results = place / ".generation" / "results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines[:1]))  # as if it had been interrupted after the first
    assert generate(place, 3, workers=1) == summary
    for path, content in before.items():
        if path != results:
            assert path.read_bytes() == content, path


def test_damaged_datasets_are_rejected(dataset: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(dataset[0], copy)
    first, *others = load(copy)
    weights = bytearray((first.folder / "model.safetensors").read_bytes())
    weights[-3] ^= 64
    (first.folder / "model.safetensors").write_bytes(weights)
    with pytest.raises(InputError, match="have changed since they were saved"):
        _ = first.model
    (first.folder / "circuit.json").write_text("{}")
    with pytest.raises(InputError, match=r"circuit\.json"):
        _ = first.circuit
    (others[0].folder / "examples.json").write_bytes(b'{"inputs": [[')
    with pytest.raises(InputError, match=r"examples\.json"):
        _ = others[0].pairs
    shutil.rmtree(first.folder)
    with pytest.raises(InputError, match="expected an item in"):
        load(copy)
    index = copy / "index.jsonl"
    index.write_bytes(index.read_bytes()[:-9])
    with pytest.raises(InputError, match=r"index\.jsonl, line 3: not JSON|expected an item"):
        load(copy)
    index.unlink()
    with pytest.raises(InputError, match="expected a dataset"):
        load(copy)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--size", "0"], "size: expected 1 to 100,000"),
        (["--size", "2", "--seed", "1"], "try a new folder"),
    ],
)
def test_bad_requests_are_refused(
    dataset: tuple[Path, dict[str, Any]], arguments: list[str], words: str
) -> None:
    result = CliRunner().invoke(cli, ["dataset", "make", "-o", str(dataset[0]), *arguments])
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)


@pytest.mark.parametrize("options", [{"seed": -1}, {"workers": 0}])
def test_bad_requests_write_nothing(tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(options))}: expected"):
        generate(tmp_path / "data", 1, **options)
    assert not list(tmp_path.iterdir())


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        generate(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_torch_is_required_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    command = ["dataset", "make", "-o", str(tmp_path / "set"), "--size", "1", "--tier", "trained"]
    result = CliRunner().invoke(cli, command)
    assert isinstance(result.exception, InputError)
    assert "pip install 'locum[torch]'" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


# Errors of files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [{"source": "random", "layers": 1}, {"source": "cookbook/induction", "length": 4, "tokens": 2}],
)
def test_an_error_of_a_file_is_no_reason_to_reject_a_program(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def write(place: Path, files: Any) -> None:
        written.append(place)
        raise LocumError(f"cannot write {place}: No space left on device")

    monkeypatch.setattr(making, "write_folder", write)
    with pytest.raises(LocumError, match="No space left on device"):
        making.make(str(tmp_path), **settings)
    assert len(written) == 1  # not once for every program that may be drawn


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))  # as a full disk: writing fails on the way
from locum.interface.cli.main import main
main()
"""


def test_a_full_disk_ends_the_command_and_the_next_one_continues(tmp_path: Path) -> None:
    command = ["dataset", "make", "-o", str(tmp_path / "set"), "--size", "1", "--workers", "1"]
    done = subprocess.run(
        [sys.executable, "-c", FULL, *command],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # no bytecode that is cut off at the limit
    )
    assert done.returncode == 2, done
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    for name in ("set", "other"):
        generate(tmp_path / name, 1, workers=1)
    indices = [(tmp_path / name / "index.jsonl").read_bytes() for name in ("set", "other")]
    assert indices[0] == indices[1]
