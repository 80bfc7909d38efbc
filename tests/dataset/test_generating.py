"""Whole datasets: the same to the last byte after an interruption; changed files are noticed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from locum import __version__
from locum.errors import InputError, LocumError
from locum.experiments.dataset import load, making, score
from locum.experiments.dataset.generating import generate
from locum.experiments.dataset.index import COLUMNS, read_index
from locum.experiments.dataset.verify import load_rows, verify
from locum.interface.cli.main import cli

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A dataset of two circuits."""
    place = tmp_path_factory.mktemp("generated") / "set"
    return place, generate(place, 2, tiers=["rotated", "plain"], workers=1)


def test_a_dataset_verifies_and_says_what_it_has(dataset: tuple[Path, dict[str, Any]]) -> None:
    place, summary = dataset
    assert summary["by_tier"] == {"plain": 2, "rotated": 2}
    result = verify(place)
    assert result["wrong"] == []
    assert result["items"] == 4
    rows = read_index(place)
    assert [row["id"] for row in rows] == sorted(row["id"] for row in rows)
    assert all(type(row[name]) is kind for row in rows for name, (kind, _) in COLUMNS.items())
    sides: dict[str, set[str]] = {}
    for row in rows:
        sides.setdefault(row["shape"], set()).add(row["split"])
    assert all(len(result) == 1 for result in sides.values())


def test_the_data_card_is_complete_and_its_code_runs_without_locum(
    dataset: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    place, summary = dataset
    card = (place / "README.md").read_text(encoding="utf-8")
    for words in (summary["content"], summary["index"], "license: mit", f"| Locum | {__version__} |"):
        assert words in card
    assert (place / "LICENSE").read_text() == (Path(__file__).parents[2] / "LICENSE").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    row = read_index(place)[0]
    item = load(place / row["folder"])
    found = {"edges": [{"source": s, "target": t} for s, t in sorted(item.truth.edges)[1:]]}
    (tmp_path / "found.json").write_text(json.dumps(found))
    alone = "assert not any(n.split('.')[0] in ('locum', 'torch', 'pyarrow') for n in sys.modules)"
    run = f"import sys; sys.path.insert(0, '.')\n{code}\n{alone}"
    shown = subprocess.run(
        [sys.executable, "-I", "-c", run], cwd=place, check=True, capture_output=True, text=True
    )
    assert load_rows(place)[0] == row
    assert shown.stdout.endswith(f" {len(item.truth.edges)}\n")
    assert verify(place)["wrong"] == []
    scored = subprocess.run(
        [sys.executable, "-I", "score.py", row["folder"], str(tmp_path / "found.json")],
        cwd=place,
        check=True,
        capture_output=True,
        text=True,
    )
    levels = json.loads(scored.stdout)["levels"]
    assert levels == score(item.truth, found, item.directions)["levels"]
    recalls = levels["edges"]["recall_by_necessity"]
    assert set(recalls) == set(item.truth.necessity.values())
    assert min(recalls.values()) < 1
    missing = subprocess.run(
        [sys.executable, "-I", "score.py", "nowhere", "found.json"],
        cwd=place,
        check=False,
        capture_output=True,
        text=True,
    )
    assert missing.returncode == 2
    assert "Traceback" not in missing.stderr


def test_random_programs_are_a_split_of_their_own(tmp_path: Path) -> None:
    rows = making.make(str(tmp_path), "random", "softmax", ["plain"], layers=1, seed=3)["rows"]
    assert {row["split"] for row in rows} <= {"random_train", "random_test"}


def test_what_was_lost_is_made_again_to_the_last_byte(
    dataset: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    place, summary = dataset
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    item = place / read_index(place)[0]["folder"]
    shutil.rmtree(item)
    (place / "index.parquet").unlink()
    results = place / ".generation" / "results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b"".join(lines[:1]))  # as if it had been interrupted after the first
    again = generate(place, 2, tiers=["rotated", "plain"], workers=1)
    assert again == summary
    for path, content in before.items():
        if path != results:
            assert path.read_bytes() == content, path


def test_metadata_describes_the_columns_and_files(dataset: tuple[Path, dict[str, Any]]) -> None:
    place, _ = dataset
    data = json.loads((place / "croissant.json").read_text())
    assert data["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    fields = data["recordSet"][0]["field"]
    assert [field["name"] for field in fields] == list(COLUMNS)
    files = {path.name for path in (place / read_index(place)[0]["folder"]).iterdir()}
    assert {part["name"] for part in data["distribution"] if "includes" in part} == files


def test_changed_missing_and_added_files_are_noticed(
    dataset: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(dataset[0], copy)
    item = copy / read_index(copy)[0]["folder"]
    weights = bytearray((item / "model.safetensors").read_bytes())
    weights[-3] ^= 64
    (item / "model.safetensors").write_bytes(weights)
    (item / "program.rasp").unlink()
    (item / "note.txt").write_text("hello")
    wrong = "\n".join(verify(copy)["wrong"])
    assert "model.safetensors: has changed" in wrong
    assert "program.rasp: is missing" in wrong
    assert "note.txt: is not listed" in wrong


def test_an_answer_that_is_wrong_is_noticed_though_sums_fit(
    dataset: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(dataset[0], copy)
    item = copy / read_index(copy)[0]["folder"]
    examples = item / "examples.json"
    name = examples.relative_to(copy).as_posix()
    old = hashlib.sha256(examples.read_bytes()).hexdigest()
    data = json.loads(examples.read_text())
    data["outputs"].reverse()
    examples.write_text(json.dumps(data))
    sums = (copy / "SHA256SUMS").read_text()
    new = hashlib.sha256(examples.read_bytes()).hexdigest()
    (copy / "SHA256SUMS").write_text(sums.replace(f"{old}  {name}", f"{new}  {name}"))
    wrong = verify(copy)["wrong"]
    assert wrong
    assert all("expected" in problem for problem in wrong)


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


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        generate(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


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
        making.make(str(tmp_path), attention="softmax", tiers=["plain"], **settings)
    assert len(written) == 1  # not once for every program that may be drawn


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))  # as a full disk: writing fails on the way
from locum.interface.cli.main import main
main()
"""


def test_a_full_disk_ends_the_command_and_the_next_one_continues(tmp_path: Path) -> None:
    arguments = [
        "dataset",
        "make",
        "-o",
        str(tmp_path / "set"),
        "--size",
        "1",
        "--tier",
        "plain",
        "--workers",
        "1",
    ]
    done = subprocess.run(
        [sys.executable, "-c", FULL, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},  # no bytecode that is cut off at the limit
    )
    assert done.returncode == 2, done
    assert "cannot write" in done.stderr
    assert "Traceback" not in done.stderr
    again, other = (
        generate(tmp_path / name, 1, tiers=["plain"], workers=1) for name in ("set", "other")
    )
    assert again["index"] == other["index"]
    assert verify(tmp_path / "set")["wrong"] == []
