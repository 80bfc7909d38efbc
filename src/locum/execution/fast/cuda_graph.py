"""Record the runs of a plan on a GPU as a CUDA graph, so that a run has one launch.

A small model on a GPU spends its time on launching kernels. A CUDA graph launches all of them at once.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, cast

import torch

from locum.execution.arrays import lasting
from locum.shared_state import Lock

Tensors = list[torch.Tensor]
#: Runs before a plan is recorded. They also initialise the libraries of CUDA.
_RUNS_BEFORE = 2
#: How often a plan is recorded again, because its operands are in other memory than before.
_MOST_RECORDINGS = 4
#: The most bytes of operands and of results that are copied in a run: 0.2 ms on an H200.
_MOST_COPIED = 2**29
#: The most graphs that are kept. The least recently used one is dropped first.
_MOST_GRAPHS = 32

#: Held during a run: graphs share their memory.
_lock = Lock()
_kept: OrderedDict[int, weakref.ref[GraphRunner]] = OrderedDict()


class GraphRunner:
    """Runs a function of tensors of fixed shapes; as a CUDA graph when it is called again.

    The function must not wait for the GPU. Results are copies, so that the next run does not change
    them. Operands at the same address as in the run before, such as parameters, are read where they
    are, and all others are copied to the memory that the graph reads.
    """

    def __init__(self, function: Callable[[Tensors], Tensors]) -> None:
        self._function = function
        self._addresses: list[int] = []
        #: The places of operands that were at different addresses.
        self._moving: set[int] = set()
        self._runs = self._recordings = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream: torch.cuda.Stream | None = None
        self._operands: Tensors = []
        self._results: Tensors = []
        #: The places of operands that are copied.
        self._copied: set[int] = set()

    def __call__(self, operands: Tensors) -> Tensors:
        """Return the results of the function."""
        is_off = self._graph is None and self._recordings >= _MOST_RECORDINGS
        if is_off or torch.cuda.is_current_stream_capturing():
            return self._function(operands)
        stream = torch.cuda.current_stream(operands[0].device)
        with _lock:
            addresses = [operand.data_ptr() for operand in operands]
            if self._addresses:
                places = zip(addresses, self._addresses, strict=True)
                self._moving.update(n for n, (one, before) in enumerate(places) if one != before)
            if self._graph is not None and stream == self._stream and self._moving <= self._copied:
                _keep(self)
                return self._replay(operands)
            self._runs += 1
            is_due = self._runs > _RUNS_BEFORE and self._recordings < _MOST_RECORDINGS
            self._addresses = addresses
            if is_due and self._record(operands, stream):
                return self._replay(operands)
        results = self._function(operands)
        if _count_bytes(results) > _MOST_COPIED:
            self._give_up()
        return results

    def drop(self) -> None:
        """Free the graph."""
        self._graph, self._operands, self._results, self._runs = None, [], [], 0

    def _give_up(self) -> None:
        self.drop()
        self._recordings = _MOST_RECORDINGS

    def _record(self, operands: Tensors, stream: torch.cuda.Stream) -> bool:
        """Record a graph; return False if the function cannot be recorded, or copies too much."""
        copied = set(self._moving)
        if _count_bytes([operands[n] for n in copied]) > _MOST_COPIED:
            self._give_up()
            return False
        self.drop()
        self._recordings += 1
        with lasting(), torch.no_grad():  # inference mode does not allow later copies to its tensors
            own = [operand.clone() if n in copied else operand for n, operand in enumerate(operands)]
        device = operands[0].device
        graph, recorder = torch.cuda.CUDAGraph(), _recorders.get(device)
        if recorder is None:  # torch's own is on the device that was current when it was made
            recorder = _recorders[device] = _make_stream(device)
        try:
            with (
                torch.cuda.device(device),
                torch.cuda.graph(
                    graph,
                    pool=cast(Any, _pool(stream).id),
                    stream=recorder,
                    capture_error_mode="thread_local",
                ),
            ):
                results = self._function(own)
        except RuntimeError:  # a step that waits for the GPU
            self._give_up()
            return False
        self._graph, self._stream, self._results = graph, stream, results
        # Memory that is not copied belongs to the caller, who may free it.
        self._copied, self._operands = copied, [own[n] for n in sorted(copied)]
        _keep(self)
        return True

    def _replay(self, operands: Tensors) -> Tensors:
        assert self._graph is not None
        for place, own in zip(sorted(self._copied), self._operands, strict=True):
            own.copy_(operands[place])
        self._graph.replay()
        return [result.clone() for result in self._results]


def _count_bytes(tensors: Tensors) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _keep(runner: GraphRunner) -> None:
    """Remember a runner as the one that was used last, and drop the graph that was used first."""
    number = id(runner)
    _kept[number] = weakref.ref(runner, lambda _: _kept.pop(number, None))
    _kept.move_to_end(number)
    while len(_kept) > _MOST_GRAPHS:
        oldest = _kept.popitem(last=False)[1]()
        if oldest is not None:
            oldest.drop()


#: The stream of each device on which graphs are recorded.
_recorders: dict[torch.device, torch.cuda.Stream] = {}
_make_stream: Callable[[torch.device], torch.cuda.Stream] = torch.cuda.Stream


#: The memory of the graphs that run on a stream, one after another.
_pools: dict[torch.cuda.Stream, torch.cuda.MemPool] = {}


def _pool(stream: torch.cuda.Stream) -> torch.cuda.MemPool:
    if stream not in _pools:
        _pools[stream] = torch.cuda.MemPool()
    return _pools[stream]
