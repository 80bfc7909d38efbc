"""Run public implementations of EAP and ACDC on exports of a dataset, and score the circuits they find.

``python benchmarks/bench_public_methods.py FOLDER [--items 6] [--json]``. The benchmark requires the
package ``auto_circuit`` (AutoCircuit 1.0.1) and TransformerLens 2.16, whose modules AutoCircuit
imports. If they are not installed, the exit code is 2. AutoCircuit is not changed. It runs on
``item.model.to_transformer_lens()`` with separate inputs of queries, keys and values, and with separate
results of heads.

AutoCircuit reads the last position, and represents token and position embeddings by one source. It
supports no pairs of inputs with exchanged positions. Edges that only position embeddings explain are
therefore not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from locum.experiments.dataset import Item, load
from locum.experiments.dataset.scoring import EMBED, OUTPUT, PLACES, cut_noise, measures

#: The score of an edge that ACDC removes at no threshold.
_KEPT = 1e3


def pairs_of(item: Item, torch: Any) -> list[Any]:
    """Return the pairs of inputs of the largest length with different answers at the last position.

    The list contains clean ids, corrupt ids, clean answers and corrupt answers.
    """
    outputs = item.model.config.outputs or ()
    longest = max(len(pair["clean"]) for pair in item.pairs)
    chosen = [
        pair
        for pair in item.pairs
        if len(pair["clean"]) == longest and pair["answer"][-1] != pair["other_answer"][-1]
    ]
    if not chosen:
        return [[], [], [], []]
    ids = [
        item.model.transformer_lens_inputs([pair[name] for pair in chosen])
        for name in ("clean", "other")
    ]
    answers = [
        [torch.tensor([outputs.index(pair[name][-1])]) for pair in chosen]
        for name in ("answer", "other_answer")
    ]
    return [*ids, *answers]


def found_by(item: Item, method: str) -> dict[tuple[str, str], float] | None:
    """Return the scores of edges by one method, with the names of parts in the dataset.

    Return None if :func:`pairs_of` finds fewer than two pairs of inputs.
    """
    torch = importlib.import_module("torch")
    data = importlib.import_module("auto_circuit.data")
    graphs = importlib.import_module("auto_circuit.utils.graph_utils")
    hooked = item.model.to_transformer_lens()
    hooked.set_use_split_qkv_input(True)
    hooked.set_use_attn_result(True)
    if not hooked.cfg.attn_only:  # TransformerLens 2.16 rejects the hook in networks without MLPs
        hooked.set_use_hook_mlp_in(True)
    prompts = pairs_of(item, torch)
    if len(prompts[2]) < 2:
        return None
    loader = data.PromptDataLoader(
        data.PromptDataset(*prompts), seq_len=None, diverge_idx=0, batch_size=len(prompts[2])
    )
    model = graphs.patchable_model(
        hooked, factorized=True, slice_output="last_seq", separate_qkv=True, device=torch.device("cpu")
    )
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        if method == "EAP":
            algorithm = importlib.import_module("auto_circuit.prune_algos.edge_attribution_patching")
            scores = algorithm.edge_attribution_patching_prune_scores(model, loader, None)
        else:
            algorithm = importlib.import_module("auto_circuit.prune_algos.ACDC")
            options: dict[str, Any] = {"tao_exps": [-5, -4, -3, -2, -1, 0], "tao_bases": [1]}
            scores = algorithm.acdc_prune_scores(model, loader, None, **options)
    return {
        (_part(edge.src.name), _part(edge.dest.name)): abs(
            float(scores[edge.dest.module_name][edge.patch_idx])
        )
        for edge in model.edges
    }


def _part(name: str) -> str:
    """Convert AutoCircuit's name of a part, such as ``A1.0.K``, to ``blocks.1.attn.head.0.k``."""
    if name.startswith("Resid"):
        return EMBED if name == "Resid Start" else OUTPUT
    if name.startswith("MLP"):
        return f"blocks.{name.split()[1]}.mlp"
    layer, head, *letter = name[1:].split(".")
    return ".".join([f"blocks.{layer}.attn.head.{head}", *(one.lower() for one in letter)])


def average_precision(item: Item, found: dict[tuple[str, str], float]) -> float | None:
    """Return the average precision of the scores of edges, or None if it is undefined.

    Edges from position embeddings, and edges from token embeddings that only position embeddings
    explain, are not counted.
    """
    truth = item.truth
    only_places = {(EMBED, r) for w, r in truth.edges if w == PLACES} - set(truth.edges)
    candidates = [edge for edge in truth.candidates if edge[0] != PLACES and edge not in only_places]
    # ACDC assigns an infinite score to edges that it removes at no threshold.
    pairs = [(min(found.get(edge, 0.0), _KEPT), edge in truth.edges) for edge in candidates]
    right = sum(is_right for _, is_right in pairs)
    result: float | None = measures(cut_noise(pairs), right, 0.0)["average_precision"]
    return result


def main() -> int:
    """Run both methods on some items, and print the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--items", type=int, default=6)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    try:
        importlib.import_module("auto_circuit.data")
        importlib.import_module("transformer_lens").HookedTransformer  # noqa: B018
    except ImportError as error:
        print(f"expected AutoCircuit 1.0.1 and TransformerLens 2.16, got: {error}", file=sys.stderr)
        return 2
    rows: list[dict[str, Any]] = []
    for item in load(options.folder):
        if len(rows) == options.items or item.model.config.outputs is None:
            continue
        row: dict[str, Any] = {"item": item.row["id"]}
        for method in ("EAP", "ACDC"):
            found = found_by(item, method)
            row[method] = None if found is None else average_precision(item, found)
        if row["EAP"] is not None:
            rows.append(row)
    if options.json:
        print(json.dumps(rows))
    else:
        for row in rows:
            print(f"{row['item']:<50} EAP {row['EAP']:.2f}  ACDC {row['ACDC']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
