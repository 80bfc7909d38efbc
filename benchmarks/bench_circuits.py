"""Check the circuits of more than a hundred networks by interchange interventions on all inputs.

The networks are compiled from everyday programs for lengths 2 to 4, and from Tracr's programs for
lengths 2 to 5. They use at most three tokens, softmax heads and ReLU units. For each network, the
benchmark counts the edges of the circuit and its necessary edges. An edge is necessary if changing its
value changes some output, alone or together with edges that are not necessary alone. A circuit is
complete if changing all unnecessary edges at once changes no output. Then every s-op that the network
contains is interchanged in the program and in the network, and the pairs of inputs with different
results are counted. A difference is allowed only if the circuit states that a table bypasses the s-op.

With ``--dataset FOLDER``, the networks are the items of a dataset whose circuits were checked on all
inputs. The check must find the labels of the dataset again.

The exit code is 1 if a circuit is not complete, if it was not checked on all inputs, or if its edges
differ from the labels of the dataset. The exit code is also 1 if a necessary edge changes no output,
alone or together with the unnecessary edges, or if an s-op differs that is not bypassed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.tracr_programs import LIBRARY, vocabulary_of

import locum
from benchmarks.harness import Row
from locum.experiments.circuits import alignment, check_circuit
from locum.experiments.circuits.circuit_checking import runs_on
from locum.experiments.circuits.patching import CompiledNetwork, more_pairs_of, pairs_of
from locum.experiments.dataset import load
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.circuit import Circuit
from locum.rasp.programs import EVERYDAY, load_everyday

#: Maximum number of inputs; no network has more inputs.
ALL = 400


def networks() -> Iterator[tuple[str, int, CompiledTransformer]]:
    """Compile the programs to networks over at most three tokens."""
    for name, vocabulary in EVERYDAY.items():
        for length in (2, 3, 4):
            yield from _compiled(name, load_everyday(name).program, length, list(vocabulary)[:3])
    for name, make in LIBRARY.items():
        for length in (2, 3, 4, 5):
            vocabulary = vocabulary_of(name, length)
            yield from _compiled(f"tracr {name}", make(length), length, list(vocabulary)[:3])


def _compiled(
    name: str, program: Any, length: int, vocabulary: list[Any]
) -> Iterator[tuple[str, int, CompiledTransformer]]:
    options: dict[str, Any] = {"attention": "softmax", "feed_forward": "relu"}
    yield name, length, locum.compile(program, length=length, vocabulary=vocabulary, **options)


def items(folder: Path) -> Iterator[tuple[str, int, CompiledTransformer]]:
    """Load the items of a dataset whose circuits were checked on all inputs."""
    for item in load(folder).where(circuit_on_all_inputs=True):
        yield item.row["circuit"], item.row["longest"], item.model


def breaking(model: CompiledTransformer, circuit: Circuit) -> int:
    """Count the necessary edges that change an output, alone or together with all unnecessary edges."""
    network = CompiledNetwork(model)
    runs = runs_on(network, list(pairs_of(model, ALL, 0)))
    runs += runs_on(network, list(more_pairs_of(model, ALL, 0)))
    idle = [edge for edge in circuit.edges if not edge.necessary]
    result = 0
    for edge in circuit.necessary:
        for edges in ([edge], [*idle, edge]):
            paths = [network.path(changed) for changed in edges]
            if not all(run.equal(run.patch(paths)).all() for run in runs):
                result += 1
                break
    return result


def measure(name: str, length: int, model: CompiledTransformer, pairs: int) -> Row:
    """Check the circuit of one network, and return a row with the counts."""
    began = time.process_time()
    circuit = check_circuit(model, most=ALL)
    aligned = alignment(model, most=pairs)
    return {
        "program": name, "length": length, "edges": len(circuit.edges),
        "necessary": len(circuit.necessary), "breaking": breaking(model, circuit),
        "pairs": circuit.checked["pairs"], "all_inputs": circuit.checked["all inputs"],
        "complete": circuit.checked["complete"], "sops": len(aligned),
        "compared": sum(part.pairs for part in aligned),
        "passed_by": sum(bool(part.passed_by) for part in aligned),
        "differ": {part.label: part.mismatches for part in aligned if part.mismatches},
        "mismatches": sum(part.mismatches for part in aligned if not part.passed_by),
        "labels_hold": not model.circuit.checked or model.circuit.edges == circuit.edges,
        "cpu_seconds": time.process_time() - began,
    }  # fmt: skip


def main() -> int:
    """Check all networks, print the counts, and return 1 if any claim does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20, help="pairs of inputs for each s-op")
    parser.add_argument("--dataset", type=Path, help="the folder of a dataset")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    chosen = items(arguments.dataset) if arguments.dataset else networks()
    rows = [measure(*network, arguments.pairs) for network in chosen]
    holds = all(
        row["complete"]
        and row["all_inputs"]
        and row["breaking"] == row["necessary"]
        and not row["mismatches"]
        and row["labels_hold"]
        for row in rows
    )
    if arguments.json:
        print(json.dumps({"benchmark": "circuits", "holds": holds, "rows": rows}))
        return 0 if holds else 1
    edges, necessary = (sum(row[name] for row in rows) for name in ("edges", "necessary"))
    print(
        f"{len(rows)} networks, {edges:,} edges, {necessary:,} necessary, of which "
        f"{sum(row['breaking'] for row in rows):,} break an answer; "
        f"{sum(row['complete'] for row in rows)} complete; {sum(row['pairs'] for row in rows):,} pairs,"
        f" all inputs; {sum(row['cpu_seconds'] for row in rows):.0f} s of CPU"
    )
    print(
        f"{sum(row['sops'] for row in rows):,} s-ops, {sum(row['compared'] for row in rows):,} pairs; "
        f"{sum(row['passed_by'] for row in rows)} s-ops passed by, of which "
        f"{sum(len(row['differ']) for row in rows)} differ; "
        f"{sum(row['mismatches'] for row in rows)} mismatches of all others"
    )
    print("All claims hold." if holds else "Some claims do not hold.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
