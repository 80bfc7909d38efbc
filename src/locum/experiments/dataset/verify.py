"""Verify a dataset of compiled circuits, using only NumPy and safetensors.

``python verify.py FOLDER`` checks the digest of every file (``SHA256SUMS``), runs every network on its
inputs in float64, and compares the outputs with the expected outputs. The script prints the errors, at
most three for the outputs of each network. The exit code is 0 if everything is correct, 1 if there are
errors, and 2 if the folder is not a dataset.

``config.json`` and ``model.safetensors`` of an item define a network. Token and position embeddings are
added. Every layer adds the output of its heads (average-hard or softmax, scores q·k without scaling),
then the output of its ReLU units. Layer norms (``"norm"`` in the configuration) precede each sublayer
and the unembedding. With a sink, a position without a token precedes the input.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

SUMS, ROWS = "SHA256SUMS", "index.jsonl"
#: Name of the hook at the input of the unembedding.
FINAL = "unembed.hook_in"
#: Folder with data for resuming generation, which is not part of the dataset.
WORKSHOP = ".generation"
#: Largest tolerance for real-valued answers that a certificate may state.
LARGEST_ERROR = 0.05


class Network:
    """A transformer defined by its configuration and tensors, computed in float64."""

    def __init__(self, config: dict[str, Any], tensors: dict[str, Any]) -> None:
        self.config = config
        self.tensors = {name: np.asarray(value, np.float64) for name, value in tensors.items()}
        self.layers: list[dict[str, Any]] = config["layers"]
        self.sink = int(config["sink"])
        self.is_categorical = config.get("outputs") is not None

    def heads(self, layer: int) -> int:
        """Return the number of heads of a layer."""
        return len((self.layers[layer].get("attention") or {"kinds": ()})["kinds"])

    def has_units(self, layer: int) -> bool:
        """Return whether a layer contains hidden units."""
        return self.layers[layer].get("feed_forward") is not None

    def ids(self, tokens: list[Any]) -> list[int]:
        """Return the row of W_E for each token.

        If no token of the vocabulary is identical in type and value, the row of an equal token is
        returned.
        """
        vocabulary = self.config["vocabulary"]
        rows = []
        for token in tokens:
            same = [i for i, v in enumerate(vocabulary) if type(v) is type(token) and v == token]
            rows.append(same[0] if same else vocabulary.index(token))
        return rows

    def embeddings(self, rows: list[list[Any]]) -> tuple[Any, Any]:
        """Return the token embeddings and the position embeddings of inputs of one length."""
        return self.embed([self.ids(row) for row in rows])

    def embed(self, ids: Any) -> tuple[Any, Any]:
        """Return the token embeddings and the position embeddings of token ids, each [batch, position,
        d_model].
        """
        ids = np.asarray(ids)
        size = ids.shape[1] + self.sink
        places = np.repeat(self.tensors["pos_embed.W_pos"][None, :size], len(ids), axis=0)
        words = np.zeros_like(places)
        words[:, self.sink :] = self.tensors["embed.W_E"][ids]
        return words, places

    def norm(self, hook: str, stream: Any) -> Any:
        """Return the input of the component at ``hook``: the residual stream, after a layer norm if
        there is one.
        """
        norm = self.config.get("norm")
        if norm is None:
            return stream
        block = ".".join(hook.split(".")[:2])
        name = "ln_final" if hook == FINAL else f"{block}.{'ln1' if '.attn' in hook else 'ln2'}"
        centred = stream - stream.mean(axis=-1, keepdims=True)
        variance = (centred**2).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + norm["epsilon"])
        return scaled * self.tensors[f"{name}.w"] + self.tensors[f"{name}.b"]

    def projected(self, layer: int, letter: str, read: Any) -> Any:
        """Return the queries, keys or values of the heads of a layer, [batch, position, head, d_head].

        ``letter`` is Q, K or V, and ``read`` is the input of the attention, after the layer norm.
        """
        weight = self.tensors[f"blocks.{layer}.attn.W_{letter}"]
        bias = self.tensors[f"blocks.{layer}.attn.b_{letter}"]
        return np.swapaxes(read[:, None] @ weight, 1, 2) + bias

    def attended(self, layer: int, q: Any, k: Any, v: Any) -> Any:
        """Return the weighted mean of the values for each head, [batch, position, head, d_head]."""
        scores = np.swapaxes(q, 1, 2) @ np.transpose(k, (0, 2, 3, 1))
        if self.config.get("causal"):
            ahead = np.triu(np.ones(scores.shape[-2:], bool), 1)
            scores = np.where(ahead, -np.inf, scores)
        top = scores.max(axis=-1, keepdims=True)
        kinds = self.layers[layer]["attention"]["kinds"]
        hard = np.array([kind == "hard" for kind in kinds])[:, None, None]
        weights = np.where(hard, (scores == top).astype(float), np.exp(scores - top))
        # Sum first and divide afterwards, so that a mean of integers is rounded only once.
        mixed = weights @ np.swapaxes(v, 1, 2) / weights.sum(axis=-1, keepdims=True)
        return np.swapaxes(mixed, 1, 2)

    def stream(self, ids: Any, tap: Callable[[str, Any], Any] | None = None) -> Any:
        """Return the residual stream after the last layer for a batch of token ids."""
        words, places = self.embed(ids)
        return self.forward(words + places, tap)

    def forward(self, stream: Any, tap: Callable[[str, Any], Any] | None = None, first: int = 0) -> Any:
        """Return the residual stream after the last layer, given the stream before layer ``first``.

        ``tap`` is called with the name of a hook and its activation. The result, unless it is None,
        replaces the activation.
        """

        def show(name: str, value: Any) -> Any:
            other = None if tap is None else tap(name, value)
            return value if other is None else other

        tensors = self.tensors
        for layer in range(first, len(self.layers)):
            attn, mlp = f"blocks.{layer}.attn", f"blocks.{layer}.mlp"
            stream = show(f"blocks.{layer}.hook_resid_pre", stream)
            if self.heads(layer):
                read = self.norm(attn, stream)
                q, k, v = (
                    show(f"{attn}.hook_{letter}", self.projected(layer, letter.upper(), read))
                    for letter in "qkv"
                )
                z = show(f"{attn}.hook_z", self.attended(layer, q, k, v))
                added = np.moveaxis(z, 2, 0) @ tensors[f"{attn}.W_O"][:, None]
                stream = stream + added.sum(axis=0) + tensors[f"{attn}.b_O"]
            stream = show(f"blocks.{layer}.hook_resid_mid", stream)
            if self.has_units(layer):
                before = self.norm(mlp, stream) @ tensors[f"{mlp}.W_in"] + tensors[f"{mlp}.b_in"]
                after = show(f"{mlp}.hook_post", np.maximum(show(f"{mlp}.hook_pre", before), 0))
                stream = stream + after @ tensors[f"{mlp}.W_out"] + tensors[f"{mlp}.b_out"]
        return show(FINAL, stream)

    def read_off(self, stream: Any) -> Any:
        """Return the logits [batch, position, d_vocab_out] without the sink, for the final residual
        stream.
        """
        read = self.norm(FINAL, stream[:, self.sink :])
        return read @ self.tensors["unembed.W_U"] + self.tensors["unembed.b_U"]

    def logits(self, ids: Any) -> Any:
        """Return the logits of a batch of token ids of one length."""
        return self.read_off(self.stream(ids))

    def answers(self, logits: Any) -> Any:
        """Return the indices of the largest logits, or the numbers for real-valued answers."""
        return logits.argmax(axis=-1) if self.is_categorical else logits[..., 0]

    def __call__(self, rows: list[list[Any]]) -> list[list[Any]]:
        """Return the answers for inputs, which are lists of tokens of any lengths."""
        results: list[list[Any]] = [[] for _ in rows]
        for size in sorted({len(row) for row in rows}):
            places = [i for i, row in enumerate(rows) if len(row) == size]
            answers = self.answers(self.logits([self.ids(rows[i]) for i in places])).tolist()
            outputs = self.config.get("outputs")
            for i, answer in zip(places, answers, strict=True):
                results[i] = answer if outputs is None else [outputs[n] for n in answer]
        return results


def load_network(folder: Path) -> Network:
    """Return the network in the folder of an item."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return Network(config, load_file(str(folder / "model.safetensors")))


def load_circuit(folder: Path) -> dict[str, Any]:
    """Return the circuit in the folder of an item, as JSON data."""
    circuit: dict[str, Any] = json.loads((folder / "circuit.json").read_text(encoding="utf-8"))
    return circuit


def load_rows(folder: Path, **columns: Any) -> list[dict[str, Any]]:
    """Return the rows of the index whose columns have the given values."""
    lines = (folder / ROWS).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [row for row in rows if all(row[name] == columns[name] for name in columns)]


def content_hash(folder: Path) -> str:
    """Return the SHA-256 hash of the paths and digests of all files of the items."""
    files = sorted(path for path in (folder / "items").rglob("*") if path.is_file())
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in files
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def agree(actual: list[Any], expected: list[Any], tolerance: float) -> bool:
    """Return whether two answers are equal; real numbers may differ by the tolerance."""
    if len(actual) != len(expected):
        return False
    for one, other in zip(actual, expected, strict=True):
        if isinstance(one, str) or isinstance(other, str):
            if one != other:
                return False
        elif not abs(one - other) <= tolerance * max(1.0, abs(other)):
            return False
    return True


def check_item(folder: Path) -> tuple[int, list[str]]:
    """Return the number of inputs on which the network of an item ran, and a list of errors."""
    network = load_network(folder)
    examples = json.loads((folder / "examples.json").read_text(encoding="utf-8"))
    certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    tolerance = certificate["tolerance"]
    if not 0 <= tolerance <= LARGEST_ERROR:
        return 0, [f"states a tolerance of {tolerance}"]
    rows, expected = list(examples["inputs"]), list(examples["outputs"])
    for pair in examples["pairs"]:
        rows += [pair["clean"], pair["other"]]
        expected += [pair["answer"], pair["other_answer"]]
    if not rows or len(rows) != len(expected):
        return 0, [f"has {len(rows)} inputs and {len(expected)} outputs"]
    answers = network(rows)
    exact = network.config.get("outputs") is not None
    wrong = [
        f"{row} gives {one}, expected {other}"
        for row, one, other in zip(rows, answers, expected, strict=True)
        if not agree(one, other, 0.0 if exact else tolerance)
    ]
    return len(rows), wrong


def listed(folder: Path) -> dict[str, str]:
    """Return a mapping from the paths of the listed files of the dataset to SHA-256 digests."""
    sums = {}
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        sums[name] = digest
    return sums


def is_listed(path: Path) -> bool:
    """Return whether a file must be listed, which excludes the list itself, generation data and
    ``__pycache__``.
    """
    return path.parts[0] not in (WORKSHOP, SUMS) and "__pycache__" not in path.parts


def check_sums(folder: Path, sums: dict[str, str]) -> list[str]:
    """Return an error message for each file that is missing, changed, not listed, or listed outside of
    the dataset.
    """
    wrong = []
    for name, digest in sums.items():
        path = folder / name
        if ".." in Path(name).parts or Path(name).is_absolute():
            wrong.append(f"{name}: is outside of the dataset")
        elif not path.is_file():
            wrong.append(f"{name}: is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            wrong.append(f"{name}: has changed")
    present = {path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir()}
    names = {path.as_posix() for path in present if is_listed(path)}
    wrong += [f"{name}: is not listed in {SUMS}" for name in sorted(names - set(sums))]
    return wrong


def verify(folder: Path) -> dict[str, Any]:
    """Return a summary of all checks, with a list of errors.

    The list contains each error of a file, and at most three errors for the answers of each network.
    """
    sums = listed(folder)
    wrong = check_sums(folder, sums)
    items = sorted({str(Path(name).parent) for name in sums if name.endswith("/model.safetensors")})
    if not items:
        wrong.append("no item is listed")
    inputs = 0
    for item in items:
        try:
            count, problems = check_item(folder / item)
        except Exception as error:  # a changed file may cause any error
            count, problems = 0, [f"cannot be run: {type(error).__name__}: {error}"]
        inputs += count
        wrong += [f"{item}: {problem}" for problem in problems[:3]]
    content = content_hash(folder)
    return {
        "items": len(items),
        "files": len(sums),
        "inputs": inputs,
        "content": content,
        "wrong": wrong,
    }


def main() -> int:
    """Check the dataset in a folder, print the result, and return the exit code."""
    parser = argparse.ArgumentParser(description="Check a dataset of compiled circuits.")
    parser.add_argument("folder", nargs="?", default=str(Path(__file__).parent), type=Path)
    folder = parser.parse_args().folder
    if not (folder / SUMS).is_file():
        print(f"expected a dataset with {SUMS} in {folder}, got none", file=sys.stderr)  # noqa: T201
        return 2
    report = verify(folder)
    for problem in report["wrong"]:
        print(problem)  # noqa: T201
    size = f"{report['items']} networks, {report['inputs']} inputs, {report['files']} files"
    print(f"{size}: {'all right' if not report['wrong'] else 'NOT all right'}")  # noqa: T201
    print(f"SHA-256 of the items: {report['content']}")  # noqa: T201
    return 1 if report["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
