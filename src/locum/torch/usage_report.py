"""Report which operations ran on U, with their runs, multiply-adds and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import torch
from torch._dynamo.utils import counters

from locum.errors import InputError
from locum.graph import build
from locum.graph.architecture import Architecture, architecture
from locum.torch.program import Program
from locum.torch.usage import Count, GraphUsage, ProgramUsage, find_original, list_graphs

#: Short descriptions of the executors.
EXECUTORS: Mapping[str, str] = {
    "fast": "evaluates plans derived from the program, runs no heads",
    "dense": "runs every head by its definition",
    "heads": "runs every head on which the result depends, as attention",
}
KINDS = ("inference", "forward", "backward")


def report(compiled: Any = None) -> Report:
    """Return a report of the operations and runs of a compiled function or module on U.

    ``compiled`` is the result of ``torch.compile``, a module after ``module.compile(...)``, or a module
    that contains compiled modules. Without this argument, the report covers all compiled objects.
    ``print`` shows the report as text, and ``to_dict()`` returns a JSON-compatible dictionary.

    A run, except a backward run, is attributed to the compiled objects whose calls are on the stack
    when the run starts. The report has these limitations:

    - Dynamo shares one graph between modules of the same class. Backward runs of a shared graph are
      counted for each of these modules.
    - Calls that Dynamo runs without a graph are not visible to a backend. The report compares calls of
      captured graphs with runs, and warns about graph breaks and the recompilation limit. Use
      ``fullgraph=True``, so that PyTorch raises an error in these cases.
    - Counts are lost when PyTorch drops the compiled code, for example in ``torch._dynamo.reset()``.
    """
    if compiled is None:
        return Report(list_graphs(), None)
    if not callable(compiled):
        raise InputError(
            f"report: expected a compiled function or module, got {type(compiled).__name__}; "
            "try locum.torch.report(module)"
        )
    found = find_original(compiled)
    objects = list(found.modules()) if isinstance(found, torch.nn.Module) else [found]
    objects += [find_original(one) for one in objects if one is not find_original(one)]
    return Report([graph for graph in list_graphs() if graph.calls(objects)], objects)


@dataclass(frozen=True)
class ProgramReport:
    """The runs of one program, which is a graph with concrete shapes, or of a family of interpolated
    programs.
    """

    graph: GraphUsage
    usage: ProgramUsage
    count: Count

    @property
    def runs(self) -> int:
        """Number of runs of the program or of the family."""
        return self.count.runs

    @property
    def seconds(self) -> float:
        """Total wall time of all runs, in seconds."""
        return self.count.seconds

    @property
    def program(self) -> Program | None:
        """The program, or None if it was dropped from the cache.

        For a family of interpolated programs, this is the last program of the family.
        """
        return self.usage.program

    @cached_property
    def architecture(self) -> Architecture | None:
        """The layers and heads of the RASP program, or None if the program was dropped or is empty."""
        if self.program is None:
            return None
        roots = list(self.program.roots)
        # Adding the roots needs no head and no layer.
        return architecture(reduce(lambda a, b: build("add", a, b), roots)) if roots else None

    def to_dict(self) -> dict[str, Any]:
        """Return the properties and numbers of the program as a JSON-compatible dictionary."""
        size = self.architecture
        plan = self.program.plan if self.program is not None else None
        return {
            "graph": self.graph.name,
            "kind": self.usage.kind,
            "executor": self.graph.settings.executor,
            "tokens": self.usage.tokens,
            "layers": size.layers if size else 0,
            "heads": sum(size.heads) if size else 0,
            "plan_steps": len(plan.steps) if plan is not None else 0,
            "unplanned_s_ops": len(plan.opaque) if plan is not None else 0,
            "runs": self.runs,
            "seconds": self.seconds,
        }


class Report:
    """A report of the programs that ran on U, for printing and as JSON."""

    def __init__(self, graphs: Sequence[GraphUsage], objects: Sequence[Any] | None) -> None:
        self.graphs = list(graphs)
        #: Calls of the captured graphs.
        self.calls = sum(graph.calls(objects) for graph in graphs)
        #: The programs that ran.
        self.programs: list[ProgramReport] = []
        for graph in graphs:
            for usage in list(graph.programs):
                count = usage.count(objects)
                if count.runs:
                    self.programs.append(ProgramReport(graph, usage, count))

    @property
    def executors(self) -> list[str]:
        """Names of the executors that the graphs use."""
        return sorted({graph.settings.executor for graph in self.graphs})

    @property
    def runs(self) -> int:
        """Number of runs of all programs: inference, forward and backward."""
        return sum(self.runs_by_kind.values())

    @property
    def runs_by_kind(self) -> dict[str, int]:
        """Numbers of runs of inference, forward and backward graphs."""
        return {
            kind: sum(one.runs for one in self.programs if one.usage.kind == kind) for kind in KINDS
        }

    @property
    def multiply_adds(self) -> int:
        """Number of multiply-adds that U computed in all runs."""
        return sum(one.count.multiply_adds for one in self.programs)

    @property
    def multiply_adds_on_host(self) -> int:
        """Number of multiply-adds that the host computed in all runs."""
        return sum(one.count.multiply_adds_on_host for one in self.programs)

    @property
    def share(self) -> float:
        """Fraction of the multiply-adds of captured graphs that U computed.

        The fraction is 0 without runs, and 1 for runs without multiply-adds.
        """
        if not self.runs:
            return 0.0
        whole = self.multiply_adds + self.multiply_adds_on_host
        return self.multiply_adds / whole if whole else 1.0

    @property
    def on_u(self) -> dict[str, dict[str, int]]:
        """The operations that U computed in all runs: module path → operation → count."""
        return self._operations(lambda usage: usage.on_u)

    @property
    def on_host(self) -> dict[str, dict[str, int]]:
        """The operations that the host computed in all runs: module path → operation → count."""
        return self._operations(lambda usage: usage.on_host)

    def _operations(
        self, choose: Callable[[ProgramUsage], Counter[tuple[str, str]]]
    ) -> dict[str, dict[str, int]]:
        counted: dict[str, dict[str, int]] = {}
        for one in self.programs:
            for (path, operation), number in choose(one.usage).items():
                module = counted.setdefault(path, {})
                module[operation] = module.get(operation, 0) + one.runs * number
        return counted

    @property
    def plans(self) -> int:
        """Number of plans that the fast executor created for programs that are still cached.

        The plans of a family of interpolated programs count as one.
        """
        programs = [one.program for one in self.programs]
        return sum(program is not None and program.plan is not None for program in programs)

    @property
    def seconds(self) -> dict[str, float]:
        """Wall time in seconds for translating graphs, for planning, and for all runs.

        The time of a first run includes planning, except in a family of interpolated programs. For such
        a family, the first two times contain only the last program. The time for planning omits
        programs that were dropped from the cache.
        """
        programs = [one.program for one in self.programs]
        return {
            "translating": sum(one.usage.seconds_to_translate for one in self.programs),
            "planning": sum(p.seconds_to_plan for p in programs if p is not None),
            "running": sum(one.seconds for one in self.programs),
        }

    @property
    def warnings(self) -> list[str]:
        """Warnings about computations that may have run without U."""
        found = []
        if not self.runs:
            found.append(
                "0 runs: nothing ran on U. Methods such as generate() call the original module; try "
                'model.compile(backend="locum", fullgraph=True).'
            )
        forward = self.runs - self.runs_by_kind["backward"]
        if self.calls != forward:
            found.append(f"{self.calls} calls of graphs, {forward} forward runs: some calls failed.")
        if any(graph.is_last for graph in self.graphs):
            found.append(
                "Dynamo reached its limit of recompilations (torch._dynamo.config.recompile_limit). "
                "Calls with other shapes run without U; try fullgraph=True to raise an error."
            )
        breaks = sum(counters["graph_break"].values())
        if breaks:
            found.append(
                f"Dynamo counted {breaks} graph breaks in this process. Code between graphs runs "
                "without U; try fullgraph=True to raise an error."
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a JSON-compatible dictionary."""
        return {
            "executors": {name: EXECUTORS[name] for name in self.executors},
            "graphs": len(self.graphs),
            "calls": self.calls,
            "runs": self.runs_by_kind,
            "multiply_adds": {
                "on_u": self.multiply_adds,
                "on_host": self.multiply_adds_on_host,
                "share_on_u": self.share,
            },
            "operations": {"on_u": self.on_u, "on_host": self.on_host},
            "programs": [one.to_dict() for one in self.programs],
            "plans": self.plans,
            "seconds": self.seconds,
            "warnings": self.warnings,
        }

    def __str__(self) -> str:
        executors = [f"{name}: {EXECUTORS[name]}" for name in self.executors] or ["none"]
        runs = ", ".join(f"{number} {kind}" for kind, number in self.runs_by_kind.items() if number)
        lines = [
            f"executor       {'; '.join(executors)}",
            f"calls          {self.calls} (graphs captured: {len(self.graphs)})",
            f"runs           {self.runs}" + (f" ({runs})" if runs else ""),
            f"multiply-adds  {self.multiply_adds:,} on U ({self.share:.1%})",
            f"plans          {self.plans}",
            "time           " + ", ".join(f"{name} {s:.2f} s" for name, s in self.seconds.items()),
        ]
        for one in map(ProgramReport.to_dict, self.programs):
            lines.append(
                "program        {kind} graph {graph}: {tokens:,} tokens, {layers} layers, {heads:,} "
                "heads, {plan_steps} plan steps, {runs} runs".format(**one)
            )
        for title, operations in (("on U", self.on_u), ("on the host", self.on_host)):
            total = sum(sum(module.values()) for module in operations.values())
            lines.append(f"{title:<15}{total} operations")
            for path in sorted(operations):
                counted = ", ".join(f"{name} × {n}" for name, n in sorted(operations[path].items()))
                lines.append(f"  {path or '(root)'}: {counted}")
        return "\n".join([*lines, *(f"warning        {text}" for text in self.warnings)])

    __repr__ = __str__
