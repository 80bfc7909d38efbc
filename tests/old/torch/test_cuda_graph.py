"""Runs that are recorded as CUDA graphs, with a graph that repeats the function on a CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from locum.execution.fast import cuda_graph  # noqa: E402
from locum.execution.fast.cuda_graph import GraphRunner  # noqa: E402


class Graph:
    """Repeats a product on the tensors that were recorded."""

    recorded: Any = None
    replays = 0

    def replay(self) -> None:
        (one, other), (result,) = self.recorded
        with torch.inference_mode():  # a graph writes to memory whatever the mode is
            result.copy_(one * other)
        Graph.replays += 1


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """Replace the CUDA graphs of PyTorch; return those that are recorded."""
    made: list[Graph] = []

    @contextlib.contextmanager
    def record(graph: Graph, **_: Any) -> Iterator[None]:
        made.append(graph)
        yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", record)
    monkeypatch.setattr(torch.cuda, "device", lambda _: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: "stream")
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda, "MemPool", lambda: contextlib.nullcontext())
    monkeypatch.setattr(contextlib.nullcontext, "id", (0, 0), raising=False)
    monkeypatch.setattr(cuda_graph, "_make_stream", lambda _: "recorder")
    monkeypatch.setattr(Graph, "replays", 0)
    return made


def make_runner(graphs: list[Graph]) -> GraphRunner:
    """Return a runner of the product of two tensors."""

    def multiply(operands: list[Any]) -> list[Any]:
        results = [operands[0] * operands[1]]
        if graphs and graphs[-1].recorded is None:
            graphs[-1].recorded = operands, results
        return results

    return GraphRunner(multiply)


def test_parameters_are_read_where_they_are_and_inputs_are_copied(graphs: list[Graph]) -> None:
    runner, weight, kept = make_runner(graphs), torch.full((3,), 2.0), []
    for number in range(8):
        x = torch.full((3,), float(number))
        weight.add_(1)
        kept.append((x, weight.clone(), runner([x, weight])[0]))
    assert all(torch.equal(x * w, result) for x, w, result in kept)
    assert (len(graphs), Graph.replays) == (1, 6)


def test_parameters_that_move_are_recorded_again(graphs: list[Graph]) -> None:
    runner = make_runner(graphs)
    kept: list[Any] = []
    for number in range(20):
        weight = torch.full((3,), float(number // 7)) if number % 7 == 0 else kept[-1][1]
        x = torch.full((3,), float(number))
        kept.append((x, weight, runner([x, weight])[0]))
    assert all(torch.equal(x * w, result) for x, w, result in kept)
    assert len(graphs) == 2


def test_inference_mode_and_gradients_may_follow_each_other(graphs: list[Graph]) -> None:
    runner, weight, kept = make_runner(graphs), torch.ones(3), []
    for number in range(8):
        with torch.inference_mode() if number < 5 else torch.no_grad():
            x = torch.full((3,), float(number))
            kept.append((number, runner([x, weight])[0]))
    assert all(result.tolist() == [number] * 3 for number, result in kept)
    assert Graph.replays > 3


def test_large_results_are_not_recorded(graphs: list[Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_graph, "_MOST_COPIED", 8)
    runner = make_runner(graphs)
    for number in range(6):
        (result,) = runner([torch.full((3,), float(number)), torch.ones(3)])
        assert result.tolist() == [number] * 3
    assert not graphs


def test_few_graphs_are_kept(graphs: list[Graph], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_graph, "_MOST_GRAPHS", 2)
    runners = [make_runner(graphs) for _ in range(3)]
    for runner in runners:
        for number in range(4):
            (result,) = runner([torch.full((3,), float(number)), torch.ones(3)])
            assert result.tolist() == [number] * 3
    assert [runner._graph is None for runner in runners] == [True, False, False]
