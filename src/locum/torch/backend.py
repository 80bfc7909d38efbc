"""The backend of ``torch.compile``: receives captured graphs and returns functions that run on U."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx
from torch._decomp import core_aten_decompositions
from torch._dynamo.backends.common import aot_autograd

from locum.errors import InputError
from locum.torch.program import Program
from locum.torch.table import TABLE

_EXECUTORS = ("fast", "dense", "heads")
_HOST = ("allowed", "forbidden")


@dataclass(frozen=True)
class Options:
    """The options of the backend."""

    executor: str = "fast"
    host: str = "allowed"

    @classmethod
    def read(cls, options: Mapping[str, Any] | None, mode: str | None) -> Options:
        """Return the options of ``torch.compile``, or raise an error for unknown ones."""
        if mode is not None:
            raise InputError(
                f'mode: expected none for the backend "locum", got {mode!r}; '
                'try options={"executor": "fast"}'
            )
        known = {"executor": _EXECUTORS, "host": _HOST}
        for name, value in (options or {}).items():
            if name not in known:
                raise InputError(f"options: expected {' or '.join(known)}, got {name!r}")
            if value not in known[name]:
                raise InputError(f"{name}: expected {', '.join(known[name])}, got {value!r}")
        return cls(**dict(options or {}))


def backend(
    graph: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a captured graph: forward, inference and backward graphs become RASP programs."""
    chosen = Options.read(options, mode)

    def compile_graph(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        return boxed(Program.of(graph, chosen.executor, chosen.host))

    compiler = aot_autograd(
        fw_compiler=compile_graph,
        bw_compiler=compile_graph,
        inference_compiler=compile_graph,
        decompositions=decompositions(),
    )
    return compiler(graph, inputs)


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Return PyTorch's decompositions of the operations that are not in the table."""
    return {
        overload: function
        for overload, function in core_aten_decompositions().items()
        if overload not in TABLE
    }


def boxed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of one list, which it empties: AOT autograd frees what it passes on."""

    def call(arguments: list[Any]) -> Any:
        taken = list(arguments)
        arguments.clear()
        return function(*taken)

    call._boxed_call = True  # type: ignore[attr-defined]
    return call
