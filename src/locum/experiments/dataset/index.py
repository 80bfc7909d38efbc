"""Write the index, the metadata, the checksums and the scripts of a dataset.

``index.parquet`` contains a row for each item, with one type per column. ``index.jsonl`` contains the
same rows. ``README.md`` is the data card, and ``croissant.json`` describes the files and columns
(Croissant 1.0). ``SHA256SUMS`` contains the digest of every other file of the dataset.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import io
import json
import platform
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from locum import __version__
from locum.errors import InputError
from locum.experiments.dataset.verify import ROWS, SUMS, content_hash, is_listed
from locum.files import write_file

INDEX, METADATA, CARD, LICENCE = "index.parquet", "croissant.json", "README.md", "LICENSE"
#: Scripts of the dataset and their source modules, which require only NumPy and safetensors.
SCRIPTS = {"verify.py": "verify", "score.py": "scoring"}
CITATION = (
    "Locum: a universal simulator of attention, and the RASP it is written in "
    f"(version {__version__}), dataset of compiled circuits"
)

#: Type and description of every column.
COLUMNS: Mapping[str, tuple[type, str]] = {
    "id": (str, "tier and name of the item"),
    "circuit": (str, "name of the circuit, the same in all tiers"),
    "tier": (str, "plain, rotated, superposed, decoys, normed, realistic or trained"),
    "split": (str, "train, test, random_train or random_test"),
    "name": (str, "name of the program, or random"),
    "family": (str, "family of the program, or random"),
    "program_hash": (str, "stable hash of the program"),
    "shape": (str, "hash of the shape of the program"),
    "attention": (str, "hard or softmax"),
    "causal": (bool, "whether the network is a decoder"),
    "layers": (int, "number of layers"),
    "heads": (int, "number of heads in all layers, including decoys"),
    "heads_in_layers": (str, "number of heads of each layer, separated by spaces"),
    "true_heads": (int, "number of heads that are not decoys"),
    "hidden_units": (int, "number of ReLU units in all layers"),
    "d_model": (int, "number of axes of the residual stream"),
    "slots": (int, "number of rows of slots.safetensors"),
    "parameters": (int, "number of weights, including zeros"),
    "vocabulary": (int, "number of tokens in the vocabulary"),
    "shortest": (int, "length of the shortest input"),
    "longest": (int, "length of the longest input"),
    "inputs": (int, "number of inputs on which the network and the program were compared"),
    "all_inputs": (bool, "whether these are all possible inputs"),
    "largest_error": (float, "largest error of a real-valued answer; 0 for categorical answers"),
    "tolerance": (float, "largest error that is allowed"),
    "edges": (int, "number of edges of the circuit"),
    "necessary_edges": (int, "number of edges that were found to be necessary"),
    "sufficient_edges": (int, "number of edges that were found to be sufficient"),
    "circuit_on_all_inputs": (bool, "whether edges were tested on all inputs"),
    "folder": (str, "folder of the item"),
    "sha256": (str, "SHA-256 hash of model.safetensors"),
}


def _pyarrow() -> Any:
    try:
        importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise InputError("the index of a dataset needs pyarrow: pip install 'locum[dataset]'") from None
    return importlib.import_module("pyarrow")


def write_index(place: Path, rows: list[dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    """Write the index and the accompanying files of a dataset, and return a summary.

    The rows may be in any order. The hash of the weights is added to each row.
    """
    for row in rows:
        row["sha256"] = _digest(place / row["folder"] / "model.safetensors")
    rows = sorted(rows, key=lambda row: str(row["id"]))
    write_file(place / INDEX, _parquet(rows))
    lines = (json.dumps({name: row[name] for name in COLUMNS}, ensure_ascii=False) for row in rows)
    write_file(place / ROWS, "".join(f"{line}\n" for line in lines))
    for name, module in SCRIPTS.items():
        write_file(place / name, _script(module))
    write_file(place / LICENCE, _LICENCE)
    write_file(place / CARD, card(place, rows, request))
    write_file(place / METADATA, json.dumps(croissant(place, request), indent=1) + "\n")
    names = sorted(
        path.relative_to(place).as_posix()
        for path in place.rglob("*")
        if path.is_file() and is_listed(path.relative_to(place))
    )
    write_file(place / SUMS, "".join(f"{_digest(place / name)}  {name}\n" for name in names))
    return {
        "folder": str(place),
        **request,
        "items": len(rows),
        "by_tier": dict(sorted(Counter(row["tier"] for row in rows).items())),
        "by_split": dict(sorted(Counter(row["split"] for row in rows).items())),
        "by_family": dict(sorted(Counter(row["family"] for row in rows).items())),
        "by_layers": dict(sorted(Counter(str(row["layers"]) for row in rows).items())),
        "by_attention": dict(sorted(Counter(row["attention"] for row in rows).items())),
        "files": len(names),
        "content": content_hash(place),
        "index": _digest(place / INDEX),
        "sums": _digest(place / SUMS),
    }


def read_index(place: Path) -> list[dict[str, Any]]:
    """Return the rows of the index in the folder of a dataset."""
    arrow = _pyarrow()
    try:
        rows: list[dict[str, Any]] = arrow.parquet.read_table(place / INDEX).to_pylist()
    except (OSError, arrow.ArrowException) as error:
        raise InputError(f"cannot read {INDEX} of the dataset in {place}: {error}") from None
    return rows


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _script(name: str) -> str:
    module = importlib.util.find_spec(f"locum.experiments.dataset.{name}")
    assert module is not None
    assert module.origin is not None
    return Path(module.origin).read_text(encoding="utf-8")


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    arrow = _pyarrow()
    types = {str: arrow.string(), bool: arrow.bool_(), int: arrow.int64(), float: arrow.float64()}
    schema = arrow.schema(
        [arrow.field(name, types[kind], nullable=False) for name, (kind, _) in COLUMNS.items()]
    )
    table = arrow.Table.from_pylist([{name: row[name] for name in COLUMNS} for row in rows], schema)
    buffer = io.BytesIO()
    arrow.parquet.write_table(table, buffer, compression="none")
    return buffer.getvalue()


_LICENCE = """MIT License

Copyright (c) 2026 The Locum authors

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""


def card(place: Path, rows: list[dict[str, Any]], request: dict[str, Any]) -> str:
    """Return the data card of a dataset: contents, splits, loading and scoring, versions, licence."""
    packages = ("numpy", "safetensors", "pyarrow")
    versions = {"Locum": __version__, "Python": platform.python_version()}
    versions |= {name: importlib.metadata.version(name) for name in packages}
    splits = Counter((row["split"], row["tier"]) for row in rows)
    tiers = [tier for tier in request["tiers"] if any(row["tier"] == tier for row in rows)]
    names = sorted({split for split, _ in splits})
    families = Counter(row["family"] for row in rows if row["tier"] == tiers[0])
    table = [
        f"| split | {' | '.join(tiers)} |",
        f"|{'---|' * (len(tiers) + 1)}",
        *(f"| `{name}` | {' | '.join(str(splits[name, t]) for t in tiers)} |" for name in names),
    ]
    return _CARD.format(
        size=request["size"],
        seed=request["seed"],
        items=len(rows),
        table="\n".join(table),
        families=", ".join(f"{name} ({count})" for name, count in sorted(families.items())),
        versions="\n".join(f"| {name} | {version} |" for name, version in versions.items()),
        content=content_hash(place),
        index=_digest(place / INDEX),
        citation=CITATION,
        item=rows[0]["folder"],
        split=rows[0]["split"],
        columns="\n".join(f"| `{name}` | {what} |" for name, (_, what) in COLUMNS.items()),
    )


_CARD = """---
license: mit
pretty_name: Compiled circuits
tags: [interpretability, circuits, transformers]
configs:
- config_name: default
  data_files: index.jsonl
---

# Compiled circuits

{size} circuits in {items} transformers, each with its ground truth. The networks are compiled from
programs or, in the tier `trained`, trained to compute programs. The labels are checked by interchange
interventions.

## Contents

{table}

`train` and `test` contain named programs. `random_train` and `random_test` contain random programs.
All programs of one shape are training programs, or all are test programs. The shape of a program is
its graph without numbers, tables and names. Families of the first tier: {families}.

| file of an item | content |
|---|---|
| `program.rasp` | the program |
| `config.json`, `model.safetensors` | the network |
| `circuit.json` | the label: nodes and edges; `necessity` of an edge is alone, jointly or length |
| `slots.safetensors` | `directions` [slot, d_model]: the vector of each slot in the residual stream |
| `examples.json` | inputs with outputs, and counterfactual pairs |
| `certificate.json` | number of inputs on which network and program agree, largest error, tolerance |

## Loading and scoring

This code requires only Python, NumPy and safetensors.

```python
from pathlib import Path

from score import Truth
from verify import load_circuit, load_network, load_rows

row = load_rows(Path("."), split="{split}")[0]
network = load_network(Path(row["folder"]))
truth = Truth(load_circuit(Path(row["folder"])))
print(network([network.config["vocabulary"][:2]]), len(truth.candidates), len(truth.edges))
```

`python score.py {item} found.json` prints precision, recall, F1 and average
precision. `score.py` documents the format of `found.json`. `python verify.py` runs all networks and
checks all files.

## Columns of the index

| column | content |
|---|---|
{columns}

## Versions and hashes

| software | version |
|---|---|
{versions}

The seed is {seed}. `SHA256SUMS` contains the hash of every other file.

| SHA-256 | |
|---|---|
| of all files of the items, as `verify.py` prints it | `{content}` |
| of `index.parquet` | `{index}` |

## Limitations

Networks are small. Labels are checked on a sample of inputs if `circuit_on_all_inputs` is false.
Programs of different shapes may compute the same function.

## Licence and citation

MIT, see `LICENSE`. Cite {citation}, with the seed, the size and the hash.
"""

_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
_TYPES = {str: "sc:Text", bool: "sc:Boolean", int: "sc:Integer", float: "sc:Float"}


def croissant(place: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of a dataset in the Croissant 1.0 format."""
    tiers = ", ".join(request["tiers"])
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "locum-circuits",
        "description": (
            f"Transformers for {request['size']} programs, with their circuits as ground truth "
            f"(tiers: {tiers}; seed {request['seed']})."
        ),
        "license": "https://spdx.org/licenses/MIT",
        "url": "https://arxiv.org/abs/2506.18739",
        "version": __version__,
        "citeAs": CITATION,
        "isLiveDataset": False,
        "distribution": [
            _file(place, INDEX, "application/x-parquet", "One row for each item."),
            _file(place, ROWS, "application/jsonlines", "The same rows as JSON."),
            _file(place, "verify.py", "text/x-python", "Checks all files and runs all networks."),
            _file(place, "score.py", "text/x-python", "Scores circuits."),
            *(
                {
                    "@type": "cr:FileSet",
                    "@id": name,
                    "name": name,
                    "description": what,
                    "encodingFormat": kind,
                    "includes": f"items/*/*/{name}",
                }
                for name, kind, what in _FILES
            ),
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "items",
                "name": "items",
                "description": "One record for each item.",
                "key": {"@id": "items/id"},
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"items/{name}",
                        "name": name,
                        "description": what,
                        "dataType": _TYPES[kind],
                        "source": {"fileObject": {"@id": INDEX}, "extract": {"column": name}},
                    }
                    for name, (kind, what) in COLUMNS.items()
                ],
            }
        ],
    }


_FILES = (
    ("program.rasp", "text/plain", "The program."),
    ("config.json", "application/json", "The configuration of the network."),
    ("model.safetensors", "application/octet-stream", "The weights."),
    ("circuit.json", "application/json", "The circuit: nodes, edges, and which edges are necessary."),
    ("slots.safetensors", "application/octet-stream", "The direction of each slot of the circuit."),
    ("examples.json", "application/json", "Inputs with expected outputs, and counterfactual pairs."),
    ("certificate.json", "application/json", "On how many inputs network and program agree."),
)


def _file(place: Path, name: str, kind: str, what: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "description": what,
        "contentUrl": name,
        "encodingFormat": kind,
        "sha256": _digest(place / name),
    }
