"""Represent a captured graph with concrete shapes as one RASP program.

The graph with its shapes, dtypes and Python numbers is the *order* of the program. The values of
parameters and inputs are not part of the program, but its tokens.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any

import torch
from torch import fx
from torch.utils.flop_counter import flop_registry

from locum.errors import ExecutionError, InputError
from locum.execution import run_all
from locum.execution.fast.cuda_graph import GraphRunner
from locum.execution.fast.interpolation import plan_calls
from locum.execution.fast.plan import Plan
from locum.execution.fast.planning import Segment
from locum.graph import Node
from locum.graph.atoms import LARGEST_EXACT
from locum.rasp.python import constant
from locum.settings import Setting
from locum.torch.composition import Composition
from locum.torch.concrete_graph import ConcreteGraph, plain_execution, read_metadata
from locum.torch.host_operations import HostPart, choose_host_nodes, separate_random_numbers
from locum.torch.step_recorder import Step, StepCollector, describe_origin
from locum.torch.tensor_outputs import Outputs
from locum.torch.translation import Feed, Translation, UnsupportedOperationError

_aten = torch.ops.aten
#: Products with a vector, which PyTorch's FLOP counter does not count.
_VECTOR_PRODUCTS = frozenset((_aten.dot, _aten.vdot, _aten.mv, _aten.addmv, _aten.addr, _aten.ger))
#: Operations that PyTorch's FLOP counter does not count, and operations that compute the same products.
_COUNTED_AS = {
    _aten.addbmm: _aten.baddbmm,
    _aten._scaled_dot_product_flash_attention_for_cpu: _aten._scaled_dot_product_flash_attention,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: (
        _aten._scaled_dot_product_flash_attention_backward
    ),
}
#: Grouped matrix products, and the number of products that each of them computes.
_GROUPED_PRODUCTS = {
    "aten._grouped_mm.default": 1,
    "transformers.grouped_mm_fallback.default": 1,
    "transformers.grouped_mm_fallback_backward.default": 2,
}


def count_multiply_adds(concrete: ConcreteGraph, node: fx.Node) -> int:
    """Return the number of multiply-adds of a graph node, computed from the shapes of its arguments.

    Products of two matrices or vectors, convolutions and attention are counted. The number is 0 for
    other operations.
    """
    packet: Any = getattr(node.target, "overloadpacket", None)
    packet = _COUNTED_AS.get(packet, packet)
    values = concrete.values
    arguments: Any = fx.node.map_arg(node.args, values.__getitem__)
    # The formulas of PyTorch do not accept the argument out_dtype.
    arguments = [value for value in arguments if not isinstance(value, torch.dtype)]
    if packet in _VECTOR_PRODUCTS:
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)][-2:]
        if packet in (_aten.addr, _aten.ger):
            return math.prod(tensor.numel() for tensor in tensors)
        return max(tensor.numel() for tensor in tensors)
    if str(node.target) in _GROUPED_PRODUCTS:  # each row of the first factor uses one matrix
        return _GROUPED_PRODUCTS[str(node.target)] * int(arguments[0].numel() * arguments[1].shape[-1])
    if packet not in flop_registry:
        return 0
    options: dict[str, Any] = dict(fx.node.map_arg(node.kwargs, values.__getitem__))
    count = partial(flop_registry[packet], **options, out_val=values[node])
    try:
        operations: int = count(*arguments)
    except AssertionError:  # some versions of PyTorch do not count grouped-query attention
        place = 1 if packet.__name__.endswith("backward") else 0  # the gradient precedes the query
        q, k, v = arguments[place : place + 3]
        k, v = (x.new_empty((*q.shape[:2], *x.shape[2:])) for x in (k, v))
        operations = count(*arguments[:place], q, k, v, *arguments[place + 3 :])
    return operations // 2


@dataclass(frozen=True)
class Settings:
    """The options with which graphs are compiled and run."""

    executor: Annotated[str, Setting("a text", choices=("fast", "dense", "heads"))] = "fast"
    #: Whether the host computes tables of integers and positions.
    host: Annotated[str, Setting("a text", choices=("allowed", "forbidden"))] = "allowed"
    #: Whether the plans of inference graphs on a GPU are recorded as CUDA graphs.
    cuda_graphs: Annotated[str, Setting("a text", choices=("allowed", "forbidden"))] = "allowed"


class Program:
    """A translated graph: the part that the host computes, a RASP program, and the results of the
    graph.
    """

    def __init__(
        self,
        concrete: ConcreteGraph,
        settings: Settings,
        *,
        kind: str = "inference",
        recorded: tuple[str, ...] = (),
    ) -> None:
        started = time.perf_counter()
        concrete = separate_random_numbers(concrete)
        known = choose_host_nodes(
            concrete, tables=settings.host == "allowed", integer_inputs=kind != "backward"
        )
        collector = StepCollector(recorded) if recorded else None
        self.concrete, self._known = concrete, known
        is_composed = settings.executor == "fast"
        translation = (Composition if is_composed else Translation)(concrete, known, collector)
        outputs = self._add_outputs(translation)
        #: The index of each recorded step among the outputs; steps follow the results of the graph.
        self._steps: dict[Step, int] = {
            step: outputs.add(tensor) for step, tensor in (collector.steps if collector else {}).items()
        }
        self.settings, self.outputs = settings, outputs
        self._result_count = len(concrete.outputs)
        self.feeds: Sequence[Feed] = list(translation.feeds.values())
        self._device = translation.device
        self._conditions = translation.conditions
        #: The translation into small programs, for the fast executor; otherwise None.
        self._composition = translation if isinstance(translation, Composition) else None
        #: The roots, or the names of storages, that a run computes, and the needed positions of each.
        self.read = _roots(translation, outputs)
        self.token_count, self.length = translation.token_count, translation.length
        wanted = dict.fromkeys([*translation.feeds, *outputs.wanted])
        self._host = HostPart.of(concrete, known, list(wanted))
        #: The nodes that U computes.
        self.on_u: Sequence[fx.Node] = translation.on_u
        #: The nodes that the host computes, without views and numbers.
        self.on_host: Sequence[fx.Node] = self._host.computed
        #: The multiply-adds of U and of the host in one run.
        self.multiply_adds = tuple(
            sum(count_multiply_adds(concrete, node) for node in nodes)
            for nodes in (self.on_u, self.on_host)
        )
        #: The plan of the fast executor, created when first needed, and the function that runs it.
        self.plan: Plan | None = None
        self._run_plan: Callable[[list[torch.Tensor]], list[torch.Tensor]]
        self._has_graph = (
            kind == "inference"
            and settings.cuda_graphs == "allowed"
            and self._device.type == "cuda"
            and bool(self.feeds)
        )
        self.seconds_to_translate = time.perf_counter() - started
        self.seconds_to_plan = 0.0

    def _add_outputs(self, translation: Translation) -> Outputs:
        outputs = Outputs(self.concrete, translation, self._known)
        for result in self.concrete.outputs:
            outputs.add(result)
        return outputs

    @property
    def host_code(self) -> str:
        """Python code of the part that the host computes."""
        return self._host.function.code

    @cached_property
    def roots(self) -> Mapping[Node, range]:
        """The roots of the RASP program of the whole graph, and the positions of each root that are
        needed.
        """
        if self._composition is None:
            return self.read
        translation = Translation(self.concrete, self._known)
        return _roots(translation, self._add_outputs(translation))

    @classmethod
    def of(cls, graph: fx.GraphModule, executor: str = "fast", host: str = "allowed") -> Program:
        """Translate a graph whose nodes have fake tensors with concrete shapes."""
        return cls(read_metadata(graph), Settings(executor, host))

    def __call__(self, *arguments: Any) -> list[Any]:
        """Run the host's part and then the RASP program, and return the results of the graph."""
        return self.run(arguments)[0]

    def run(self, arguments: Sequence[Any]) -> tuple[list[Any], dict[Step, torch.Tensor]]:
        """Run the program on the arguments of the graph; return the results of the graph and the
        recorded steps.
        """
        with plain_execution():
            known = self._host(arguments)
            parts = {
                feed.node: self._move(feed.entries(known[feed.node]), getattr(torch, feed.dtype))
                for feed in self.feeds
            }
            found = self._run_program(parts) if self.read else {}
            self._check(found)
            results = self.outputs.make(known, found, parts)
        steps = {step: results[place] for step, place in self._steps.items()}
        return results[: self._result_count], steps

    def _run_program(self, feeds: Mapping[fx.Node, torch.Tensor]) -> dict[Node, torch.Tensor]:
        self._check_integers(feeds)
        # The only token of a program without inputs is a blank.
        parts = list(feeds.values()) or [torch.zeros(1, device=self._device)]
        if self._composition is None:
            values = run_all(self.read, parts, self.length, executor=self.settings.executor)
        else:
            self.make_plan()
            values = self._run_plan(parts)
        return dict(zip(self.read, values, strict=True))

    def _check_integers(self, feeds: Mapping[fx.Node, torch.Tensor]) -> None:
        """Raise an error if tokens contain integers beyond 2⁵³, which float64 may round."""
        outside = {
            node: find_inexact(part)
            for node, part in feeds.items()
            if part.dtype in (torch.int64, torch.uint64)
        }
        if not outside:
            return
        has_any = torch.stack([places.any() for places in outside.values()]).any()
        if has_any.is_cuda:  # without waiting for the GPU
            torch._assert_async(~has_any, "integers: expected tokens of at most 2⁵³")
            return
        if not has_any:
            return
        node = next(node for node, places in outside.items() if places.any())
        (found,) = feeds[node][outside[node].nonzero()[0]].tolist()
        advice = "computing with them outside of the compiled function"
        if self.settings.host != "allowed":
            advice = 'options={"host": "allowed"}'
        raise InputError(
            f"integers: expected tokens of at most 2⁵³, got {found} in {node.name}"
            f"{describe_origin(node)}; try {advice}"
        )

    def make_plan(self) -> Plan:
        """Return the plan of the fast executor, which is created in the first call."""
        if self.plan is not None:
            return self.plan
        assert self._composition is not None
        started = time.perf_counter()
        like = torch.empty(0, device=self._device)
        inputs = {
            name: Segment((feed.size,), feed.dtype)
            for name, feed in zip(self._composition.inputs, self.feeds, strict=True)
        }
        if not inputs:
            inputs = {constant(0).node: Segment((1,), "float32")}  # the blank
        try:
            plan = plan_calls(self._composition.calls, inputs, self.read, like)
        except ExecutionError as error:
            if error.kind != "no plan":
                raise
            raise InputError(
                f"executor fast: expected a graph that has a plan, got one that has none ({error}); "
                'try options={"executor": "dense"} or smaller tensors'
            ) from error
        self.use_plan(plan, has_graph=self._has_graph)
        self.seconds_to_plan = time.perf_counter() - started
        return plan

    def use_plan(self, plan: Plan, *, has_graph: bool) -> None:
        """Use ``plan`` for all further runs, recorded as a CUDA graph if ``has_graph`` is true."""
        self.plan = plan
        run = partial(_run_plan, plan)
        self._run_plan = GraphRunner(run) if has_graph else run

    def _check(self, found: Mapping[Node, torch.Tensor]) -> None:
        """Raise an error if a condition of the program is violated, such as an index out of range."""
        if not self._conditions:
            return
        violations = torch.stack([found[root][0].double() for root in self._conditions])
        if self._device.type == "cuda":  # without waiting for the GPU, as in eager execution
            torch._assert_async((violations == 0).all(), next(iter(self._conditions.values()))[:200])
            return
        broken = torch.nonzero(violations)
        if broken.numel():
            raise InputError(list(self._conditions.values())[int(broken[0])])

    def _move(self, part: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """Return tokens in the given dtype and on the device of the program.

        A tensor with one entry may be on the CPU, as PyTorch allows for scalars. Any other tensor on
        another device raises an error.
        """
        if part.dtype is not dtype:
            part = part.to(dtype)
        if part.device == self._device:
            return part
        if part.numel() == 1 and part.device.type == "cpu":
            return part.to(self._device)
        raise InputError(
            f"devices: expected all tensors on {self._device}, got one on {part.device}; "
            "try moving the model and its inputs to one device"
        )


def _run_plan(plan: Plan, parts: list[torch.Tensor]) -> list[torch.Tensor]:
    """Run a plan and return its results as flat, contiguous tensors."""
    return [value.reshape(-1).contiguous() for value in plan.run_all(parts)]


def _roots(translation: Translation, outputs: Outputs) -> dict[Node, range]:
    """Return the s-ops that a run computes, for conditions and results, with the needed positions of
    each.
    """
    return {**dict.fromkeys(translation.conditions, range(1)), **outputs.roots}


def find_inexact(integers: torch.Tensor) -> torch.Tensor:
    """Return a boolean tensor that is true where 64-bit integers exceed 2⁵³ in magnitude."""
    least = 0 if integers.dtype == torch.uint64 else -LARGEST_EXACT
    signed = integers.view(torch.int64)  # PyTorch does not compare unsigned integers on all devices
    return (signed > LARGEST_EXACT) | (signed < least)


__all__ = ["Program", "Settings", "UnsupportedOperationError"]
