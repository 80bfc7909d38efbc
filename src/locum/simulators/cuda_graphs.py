"""Replay calls of a module on a GPU: what the host does is recorded once, as a CUDA graph.

A small encoder keeps a GPU busy for less time than Python needs to tell it what to do. So the second
call of a module on a shape is recorded; later ones copy X to where the recording reads it, and replay.
Parameters are read where they are: what is written into them counts at once. A module of which
anything else has changed (a part, a setting, a hook, the place of a parameter) counts as another.
Calls that torch differentiates, traces, maps or casts, and those that ``locum.record`` watches, are
never replayed. A recording keeps the memory of its intermediate results.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from locum.locks import Lock
from locum.simulators import recording
from locum.simulators.simulator import keeping

#: Recordings kept for one module; the least recently used one goes first.
_KEPT = 8

Work = Callable[[Tensor], Tensor]


class State:
    """What a module is made of: whether it is still the same is told by identities alone.

    >>> layer = nn.Linear(2, 2)
    >>> state = State(layer)
    >>> state.is_of(layer)
    True
    >>> _ = layer.register_forward_hook(print)
    >>> state.is_of(layer)
    False
    """

    def __init__(self, module: nn.Module) -> None:
        # Not the module itself: who keeps its state must not keep it.
        self._parts = list(module.modules())[1:]
        self._known = [(type(part), _identities(part)) for part in (module, *self._parts)]
        self._places = [(parameter, _place(parameter)) for parameter in module.parameters()]

    def is_of(self, module: nn.Module) -> bool:
        """Return whether the module's parts, settings and parameters are the same, without hooks."""
        return self.is_in_place() and self.has_parts_of(module)

    def is_in_place(self) -> bool:
        """Return whether the parameters that it was made of are where they were."""
        return all(_place(parameter) == place for parameter, place in self._places)

    def has_parts_of(self, module: nn.Module) -> bool:
        """Return whether the module still has its parts, settings and parameters, and no hooks."""
        if _has_global_hooks():
            return False
        for part, (kind, before) in zip((module, *self._parts), self._known, strict=True):
            if type(part) is not kind or any(map(part.__dict__.get, _HOOKS)):
                return False
            now = _identities(part)
            if len(now) != len(before) or not all(map(operator.is_, now, before)):
                return False
        return True


def _identities(module: nn.Module) -> list[object]:
    """List what belongs to a module: settings, parameters, buffers and parts."""
    own = module.__dict__
    return [
        *own.values(),
        *own["_parameters"].values(),
        *own["_buffers"].values(),
        *own["_modules"].values(),
    ]


def _place(parameter: Tensor) -> tuple[int, tuple[int, ...]]:
    return parameter.data_ptr(), parameter.stride()


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def _has_global_hooks() -> bool:
    known: Any = nn.modules.module
    return bool(known._global_forward_hooks or known._global_forward_pre_hooks)


class _Recording(NamedTuple):
    graph: Any
    X: Tensor
    result: Tensor
    #: What the recording reads, and nobody else may hold: plans with their constants, numbers of T.
    kept: list[object]

    def run(self, X: Tensor) -> Tensor:
        """Replay it on X; what comes back is in memory of its own."""
        self.X.copy_(X)
        self.graph.replay()
        return self.result.clone()


class _Module:
    """The recordings of one module, by shapes and settings; None was asked for once."""

    def __init__(self, module: nn.Module) -> None:
        self.state = State(module)
        self.recordings: OrderedDict[Hashable, _Recording | None] = OrderedDict()
        self.refused: set[Hashable] = set()


_modules: WeakKeyDictionary[nn.Module, _Module] = WeakKeyDictionary()
#: Copying, replaying and copying back are one: threads share the tensors of a recording.
_lock = Lock()


def replayed(module: nn.Module, X: Any, work: Work, *, differentiable: bool) -> Tensor | None:
    """Return ``work(X)`` by a recording, or None: then call it.

    ``work`` is what the module does to X, and depends on nothing but the module and X.
    ``differentiable`` says whether gradients of the module's parameters could be asked for.
    """
    if not _can_be_replayed(X) or (torch.is_grad_enabled() and (differentiable or X.requires_grad)):
        return None
    key = (X.shape, X.dtype, X.device, torch.cuda.current_stream(X.device).cuda_stream, *_settings())
    with _lock:
        known = _modules.get(module)
        made = None if known is None else known.recordings.get(key)
        if known is not None and made is not None and known.state.is_in_place():
            result = made.run(X)
            # While the GPU works: was this the module that was recorded?
            if known.state.has_parts_of(module):
                known.recordings.move_to_end(key)
                return result
        if known is None or not known.state.is_of(module):
            if not State(module).is_of(module):  # it has hooks
                return None
            known = _modules[module] = _Module(module)
        if key in known.refused:
            return None
        if key not in known.recordings:  # plans are made in a first call, and the module is checked
            known.recordings[key] = None
            while len(known.recordings) > _KEPT:
                known.recordings.popitem(last=False)
            return None
        made = _recorded(X, work)
        if made is None:
            known.refused.add(key)
            return None
        known.recordings[key] = made
        return made.run(X)


def _recorded(X: Tensor, work: Work) -> _Recording | None:
    """Record a call on X, or return None if it waits for the GPU."""
    kept: list[object] = []
    with torch.cuda.device(X.device), torch.inference_mode(False), torch.no_grad():
        own = torch.empty(X.shape, dtype=X.dtype, device=X.device)
        own.copy_(X)
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.stream(aside), keeping(kept):
                work(own)  # libraries get their memory
                with torch.cuda.graph(graph, stream=aside, capture_error_mode="thread_local"):
                    result = work(own)
        except RuntimeError:  # torch's, of a step that cannot be recorded
            return None
        finally:
            torch.cuda.current_stream().wait_stream(aside)
    return _Recording(graph, own, result, kept)


def _can_be_replayed(X: Any) -> bool:
    """Return whether X is a plain tensor on a GPU, and nothing watches what is done to it."""
    if type(X) is not Tensor or not X.is_cuda or X.numel() == 0 or recording.is_active():
        return False
    return not (
        torch.compiler.is_compiling()
        or torch._C._is_tracing()
        or torch.is_autocast_enabled("cuda")
        or torch.cuda.is_current_stream_capturing()
        or _is_watched()
    )


def _is_watched() -> bool:
    """Return whether modes or transformations of torch are at work."""
    own: Any = torch._C
    mapped = own._functorch.peek_interpreter_stack() is not None
    return bool(mapped or own._len_torch_dispatch_stack() or own._len_torch_function_stack())


def _settings() -> tuple[Hashable, ...]:
    """Return what else chooses kernels."""
    cuda: Any = torch.backends.cuda
    return (
        torch.get_float32_matmul_precision(),
        cuda.matmul.allow_tf32,
        cuda.matmul.allow_fp16_reduced_precision_reduction,
        cuda.matmul.allow_bf16_reduced_precision_reduction,
        cuda.flash_sdp_enabled(),
        cuda.mem_efficient_sdp_enabled(),
        cuda.math_sdp_enabled(),
        cuda.cudnn_sdp_enabled(),
        torch.are_deterministic_algorithms_enabled(),
    )
