"""Check a dataset of compiled circuits with NumPy and safetensors alone; nothing else is needed.

``python verify.py FOLDER`` checks that every file is the one that was written (``SHA256SUMS``), runs
every network on its inputs in float64, and compares what it says with the expected outputs. Exit code
0: all is right; 1: something is not, by name; 2: there is no such dataset.

A network is what ``config.json`` and ``model.safetensors`` of an item say: embeddings are added, every
layer adds its heads (average-hard or softmax, scores q·k without scaling), then its relu units; where
there are norms (``"norm"`` in the configuration) they come before each half and before the
unembedding. With a sink, a position without a token stands before the input.
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

SUMS = "SHA256SUMS"
#: What the unembedding reads.
FINAL = "final"
#: Where generation keeps what it needs to go on; not part of the dataset.
WORKSHOP = ".generation"
#: Real-valued answers may be off by what a certificate states; by more than this none may be.
LARGEST_ERROR = 0.05


class Network:
    """A transformer, by its configuration and its tensors; everything is computed in float64."""

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
        """Return whether a layer has hidden units."""
        return self.layers[layer].get("feed_forward") is not None

    def ids(self, tokens: list[Any]) -> list[int]:
        """Return the row of W_E for each token: exactly that token, or else one that is equal."""
        vocabulary = self.config["vocabulary"]
        rows = []
        for token in tokens:
            same = [i for i, v in enumerate(vocabulary) if type(v) is type(token) and v == token]
            rows.append(same[0] if same else vocabulary.index(token))
        return rows

    def embeddings(self, rows: list[list[Any]]) -> tuple[Any, Any]:
        """Return what the tokens and the positions of inputs of one length add to the stream."""
        return self.embed([self.ids(row) for row in rows])

    def embed(self, ids: Any) -> tuple[Any, Any]:
        """Return what tokens and what positions add to the stream, [batch, position, d_model]."""
        ids = np.asarray(ids)
        size = ids.shape[1] + self.sink
        places = np.repeat(self.tensors["pos_embed.W_pos"][None, :size], len(ids), axis=0)
        words = np.zeros_like(places)
        words[:, self.sink :] = self.tensors["embed.W_E"][ids]
        return words, places

    def norm(self, hook: str, stream: Any) -> Any:
        """Return what is read at a hook: the stream, after a layer norm where there is one."""
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
        """Return queries, keys or values, [batch, position, head, d_head], of what is read."""
        weight = self.tensors[f"blocks.{layer}.attn.W_{letter}"]
        bias = self.tensors[f"blocks.{layer}.attn.b_{letter}"]
        return np.swapaxes(read[:, None] @ weight, 1, 2) + bias

    def attended(self, layer: int, q: Any, k: Any, v: Any) -> Any:
        """Return what each head gives, [batch, position, head, d_head]."""
        scores = np.swapaxes(q, 1, 2) @ np.transpose(k, (0, 2, 3, 1))
        if self.config.get("causal"):
            ahead = np.triu(np.ones(scores.shape[-2:], bool), 1)
            scores = np.where(ahead, -np.inf, scores)
        top = scores.max(axis=-1, keepdims=True)
        kinds = self.layers[layer]["attention"]["kinds"]
        hard = np.array([kind == "hard" for kind in kinds])[:, None, None]
        weights = np.where(hard, (scores == top).astype(float), np.exp(scores - top))
        # Summed first and divided after: a mean of integers then has no rounding but the last.
        mixed = weights @ np.swapaxes(v, 1, 2) / weights.sum(axis=-1, keepdims=True)
        return np.swapaxes(mixed, 1, 2)

    def stream(self, ids: Any, tap: Callable[[str, Any], Any] | None = None) -> Any:
        """Return the residual stream after the last layer."""
        words, places = self.embed(ids)
        return self.forward(words + places, tap)

    def forward(self, stream: Any, tap: Callable[[str, Any], Any] | None = None, first: int = 0) -> Any:
        """Return the residual stream after the last layer, from layer ``first`` on.

        ``tap`` gets the name of a hook and its activation; what it returns, if not None, replaces it.
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
        """Return logits, [batch, position, d_vocab_out]; none for the sink."""
        read = self.norm(FINAL, stream[:, self.sink :])
        return read @ self.tensors["unembed.W_U"] + self.tensors["unembed.b_U"]

    def logits(self, ids: Any) -> Any:
        """Return the logits of a batch of token ids of one length."""
        return self.read_off(self.stream(ids))

    def answers(self, logits: Any) -> Any:
        """Return the place of the largest logit; a number where answers are real numbers."""
        return logits.argmax(axis=-1) if self.is_categorical else logits[..., 0]

    def __call__(self, rows: list[list[Any]]) -> list[list[Any]]:
        """Return the answers to inputs (lists of tokens) of any lengths."""
        results: list[list[Any]] = [[] for _ in rows]
        for size in sorted({len(row) for row in rows}):
            places = [i for i, row in enumerate(rows) if len(row) == size]
            answers = self.answers(self.logits([self.ids(rows[i]) for i in places])).tolist()
            outputs = self.config.get("outputs")
            for i, answer in zip(places, answers, strict=True):
                results[i] = answer if outputs is None else [outputs[n] for n in answer]
        return results


def load_network(folder: Path) -> Network:
    """Return the network of an item."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return Network(config, load_file(str(folder / "model.safetensors")))


def agree(actual: list[Any], expected: list[Any], tolerance: float) -> bool:
    """Return whether two answers are equal; real numbers up to the tolerance."""
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
    """Return the number of inputs that were run, and what is wrong with an item."""
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
    """Return the SHA-256 of every file that the dataset has, by its path."""
    sums = {}
    for line in (folder / SUMS).read_text(encoding="utf-8").splitlines():
        digest, _, name = line.partition("  ")
        sums[name] = digest
    return sums


def check_sums(folder: Path, sums: dict[str, str]) -> list[str]:
    """Return which files are missing, changed, or not listed."""
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
    names = {path.as_posix() for path in present if path.parts[0] != WORKSHOP}
    wrong += [f"{name}: is not listed in {SUMS}" for name in sorted(names - {*sums, SUMS})]
    return wrong


def verify(folder: Path) -> dict[str, Any]:
    """Return what was checked, and everything that is wrong."""
    sums = listed(folder)
    wrong = check_sums(folder, sums)
    items = sorted({str(Path(name).parent) for name in sums if name.endswith("/model.safetensors")})
    if not items:
        wrong.append("no item is listed")
    inputs = 0
    for item in items:
        try:
            count, problems = check_item(folder / item)
        except Exception as error:  # whatever a changed file leads to is one more thing that is wrong
            count, problems = 0, [f"cannot be run: {type(error).__name__}: {error}"]
        inputs += count
        wrong += [f"{item}: {problem}" for problem in problems[:3]]
    return {"items": len(items), "files": len(sums), "inputs": inputs, "wrong": wrong}


def main() -> int:
    """Check a folder, and say what was found."""
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
    return 1 if report["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
