"""Record attention patterns and results of modules that run on U.

>>> import torch, locum.torch
>>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
>>> compiled = torch.compile(model, backend="locum", fullgraph=True)
>>> with locum.torch.record("1") as recorded:  # doctest: +SKIP
...     y = compiled(torch.ones(1, 2))
>>> recorded["1"]["tanh"].shape  # doctest: +SKIP
torch.Size([1, 2])
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import torch
from torch import fx

from locum.constructions.tensor import Tensor
from locum.errors import InputError

#: The beginning of a module path from Dynamo: the traced object, such as ``L['self']``.
_ROOT = re.compile(r"^[A-Z]\['\w+'\]")
_ITEM = re.compile(r"\[(?:'([^']*)'|(\d+))\]")


def module_paths(node: fx.Node) -> list[str]:
    """Return the paths of the modules that contain a graph node, outermost first, such as
    ``encoder.layer.0``.

    The path of the compiled module itself is "". An operation that this module computes outside of its
    submodules usually has no path. A node of a backward graph belongs to the modules of the operation
    that it differentiates.
    """
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    return [normalise_path(path) for path, _ in stack.values()]


def module_path(node: fx.Node) -> str:
    """Return the path of the innermost module that contains a graph node, or "" outside of any
    module.
    """
    paths = module_paths(node)
    return paths[-1] if paths else ""


def normalise_path(path: str) -> str:
    """Convert a module path from Dynamo to the form that ``named_modules`` returns.

    >>> normalise_path("L['self'].encoder.layer[0].output")
    'encoder.layer.0.output'
    """
    path = _ROOT.sub("", path)
    path = path.replace("._modules", "")
    return _ITEM.sub(lambda match: f".{match[1] or match[2]}", path).strip(".")


def source_line(node: fx.Node) -> str:
    """Return the innermost source line of a graph node, or "" if it is unknown.

    An example is ``File "model.py", line 3, in forward``.
    """
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    return next((line for line in reversed(lines) if line.startswith("File ")), "")


def describe_origin(node: fx.Node) -> str:
    """Return the module and the source line of a graph node for an error message, or "" if both are
    unknown.
    """
    path, source = module_path(node), source_line(node)
    return (f" in module {path}" if path else "") + (f" ({source})" if source else "")


#: Names of steps that can be attention patterns: the weights of attention or of a softmax.
PATTERNS = ("pattern", "softmax", "safe_softmax")


#: Maximum number of module paths in a warning.
_SHOWN = 20


class Step(NamedTuple):
    """The name of a recorded step: the path of its module, and its name in the module."""

    module: str
    name: str


class Recorder(Mapping[str, Mapping[str, torch.Tensor]]):
    """The steps of the recorded runs, by module path.

    ``recorder[path][name]`` is a step of the last run that executed the module.
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        #: Shell-style patterns of module paths.
        self.module_patterns = patterns
        #: One dictionary {path: {step: tensor}} for each run.
        self.runs: list[dict[str, dict[str, torch.Tensor]]] = []
        #: Paths of all modules in the graphs that ran; "" is the compiled module.
        self.paths: dict[str, None] = {"": None}

    def add(self, steps: Mapping[Step, torch.Tensor], paths: Iterable[str]) -> None:
        """Add the recorded steps of a run of a graph that contains the modules ``paths``."""
        self.paths |= dict.fromkeys(paths)
        run: dict[str, dict[str, torch.Tensor]] = {}
        for step, tensor in steps.items():
            run.setdefault(step.module, {})[step.name] = tensor
        self.runs.append(run)

    def check_patterns(self) -> None:
        """Warn about patterns that match no module of the graphs that ran, if any graph ran."""
        for pattern in self.module_patterns:
            if self.runs and not any(fnmatchcase(path, pattern) for path in self.paths):
                known = [path for path in self.paths if path]
                shown = ", ".join(known[:_SHOWN]) + ", …" * (len(known) > _SHOWN)
                message = f"record: expected a path of a module in the graphs that ran, got {pattern!r}"
                warnings.warn(message + f"; try one of {shown}" * bool(known), stacklevel=4)

    @property
    def patterns(self) -> dict[str, torch.Tensor]:
        """The attention patterns of the last run of each module, by module path.

        A pattern is a step that a construction names ``pattern``, or a softmax with at least three
        dimensions, usually batch, head, query and key. The last such step of a module is returned.
        Dropout of attention weights is not applied to the pattern.
        """
        found = {}
        for path, steps in self.items():
            names = [name for name, step in steps.items() if _is_pattern(name, step)]
            if names:
                found[path] = steps[names[-1]]
        return found

    def __getitem__(self, path: str) -> Mapping[str, torch.Tensor]:
        for run in reversed(self.runs):
            if path in run:
                return run[path]
        advice = f"; try one of {', '.join(self)}" if len(self) else ""
        raise KeyError(f"{path}: expected a recorded module{advice}")

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(path for run in self.runs for path in run))

    def __len__(self) -> int:
        return len(list(iter(self)))


def _is_pattern(name: str, step: torch.Tensor) -> bool:
    """Return whether a step is an attention pattern.

    A construction names such a step ``pattern``, or the step is a softmax with more than two axes.
    """
    base = name.rstrip("_0123456789").lstrip("_")
    return base == "pattern" or (base in PATTERNS and step.ndim > 2)


_active: ContextVar[Recorder | None] = ContextVar("locum_recorder", default=None)


@contextmanager
def record(*modules: str) -> Iterator[Recorder]:
    """Record the steps of modules in runs of compiled graphs, except backward graphs, inside the
    ``with`` block.

    ``modules`` are paths of modules with shell-style wildcards, such as ``"*.self_attn"``. A path is
    relative to the compiled module. The steps of a module are:

    - the results of U that are used outside of the module, including results that are saved for a
      backward graph (``output``, ``output_1``, …);
    - the results of its ATen operations other than views (``addmm``, ``addmm_1``, …);
    - the parts that a construction names, such as the ``pattern`` of attention.

    Steps that U computes are additional roots of the RASP program, so they remain available when
    operations are fused. Only runs in the current thread are recorded. A warning lists available
    modules if the graphs that ran contain no module with such a path.
    """
    if not modules or not all(isinstance(pattern, str) for pattern in modules):
        raise InputError(
            f'record: expected paths of modules, got {modules!r}; try record("*.self_attn")'
        )
    recorder = Recorder(modules)
    token = _active.set(recorder)
    try:
        yield recorder
    finally:
        _active.reset(token)
    recorder.check_patterns()


def active_recorder() -> Recorder | None:
    """Return the recorder of the innermost ``record`` block, or None outside of any block."""
    return _active.get()


class StepCollector:
    """A collector for the steps of modules whose paths match patterns, used while a graph is
    translated.
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._patterns = patterns
        self._names: Counter[Step] = Counter()
        #: The tensor of each step, or the node on the host that computes it.
        self.steps: dict[Step, Tensor | fx.Node] = {}

    def add(self, node: fx.Node, name: str, value: Any) -> None:
        """Add a step of a graph node to every recorded module that contains the node."""
        for path in self._recorded_paths(node):
            self._add(path, name, value)

    def add_outputs(self, values: Mapping[fx.Node, Any]) -> None:
        """Add the results of U in a module that are used outside of it, as ``output``, ``output_1``, …

        Results that are saved for a backward graph are included. ``values`` are the results of the
        nodes that U computes.
        """
        for node, value in values.items():
            for path in self._recorded_paths(node):
                if any(path not in module_paths(user) for user in node.users):
                    self._add(path, "output", value)

    def _recorded_paths(self, node: fx.Node) -> list[str]:
        return [
            path
            for path in dict.fromkeys(module_paths(node))
            if any(fnmatchcase(path, pattern) for pattern in self._patterns)
        ]

    def _add(self, path: str, name: str, value: Any) -> None:
        if isinstance(value, tuple):
            for number, part in enumerate(value):
                self._add(path, f"{name}.{number}", part)
        elif isinstance(value, (Tensor, fx.Node)):
            step = Step(path, name)
            count = self._names[step]
            self._names[step] += 1
            self.steps[Step(path, f"{name}_{count}") if count else step] = value
