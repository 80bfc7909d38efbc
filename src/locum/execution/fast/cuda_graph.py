"""Record a run of a plan on a GPU as a CUDA graph, so that one launch runs all kernels of the plan.

If a model is small, a run on a GPU without a CUDA graph spends most of its time on kernel launches.
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
#: Number of ordinary runs before a plan is recorded. These runs also initialise the CUDA libraries.
_RUNS_BEFORE = 2
#: Maximum number of recordings of a plan, which is recorded again if, for example, the addresses of
#: operands change.
_MOST_RECORDINGS = 4
#: Maximum number of bytes of operands, or of results, that are copied in a run. An H200 copies them in
#: 0.26 ms.
_MOST_COPIED = 2**29
#: Maximum number of cached graphs. The least recently used graph is dropped first.
_MOST_GRAPHS = 32

#: Lock that is held while a graph is recorded or launched, since graphs share their memory.
_lock = Lock()
_kept: OrderedDict[int, weakref.ref[GraphRunner]] = OrderedDict()


class GraphRunner:
    """A function of tensors of fixed shapes that is recorded as a CUDA graph after two ordinary runs.

    The function is not recorded if it synchronises with the GPU, or if too many bytes would be copied
    in each run. Results of a graph are copies, so the next run does not change them. The graph reads
    operands in place if their address has been the same in all runs, such as parameters. All other
    operands are first copied to the memory that the graph reads.
    """

    def __init__(self, function: Callable[[Tensors], Tensors]) -> None:
        self._function = function
        self._addresses: list[int] = []
        #: The indices of operands whose address has changed between runs.
        self._moving: set[int] = set()
        self._runs = self._recordings = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._stream: torch.cuda.Stream | None = None
        self._operands: Tensors = []
        self._results: Tensors = []
        #: The indices of operands that are copied before the graph runs.
        self._copied: set[int] = set()

    def __call__(self, operands: Tensors) -> Tensors:
        """Return the results of the function on ``operands``, by the CUDA graph if it can be used."""
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
        """Delete the CUDA graph, its operands and its results, and count ordinary runs from 0 again."""
        self._graph, self._operands, self._results, self._runs = None, [], [], 0

    def _give_up(self) -> None:
        self.drop()
        self._recordings = _MOST_RECORDINGS

    def _record(self, operands: Tensors, stream: torch.cuda.Stream) -> bool:
        """Record a graph; return False if recording fails, or if too many bytes would be copied."""
        copied = set(self._moving)
        if _count_bytes([operands[n] for n in copied]) > _MOST_COPIED:
            self._give_up()
            return False
        self.drop()
        self._recordings += 1
        with lasting(), torch.no_grad():  # tensors created in inference mode cannot be written to later
            own = [operand.clone() if n in copied else operand for n, operand in enumerate(operands)]
        device = operands[0].device
        graph, recorder = torch.cuda.CUDAGraph(), _recorders.get(device)
        # By default, torch records on the device that was current when it created its stream.
        if recorder is None:
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
        except RuntimeError:  # for example, a step synchronises with the GPU
            self._give_up()
            return False
        self._graph, self._stream, self._results = graph, stream, results
        # Operands that are not copied belong to the caller and are not kept here.
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
    """Mark a runner as most recently used, and drop the least recently used graphs above the limit."""
    number = id(runner)
    _kept[number] = weakref.ref(runner, lambda _: _kept.pop(number, None))
    _kept.move_to_end(number)
    while len(_kept) > _MOST_GRAPHS:
        oldest = _kept.popitem(last=False)[1]()
        if oldest is not None:
            oldest.drop()


#: For each device, the stream on which graphs are recorded.
_recorders: dict[torch.device, torch.cuda.Stream] = {}
_make_stream: Callable[[torch.device], torch.cuda.Stream] = torch.cuda.Stream


#: For each stream, the memory pool of the graphs that run in sequence on it.
_pools: dict[torch.cuda.Stream, torch.cuda.MemPool] = {}


def _pool(stream: torch.cuda.Stream) -> torch.cuda.MemPool:
    if stream not in _pools:
        _pools[stream] = torch.cuda.MemPool()
    return _pools[stream]
