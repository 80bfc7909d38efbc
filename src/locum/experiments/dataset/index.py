"""Write what a dataset has beside its items: index, metadata, checksums, and the script that verifies.

``index.parquet`` has a row for each item, every column of one type; ``croissant.json`` describes the
files and these columns (Croissant 1.0); ``SHA256SUMS`` has the digest of every file but itself.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import io
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from locum import __version__
from locum.errors import InputError
from locum.experiments.dataset.verify import SUMS, WORKSHOP
from locum.files import write_file

INDEX, METADATA, SCRIPT = "index.parquet", "croissant.json", "verify.py"
CITATION = (
    "Locum: a universal simulator of attention, and the RASP it is written in "
    f"(version {__version__}), dataset of compiled circuits"
)

#: Every column: its type, and what it says.
COLUMNS: Mapping[str, tuple[type, str]] = {
    "id": (str, "tier and name of the item"),
    "circuit": (str, "name of the circuit, the same in all tiers"),
    "tier": (str, "plain, rotated, superposed, decoys, normed or realistic"),
    "split": (str, "train or test, by the shape of the program"),
    "name": (str, "the program, or random"),
    "family": (str, "where the program comes from"),
    "program_hash": (str, "stable hash of the program"),
    "shape": (str, "hash of the program's graph without its constants"),
    "attention": (str, "hard or softmax"),
    "causal": (bool, "whether it is a decoder"),
    "layers": (int, "layers"),
    "heads": (int, "heads in all layers, decoys included"),
    "heads_in_layers": (str, "heads of each layer, separated by blanks"),
    "true_heads": (int, "heads that are not decoys"),
    "hidden_units": (int, "relu units in all layers"),
    "d_model": (int, "axes of the residual stream"),
    "slots": (int, "directions of the residual stream that the circuit names"),
    "parameters": (int, "numbers in the weights"),
    "vocabulary": (int, "tokens there are"),
    "shortest": (int, "length of the shortest input"),
    "longest": (int, "length of the longest input"),
    "inputs": (int, "inputs on which network and program were compared"),
    "all_inputs": (bool, "whether these are all inputs there are"),
    "largest_error": (float, "largest error of a real-valued answer; 0 where answers are categories"),
    "tolerance": (float, "the error that is allowed"),
    "edges": (int, "edges of the circuit"),
    "necessary_edges": (int, "edges that were found to be necessary"),
    "sufficient_edges": (int, "edges that were found to be sufficient"),
    "circuit_on_all_inputs": (bool, "whether edges were tried on all inputs"),
    "folder": (str, "where the item is"),
    "sha256": (str, "SHA-256 of the weights' file"),
}


def _pyarrow() -> Any:
    try:
        importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise InputError("the index of a dataset needs pyarrow: pip install 'locum[dataset]'") from None
    return importlib.import_module("pyarrow")


def write_index(place: Path, rows: list[dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    """Write the index and all that goes with it, from rows in any order; return a summary."""
    for row in rows:
        row["sha256"] = _digest(place / row["folder"] / "model.safetensors")
    rows = sorted(rows, key=lambda row: str(row["id"]))
    write_file(place / INDEX, _parquet(rows))
    write_file(place / SCRIPT, _script())
    write_file(place / METADATA, json.dumps(croissant(place, request), indent=1) + "\n")
    names = sorted(
        path.relative_to(place).as_posix()
        for path in place.rglob("*")
        if path.is_file() and path.relative_to(place).parts[0] not in (WORKSHOP, SUMS)
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
        "index": _digest(place / INDEX),
        "sums": _digest(place / SUMS),
    }


def read_index(place: Path) -> list[dict[str, Any]]:
    """Return the rows of a dataset's index."""
    arrow = _pyarrow()
    try:
        rows: list[dict[str, Any]] = arrow.parquet.read_table(place / INDEX).to_pylist()
    except (OSError, arrow.ArrowException) as error:
        raise InputError(f"expected a dataset with {INDEX} in {place}, got: {error}") from None
    return rows


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _script() -> str:
    module = importlib.util.find_spec("locum.experiments.dataset.verify")
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
    """Return the metadata of a dataset as Croissant 1.0 has it."""
    tiers = ", ".join(request["tiers"])
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "locum-circuits",
        "description": (
            f"{request['size']} transformers compiled from programs, with their circuits as "
            f"ground truth (tiers: {tiers}; seed {request['seed']})."
        ),
        "license": "https://spdx.org/licenses/MIT",
        "url": "https://pypi.org/project/locum/",
        "version": __version__,
        "citeAs": CITATION,
        "isLiveDataset": False,
        "distribution": [
            _file(place, INDEX, "application/x-parquet", "One row for each item."),
            _file(
                place, SCRIPT, "text/x-python", "Checks everything with NumPy and safetensors alone."
            ),
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
    ("config.json", "application/json", "How to feed the weights and read their outputs."),
    ("model.safetensors", "application/octet-stream", "The weights."),
    ("circuit.json", "application/json", "The circuit: nodes, edges, what was found to be necessary."),
    ("slots.safetensors", "application/octet-stream", "The direction of each slot of the circuit."),
    ("examples.json", "application/json", "Inputs with expected outputs, and counterfactual pairs."),
    ("certificate.json", "application/json", "On what network and program were found to agree."),
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
