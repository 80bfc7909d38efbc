"""A network of the dataset in torch and TransformerLens: answers, path patching, baselines."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locum.experiments.circuits.patching import CompiledNetwork
from locum.experiments.dataset import Item, load, score
from locum.experiments.dataset.baseline import by_acdc
from locum.experiments.dataset.making import make
from locum.experiments.dataset.parts import runs_of
from locum.experiments.dataset.scoring import OUTPUT
from locum.networks.transformer.path_patching import Path as EdgePath

torch = pytest.importorskip("torch")
INSTALLED = importlib.util.find_spec("transformer_lens") is not None


@pytest.fixture(scope="module")
def item(tmp_path_factory: pytest.TempPathFactory) -> Item:
    place = tmp_path_factory.mktemp("exports")
    row = make(str(place), "cookbook/induction", length=4, tokens=2)["row"]
    loaded: Item = load(place / row["folder"])
    return loaded


def test_answers_in_torch(item: Item) -> None:
    module = item.model.to_torch()
    for size in (2, 4):
        rows = [row for row in item.inputs if len(row) == size]
        answers = module(torch.as_tensor(item.model.encode(rows)))
        expected = [out for row, out in zip(item.inputs, item.outputs, strict=True) if len(row) == size]
        assert item.model.decode(answers, rows) == expected


@pytest.mark.skipif(not INSTALLED, reason="transformer_lens is not installed")
@pytest.mark.filterwarnings("ignore")
def test_answers_and_path_patching_in_transformer_lens(item: Item) -> None:
    """Every edge, patched with TransformerLens's hooks, gives the answers of Locum's path patching."""
    network = CompiledNetwork(item.model)
    pairs = [pair | {"elsewhere": None} for pair in item.pairs if len(pair["clean"]) == 4][:6]
    (run,) = runs_of(network, pairs)
    hooked = item.model.to_transformer_lens()
    hooked.set_use_split_qkv_input(True)
    hooked.set_use_hook_mlp_in(True)
    tokens = item.model.transformer_lens_inputs([pair["clean"] for pair in pairs])
    sink, width = network.sink, item.model.weights.W_E.shape[1]
    with torch.no_grad():
        clean = hooked(tokens, return_type="logits").numpy()[:, sink:]
        np.testing.assert_array_equal(network.answers(clean), run.answers)
        for writer, reader in item.truth.candidates:
            change = torch.as_tensor(run.difference(EdgePath.read(writer, reader)))

            def add(value: Any, hook: Any, head: int | None, change: Any = change) -> Any:
                target = value if head is None else value[:, :, head]
                target[..., :width] += change
                return value

            name, head = _hook(reader, len(item.model.weights.layers))
            patched = hooked.run_with_hooks(
                tokens, fwd_hooks=[(name, functools.partial(add, head=head))]
            )
            answers = network.answers(patched.numpy()[:, sink:])
            own = run.patch([EdgePath.read(writer, reader)])
            np.testing.assert_array_equal(answers, own, err_msg=f"{writer} {reader}")


def _hook(reader: str, layers: int) -> tuple[str, int | None]:
    """Return the hook of TransformerLens at which a part reads, and its head."""
    if reader == OUTPUT:
        return f"blocks.{layers - 1}.hook_resid_post", None
    parts = reader.split(".")
    block = ".".join(parts[:2])
    return (
        (f"{block}.hook_mlp_in", None)
        if len(parts) == 3
        else (f"{block}.hook_{parts[5]}_input", int(parts[4]))
    )


def test_edges_of_an_item_are_patched(item: Item) -> None:
    pairs = [pair for pair in item.pairs if len(pair["clean"]) == 4][:6]
    clean, other = ([pair[name] for pair in pairs] for name in ("clean", "other"))
    answers = [item.model.patch_edge(clean, other, edge) for edge in item.model.circuit.edges]
    assert any(answer != item.model(clean) for answer in answers)
    for node in item.model.circuit.nodes:
        assert item.model.patch(clean, other, node.id) == item.model.patch(clean, other, node)


def average_precision(item: Item, found: dict[str, Any]) -> float:
    result: float = score(item.truth, found)["levels"]["edges"]["average_precision"]
    return result


def test_gradients_and_acdc_find_more_than_chance(item: Item) -> None:
    from locum.experiments.dataset.attribution import by_attribution

    chance, pairs = len(item.truth.edges) / len(item.truth.candidates), item.pairs[:8]
    assert average_precision(item, by_attribution(item.model, item.truth, pairs)) > chance
    assert average_precision(item, by_attribution(item.model, item.truth, pairs, 4)) > chance
    assert average_precision(item, by_acdc(item.model, item.truth, pairs)) > chance + 0.2


@pytest.mark.parametrize("name", ["c-rasp/dyck", "task/second_half"])
def test_rounding_and_kinks_have_no_gradient(name: str, tmp_path: Path) -> None:
    """Scores of edges are 0 or clearly larger; units at their kinks would have scores in between."""
    from locum.experiments.dataset.attribution import by_attribution

    row = make(str(tmp_path), name, length=4, tokens=2)["row"]
    item = load(tmp_path / row["folder"])
    scores = [edge["score"] for edge in by_attribution(item.model, item.truth, item.pairs[:8])["edges"]]
    assert max(scores) > 1
    assert all(score < 1e-9 or score > 1e-6 for score in scores)
