"""Folders that somebody has damaged, or made to do harm: each is refused, and nothing in it is run."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from locum.errors import InputError, LocumError
from locum.networks.transformer import load
from locum.networks.transformer.folder.description import describe
from locum.networks.transformer.folder.shapes import Shape
from tests.transformer.random_models import random_model
from tests.transformer.test_saving import same

#: One with heads of both kinds, an exact feed-forward with a table, and a vocabulary.
SEED = next(
    seed
    for seed in range(500)
    if '"table"'
    in (text := describe(m := random_model(seed).config, Shape.of(random_model(seed).weights)))
    and '"hard"' in text.split('"layers"')[-1]
    and m.vocabulary is not None
)


def folder(tmp_path: Path) -> Path:
    random_model(SEED).save(tmp_path / "model")
    return tmp_path / "model"


def sign(place: Path) -> None:
    """Make the hash in the metadata fit config.json again, as somebody malicious would."""
    content = (place / "model.safetensors").read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"]["config"] = hashlib.sha256((place / "config.json").read_bytes()).hexdigest()
    packed = json.dumps(header).encode()
    (place / "model.safetensors").write_bytes(
        len(packed).to_bytes(8, "little") + packed + content[8 + length :]
    )


def test_signing_by_itself_changes_nothing(tmp_path: Path) -> None:
    place = folder(tmp_path)
    sign(place)
    assert same(load(place), random_model(SEED))


def first_feed(data: dict[str, Any], op: str | None = None) -> Any:
    """The first exact feed-forward with that instruction, and the instruction."""
    for layer in data["layers"]:
        functions = (layer["feed_forward"] or {}).get("functions")
        for instruction in functions["instructions"] if functions else ():
            if op in (None, instruction["op"]):
                return layer["feed_forward"], instruction
    raise AssertionError(op)


def set_in(*path: Any, to: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for step in path[:-1]:
            data = data[step]
        data[path[-1]] = to

    return change


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "another format": (set_in("format", to="bert"), 'format: expected "locum.transformer"'),
    "a later version": (set_in("version", to=2), "version: expected 1, got 2"),
    "version true": (set_in("version", to=True), "version: expected 1, got True"),
    "a field is missing": (lambda data: data.pop("sink"), "sink is missing"),
    "a field too many": (set_in("hook", to="import os"), "unknown field 'hook'"),
    "a wrong type": (set_in("sink", to=1), "sink: expected true or false, got 1"),
    "lengths": (set_in("lengths", to=[1, 2, 3]), "lengths: expected a list of 2, got a list of 3"),
    "lengths beyond n_ctx": (set_in("lengths", to=[1, 10**9]), "do not fit into n_ctx"),
    "lengths from 0": (set_in("lengths", to=[0, 1]), "1 ≤ shortest ≤ longest, got 0 and 1"),
    "a negative size": (set_in("d_model", to=-1), "integer from 0 to 1,099,511,627,776, got -1"),
    "a size that is a float": (
        set_in("d_model", to=4.0),
        "integer from 0 to 1,099,511,627,776, got 4.0",
    ),
    "a gigantic size": (set_in("d_model", to=10**300), "got 1000"),
    "another d_model": (set_in("d_model", to=10**9), "the number of slots"),
    "a huge n_ctx": (set_in("n_ctx", to=2**39), "of at most 2,147,483,648 bytes, got"),
    "another n_ctx": (set_in("n_ctx", to=7), "bytes for its header and the tensors of config.json"),
    "a vocabulary twice": (set_in("vocabulary", to=["a", "a"]), "each once"),
    "a vocabulary of lists": (set_in("vocabulary", to=[["a"]]), "vocabulary[0]: expected a boolean"),
    "another vocabulary": (set_in("vocabulary", to=list("abcdefgh")), "d_vocab: expected"),
    "outputs": (set_in("outputs", to=list("abcdefgh")), "d_vocab_out: expected"),
    "attention": (set_in("attention", to="soft"), "expected one of hard, softmax, got 'soft'"),
    "dtype": (set_in("dtype", to="float16"), "dtype: expected one of float64, float32"),
    "dtype of objects": (set_in("dtype", to="O"), "dtype: expected one of float64, float32"),
    "another program": (set_in("program", to="{}"), "expected the hash of the program"),
    "ranges of tokens": (set_in("ranges", to=[[0.0, 1.0]]), "ranges: expected one for all tokens"),
    "a range of one number": (set_in("ranges", to=[[0.0]]), "ranges[0]: expected a list of 2"),
    "a range of text": (set_in("ranges", to=[["0", "1"]]), "ranges[0][0]: expected a floating"),
    "a range upside down": (set_in("ranges", to=[[1.0, 0.0]]), "ranges[0]: expected low ≤ high"),
    "report": (set_in("report", to=[]), "report: expected an object"),
    "a layer of text": (set_in("layers", 0, to="x"), "layers[0]: expected an object, got 'x'"),
    "names of heads": (set_in("heads", 0, to=["a"] * 9), "heads, but labels for 9"),
    "a layer more": (lambda data: data["layers"].append(data["layers"][0]), "number of layers"),
    "an unknown instruction": (
        lambda data: first_feed(data)[1].update(op="eval"),
        "op: expected an instruction, got 'eval'",
    ),
    "an instruction reads ahead": (
        lambda data: first_feed(data, "table")[1].update(inputs=[0, 10**6]),
        ", got 1000000",
    ),
    "an instruction reads before the first": (
        lambda data: first_feed(data, "table")[1].update(inputs=[0, -1]),
        "expected an integer from 0 to 1,099,511,627,776, got -1",
    ),
    "too many inputs": (
        lambda data: first_feed(data, "table")[1].update(inputs=[0, 0, 0]),
        "expected 2 numbers for table, got a list of 3",
    ),
    "an output that is not": (
        lambda data: first_feed(data)[0]["functions"]["outputs"].__setitem__(0, 999),
        "outputs: expected the number of an earlier result",
    ),
    "an output more": (
        lambda data: first_feed(data)[0]["functions"]["outputs"].append(0),
        "has functions of",
    ),
    "a table of the wrong size": (
        lambda data: first_feed(data, "table")[1]["attributes"]["values"].append(1),
        "expected a list of 6, one value per combination",
    ),
    "a table out of order": (
        lambda data: first_feed(data, "table")[1]["attributes"]["keys"][0].reverse(),
        "ascending order",
    ),
    "a table of text": (
        lambda data: first_feed(data, "table")[1]["attributes"]["values"].__setitem__(0, "x"),
        "expected a finite number, got 'x'",
    ),
    "a table without keys": (
        lambda data: first_feed(data, "table")[1]["attributes"].update(keys=[]),
        "expected at least one list",
    ),
    "functions in a relu": (
        lambda data: first_feed(data)[0].update(kind="relu"),
        "expected functions if and only if it is exact",
    ),
    "no functions": (lambda data: first_feed(data)[0].pop("functions"), "if and only if it is exact"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_config_that_was_tampered_with(name: str, tmp_path: Path) -> None:
    change, message = CHANGES[name]
    place = folder(tmp_path)
    data = json.loads((place / "config.json").read_text())
    change(data)
    (place / "config.json").write_text(json.dumps(data))
    sign(place)
    with pytest.raises(InputError) as raised:
        load(place)
    assert message in str(raised.value)
    assert str(place) in str(raised.value)


#: A report that is nested as deeply as JSON may be, in a configuration that is right otherwise.
DEEP = (
    describe(random_model(SEED).config, Shape.of(random_model(SEED).weights))
    .replace('"note": "drawn"', f'"note": {"[" * 900}{"]" * 900}')
    .encode()
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 10**6, "nested too deeply"),
        (b'{"a":' * 10**5, "nested too deeply"),
        (b"[]", "format: expected"),
        (DEEP, "nested too deeply"),
        (b'{"format": NaN}', "is not a JSON number"),
        (b'{"format": 1e999}', "is not a JSON number"),
        (b'{"format": ' + b"9" * 10**5 + b"}", "not JSON"),
        (b'{"format": 1, "format": 2}', "same name twice"),
        (pickle.dumps({"format": "locum.transformer"}), "not JSON"),
    ],
)
def test_a_config_that_is_not_one(content: bytes, message: str, tmp_path: Path) -> None:
    place = folder(tmp_path)
    (place / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load(place)


class Trap:
    """Says so if it is ever unpickled."""

    def __reduce__(self) -> Any:
        return (os.mkdir, (os.environ["TRAP"],))


def test_a_pickle_is_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = folder(tmp_path)
    monkeypatch.setenv("TRAP", str(tmp_path / "sprung"))
    size = (place / "model.safetensors").stat().st_size
    for content in (pickle.dumps(Trap()), pickle.dumps(Trap()).ljust(size, b"\0")):
        (place / "model.safetensors").write_bytes(content)
        with pytest.raises(InputError, match=r"model\.safetensors"):
            load(place)
    assert not (tmp_path / "sprung").exists()


def rewrite(place: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Other tensors under the same metadata."""
    path = place / "model.safetensors"
    with safetensors.safe_open(path, framework="np") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors)
    path.write_bytes(safetensors.numpy.save(tensors, metadata))


def other_values(tensors: dict[str, Any]) -> None:
    tensors["unembed.b_U"] = tensors["unembed.b_U"] + 1


TENSORS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "missing": (lambda tensors: tensors.pop("unembed.b_U"), "the tensors of config.json, got"),
    "extra": (lambda tensors: tensors.update(more=np.zeros(2)), "the tensors of config.json, got"),
    "extra and empty": (
        lambda tensors: tensors.update(more=np.zeros(0)),
        "'more' is .*, but unknown",
    ),
    "renamed": (lambda tensors: tensors.update(b=tensors.pop("unembed.b_U")), "the tensor 'b' is"),
    "another shape": (
        lambda tensors: tensors.update({"embed.W_E": tensors["embed.W_E"].T.copy()}),
        "'embed.W_E' is .* in the header, but",
    ),
    "another dtype": (
        lambda tensors: tensors.update(
            {"embed.W_E": tensors["embed.W_E"].view(f"i{tensors['embed.W_E'].itemsize}")}
        ),
        "'embed.W_E' is .* in the header, but",
    ),
    "not finite": (lambda tensors: tensors["embed.W_E"].fill(np.inf), "expected finite numbers"),
    "other numbers": (other_values, "their hash differs"),
}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_that_do_not_fit(name: str, tmp_path: Path) -> None:
    change, message = TENSORS[name]
    place = folder(tmp_path)
    rewrite(place, change)
    with pytest.raises(InputError, match=message):
        load(place)


def test_files_that_are_too_short_or_too_long(tmp_path: Path) -> None:
    place = folder(tmp_path)
    whole = (place / "model.safetensors").read_bytes()
    for content in (b"", whole[:7], whole[:100], whole[:-1], whole + b"\0"):
        (place / "model.safetensors").write_bytes(content)
        with pytest.raises(InputError, match=r"model\.safetensors"):
            load(place)
    (place / "model.safetensors").write_bytes((2**60).to_bytes(8, "little") + whole[8:])
    with pytest.raises(InputError, match=r"the tensors of config\.json, got"):
        load(place)
    with open(place / "model.safetensors", "wb") as file:
        file.truncate(2**40)  # sparse: a terabyte that takes no place
    with pytest.raises(InputError, match="and the limit is"):
        load(place)
    with open(place / "config.json", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(InputError, match="and the limit is"):
        load(place)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_what_is_not_a_regular_file(name: str, tmp_path: Path) -> None:
    place = folder(tmp_path)
    os.rename(place / name, tmp_path / "elsewhere")
    with pytest.raises(InputError, match="No such file"):
        load(place)
    (place / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="expected a regular file, got a link"):
        load(place)
    (place / name).unlink()
    (place / name).mkdir()
    with pytest.raises(InputError, match="got a folder"):
        load(place)
    (place / name).rmdir()
    os.mkfifo(place / name)
    with pytest.raises(InputError, match="got a pipe"):
        load(place)
    with pytest.raises(InputError, match="not a folder"):
        load(tmp_path / "elsewhere")


def test_a_config_of_another_model(tmp_path: Path) -> None:
    place = folder(tmp_path)
    text = (place / "config.json").read_text()
    (place / "config.json").write_text(text.replace(f"random {SEED}", "something else"))
    with pytest.raises(InputError, match=r"config.json has changed since the weights were saved"):
        load(place)


#: A folder of some kilobytes whose weights, by its configuration, its header and its hashes, would take
#: gigabytes, loaded where there is far less memory.
SPARSE = """
import hashlib, json, resource, sys
from pathlib import Path
import numpy as np
from locum.networks.transformer import load
from locum.networks.transformer.folder import saving
from locum.networks.transformer.folder.description import understand

place, n_ctx, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
data = json.loads((place / "config.json").read_text()) | {"n_ctx": n_ctx}
description = json.dumps(data).encode()
(place / "config.json").write_bytes(description)
config, shape = understand(description)
header = saving._header(dict(shape.tensors()), config.dtype)
header["__metadata__"] = {
    "format": "locum.transformer", "version": "1", "program": config.program_hash,
    "weights": "", "config": hashlib.sha256(description).hexdigest(),
}
text = json.dumps(header).encode()
with open(place / "model.safetensors", "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text)
    file.truncate(8 + len(text) + shape.bytes(config.dtype))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    load(place)
except Exception as error:
    print(type(error).__name__, error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize(
    ("n_ctx", "limit", "message"),
    [
        (2**27, 2**40, "of at most 2,147,483,648 bytes, got"),  # nothing of 3 GB is read
        (2**25, 2**29, "not enough memory"),  # 800 MB would be read, but there are not as many
        (2**20, 2**40, "their hash differs"),
    ],
)
def test_sparse_weights_of_gigabytes(n_ctx: int, limit: int, message: str, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", SPARSE, str(folder(tmp_path)), str(n_ctx), str(limit)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    problem, kilobytes = done.stdout.splitlines()
    assert problem.startswith("InputError")
    assert message in problem
    assert "locum" not in done.stderr
    if "hash" in message:
        # 25 MB of numbers are read once: not their bytes, then tensors, then copies of them.
        assert int(kilobytes) * 1024 < 1.6 * 4 * 6 * n_ctx
    else:
        assert int(kilobytes) < 2**16


@given(
    name=st.sampled_from(["config.json", "model.safetensors"]),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=3),
    cut=st.none() | st.floats(0, 1),
    signed=st.booleans(),
)
@settings(max_examples=2 * settings().max_examples)
def test_mutated_folders_are_refused_or_equal(
    name: str,
    edits: list[tuple[float, int]],
    cut: float | None,
    signed: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    place = tmp_path_factory.mktemp("mutated") / "model"
    model = random_model(SEED)
    model.save(place)
    content = bytearray((place / name).read_bytes())
    for where, byte in edits:
        content[min(int(where * len(content)), len(content) - 1)] = byte
    if cut is not None:
        content = content[: int(cut * len(content))]
    (place / name).write_bytes(content)
    resigned = signed and name == "config.json"
    if resigned:
        sign(place)
    try:
        result = load(place)
    except LocumError:
        return
    # With a hash that was made to fit, a label may differ; the numbers may not.
    assert result.hash == model.hash if resigned else same(result, model)
