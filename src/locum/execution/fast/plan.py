"""Run plans: steps for given shapes, compiled to one Python function for a backend."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from locum.errors import ExecutionError, InputError
from locum.execution.arrays import Arrays, is_floating, is_tensor, largest
from locum.execution.elementwise import MEANINGS
from locum.execution.fast import structured
from locum.execution.fast.planning import Blueprint
from locum.execution.fast.steps.backends import Backend, Function
from locum.execution.fast.steps.fusion import in_order
from locum.execution.fast.steps.magnitude import greatest_integer, integer_bound
from locum.execution.fast.steps.step import Step, row_major
from locum.execution.types import Types, possible_types
from locum.graph import Node, abbreviate
from locum.graph.atoms import LARGEST_EXACT

if TYPE_CHECKING:
    from locum.execution.fast.planning import Blueprint


#: Number of the register that contains the types of the tokens.
TOKEN_TYPES = -1


class RegisterInstruction(NamedTuple):
    """A step with the registers that it reads and writes, and the registers that are freed after it."""

    function: Callable[..., Any]
    reads: tuple[int, ...]
    writes: int
    done: tuple[int, ...]


def written(
    instructions: Sequence[RegisterInstruction],
    constants: Mapping[int, Any],
    arguments: Sequence[int | None],
    results: Sequence[int],
) -> Callable[[Sequence[Any], Any], tuple[Any, ...]]:
    """Return a function that runs all instructions on arrays and the types of the tokens.

    ``arguments`` are the registers of the arrays, or None for an array that is not read. ``results``
    are the registers of the results.
    """
    lines = [f"def run(arrays, {_name(TOKEN_TYPES)}):"]
    if arguments:
        names = ["_" if number is None else _name(number) for number in arguments]
        lines.append(f"    {', '.join(names)}, = arrays")
    scope: dict[str, Any] = {_name(number): value for number, value in constants.items()}
    for number, (function, reads, writes, done) in enumerate(instructions):
        scope[f"f{number}"] = function
        lines.append(f"    {_name(writes)} = f{number}({', '.join(map(_name, reads))})")
        finished = [_name(register) for register in done if register not in constants]
        if finished:
            lines.append(f"    del {', '.join(finished)}")
    lines.append(f"    return ({''.join(f'{_name(result)}, ' for result in results)})")
    exec("\n".join(lines), scope)
    run: Callable[[Sequence[Any], Any], tuple[Any, ...]] = scope["run"]
    return run


def replace_functions(
    run: Callable[[Sequence[Any], Any], tuple[Any, ...]], functions: Mapping[int, Callable[..., Any]]
) -> Callable[[Sequence[Any], Any], tuple[Any, ...]]:
    """Return a copy of a function from :func:`written`, with other functions for some instructions.

    ``functions`` maps indices of instructions to their new functions.

    >>> import operator
    >>> run = written([RegisterInstruction(operator.add, (0, 1), 2, (0, 1))], {}, [0, 1], (2,))
    >>> replace_functions(run, {0: operator.mul})([3, 4], None)
    (12,)
    """
    scope: dict[str, Any] = dict(run.__globals__)
    scope.update((f"f{number}", function) for number, function in functions.items())
    return FunctionType(run.__code__, scope)


def _name(register: int) -> str:
    return "token_types" if register == TOKEN_TYPES else f"t{register}"


def explained(steps: Sequence[Step], blueprint: Blueprint, names: Mapping[Node, str]) -> str:
    """Return text with a line for each step: the step and, if known, the s-op that it computes.

    Inputs, constants, and steps that only reshape or repeat an array have no lines. A line for each
    opaque s-op follows. If no step has a line, the text only names the result.
    """
    called: dict[Step, str] = {}
    lines: list[tuple[str, str, str]] = []
    for step in steps:
        if step.op == "input":
            called[step] = f"tokens[{step.settings[0]}]" if len(blueprint.inputs) > 1 else "tokens"
        elif step.value is not None:
            called[step] = _number(step) if step.size == 1 else f"constant({_shape(step.shape)})"
        elif step.op in ("reshape", "expand"):  # only changes the shape
            called[step] = called[step.inputs[0]]
        else:
            called[step] = f"t{len(lines)}"
            node = blueprint.computes.get(step)
            meaning = "" if node is None else names.get(node) or abbreviate(node, names)
            lines.append((called[step], _words(step, called, names), meaning))
    if not lines:
        return f"the result is {called[steps[-1]]}"
    wide = max(len(f"{name} = {words}") for name, words, _ in lines)
    shown = []
    for name, words, meaning in lines:
        line = f"{name} = {words}"
        shown.append(f"{line:<{wide}}   # {meaning}" if meaning else line)
    shown += [f"{abbreviate(n, names)}: structured, since {why}" for n, why in blueprint.opaque.items()]
    return "\n".join(shown)


def _words(step: Step, called: Mapping[Step, str], names: Mapping[Node, str]) -> str:
    inputs = [called[i] for i in step.inputs]
    shape = _shape(step.shape)
    match step.op, step.settings:
        case "apply", (str(op),):
            pattern = MEANINGS[op].format
            words = pattern.text.format(*inputs) if pattern else f"{op}({', '.join(inputs)})"
            return f"{words}  [{shape}]"
        case "view", (tuple(strides), int(offset)):
            return f"{inputs[0]} {_view(step, strides, offset)}"
        case "permute", (tuple(order),):
            last = len(order) - 1
            how = "transposed" if order == (*range(last - 1), last, last - 1) else "permuted"
            return f"{inputs[0]} {how}  [{shape}]"
        case "matmul", _:
            return f"{inputs[0]} @ {inputs[1]}  [{shape}]"
        case "biased_product", _:
            return f"{inputs[0]} @ {inputs[1]} + {inputs[2]}  [{shape}]"
        case "attention", (True, _):
            return f"causal attention({', '.join(inputs)})  [{shape}]"
        case (("sum" | "maximum" | "minimum" | "any"), (tuple(axes),)):
            along = ", ".join(map(str, axes))
            return f"{step.op}({inputs[0]}, axis {along})  [{shape}]"
        case "structured", (Node() as node, *_):
            return f"structured({abbreviate(node, names)})  [{shape}]"
    return f"{step.op}({', '.join(inputs)})  [{shape}]"


def _view(step: Step, strides: Sequence[int], offset: int) -> str:
    shape = step.shape
    if tuple(strides) == row_major(shape):
        return f"from {offset} as {_shape(shape)}"
    swapped = (*shape[:-2], *shape[:-3:-1])
    moved = (*strides[:-2], *tuple(strides)[:-3:-1])
    if len(shape) >= 2 and moved == row_major(swapped):
        return f"from {offset} as {_shape(swapped)}, transposed"
    apart = ", ".join(map(str, strides))
    return f"from {offset} as {_shape(shape)}, strides {apart}"


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "1"


def _number(step: Step) -> str:
    assert step.value is not None
    value = float(step.value.reshape(-1)[0])
    return str(int(value)) if math.isfinite(value) and value == int(value) else f"{value:.6g}"


#: Steps that move data without computing.
_MOVES = ("input", "view", "reshape", "permute", "expand", "gather", "concatenate", "assemble")
#: Maximum number of cached integer bounds of a plan.
_REMEMBERED = 64


class Plan:
    """A program compiled to steps, which run on arrays of the shapes that the plan was made for.

    >>> from locum import tokens
    >>> plan = (tokens * 2).plan(3)
    >>> plan(np.array([1.0, 2.0, 3.0]))
    array([2., 4., 6.])
    """

    def __init__(
        self,
        blueprint: Blueprint,
        backend: Backend,
        names: Mapping[Node, str],
        strict: bool = False,
    ) -> None:
        self.backend, self.blueprint, self.names, self.strict = backend, blueprint, names, strict
        results = blueprint.results
        self._make_steps: Callable[[], Sequence[Step]] = partial(in_order, *results)
        place = {step: n for n, step in enumerate(self.steps)}
        last = {place[i]: n for n, step in enumerate(self.steps) for i in step.inputs}
        # The function does not flatten its results. :meth:`run` does this instead.
        last_steps = tuple(r.inputs[0] if r.op == "reshape" else r for r in results)
        unread = {r for r, step in zip(results, last_steps, strict=True) if r is not step}
        unread.difference_update(i for step in self.steps for i in step.inputs)
        kept = {place[step] for step in last_steps}
        program: list[RegisterInstruction] = []
        #: For each step that is run, the number of its instruction.
        self._numbers: dict[Step, int] = {}
        for n, step in enumerate(self.steps):
            if step.value is None and step.op != "input" and step not in unread:
                reads = tuple(place[i] for i in step.inputs)
                done = tuple(r for r in dict.fromkeys(reads) if last[r] == n and r not in kept)
                if step.op == "structured":
                    reads = (TOKEN_TYPES, *reads)  # the types of the tokens
                self._numbers[step] = len(program)
                program.append(RegisterInstruction(self._function(step), reads, n, done))
        values = {n: step.value for n, step in enumerate(self.steps) if step.value is not None}
        with np.errstate(over="ignore"):  # a constant beyond the range of the dtype becomes infinite
            constants = {n: backend.constant(value) for n, value in values.items()}
        arguments = [place.get(step) for step in blueprint.inputs]
        places = tuple(place[step] for step in last_steps)
        self._run = written(program, constants, arguments, places)
        self._written = partial(written, program, arguments=arguments, results=places)
        #: Values of the constants, and the steps as a function in which constants are arguments. While
        #: torch traces, the trace creates the constants.
        self._constants = list(values.values())
        self._traced = partial(written, program, {}, [*arguments, *values], places)
        self._size = len(program)
        self._lengths = [math.prod(result.shape) for result in results]
        self._copies = list(map(_is_seen_elsewhere, results))
        #: For each structured step, operation counts of its last run.
        self._structured: dict[Step, Counter[str]] = {}
        self._types: dict[tuple[Node, Types], dict[Node, Types]] = {}
        #: Cached results of :meth:`greatest_integer`, by types and largest value of the tokens.
        self._greatest: dict[tuple[Types, float], float] = {}

    def _function(self, step: Step) -> Function:
        """Return the function that runs a step on the arrays of its inputs.

        The function of a structured step also accepts the types of the tokens, as its first argument.
        """
        if step.op != "structured":
            return self.backend.function(step)
        node, *below = (n for n in step.settings if isinstance(n, Node))

        def evaluate(tokens_types: Types, tokens: Any, *values: Any) -> Any:
            counts: Counter[str] = Counter()
            possible = self._possible(node, tokens_types)
            arrays = self.backend.arrays
            known = {n: _series(arrays, v, possible[n]) for n, v in zip(below, values, strict=True)}
            result = structured.evaluate(
                node,
                _series(arrays, tokens, tokens_types),
                known=known,
                counts=counts,
                allow_masks=not self.strict,
            )
            self._structured[step] = counts
            if not is_floating(result) and largest(result) > LARGEST_EXACT:
                raise structured.Unstructured("integers beyond 2⁵³")
            return result

        return evaluate

    def _possible(self, node: Node, tokens: Types) -> dict[Node, Types]:
        """Return the possible types of a structured s-op and of all nodes on which it depends."""
        if (node, tokens) not in self._types:
            self._types[node, tokens] = possible_types(node, tokens)
        return self._types[node, tokens]

    def __call__(self, *parts: Any) -> Any:
        """Run the plan on arrays of tokens that have the shapes of the plan, and return the result."""
        return self.run(parts)

    def run(self, parts: Sequence[Any], tokens: Types = frozenset([float])) -> Any:
        """Check ``parts``, and return the result of the plan on these arrays.

        ``parts`` are arrays of floats that represent tokens of the types ``tokens``.
        """
        self._check(parts)
        return self.run_checked(parts, tokens).reshape(self._lengths[0])

    def run_checked(self, parts: Sequence[Any], tokens: Types = frozenset([float])) -> Any:
        """Return the result without checking the arguments; the result may have any shape.

        ``parts`` must have the shapes, the type and the device of the plan.
        """
        return self.run_all(parts, tokens)[0]

    def run_all(self, parts: Sequence[Any], tokens: Types = frozenset([float])) -> list[Any]:
        """Return the results of all roots from one run; each result may have any shape."""
        try:
            if self.backend.name != "numpy":
                # IEEE plans run graphs that torch has already captured, so they are not traced.
                if self.backend.is_tracing() and not self.backend.ieee:
                    constants = map(self.backend.arrays.put, self._constants)
                    results = self._traced()([*parts, *constants], tokens)
                else:
                    results = self._run(parts, tokens)
            else:
                # NumPy raises an error for overflow, division by zero and invalid operations, since
                # dense execution may reject the operation.
                with np.errstate(divide="raise", over="raise", invalid="raise", under="ignore"):
                    results = self._run(parts, tokens)
        except FloatingPointError as error:
            raise self._error(f"floating-point error: {error}", "FloatingPointError") from None
        except structured.Unstructured as reason:
            raise self._error(str(reason), "not fast") from None
        copied = self.backend.arrays.copied
        return [copied(r) if copies else r for r, copies in zip(results, self._copies, strict=True)]

    def move(self, part: Any) -> Any:
        """Return the result on a NumPy array of int64; the plan must satisfy ``only_moves``."""
        assert self._move is not None
        (result,) = self._move([part], None)
        moved = result.reshape(self._lengths[0])
        return np.array(moved) if self._copies[0] else moved

    @property
    def only_moves(self) -> bool:
        """Whether the plan only moves tokens and constant integers."""
        return self._move is not None

    @cached_property
    def _move(self) -> Any:
        """A function that runs the steps on integers, or None.

        The value is None if a step computes, or if a constant contains other numbers than integers
        with absolute values below 2⁵³.
        """
        if any(step.value is None and step.op not in _MOVES for step in self.steps):
            return None
        constants = {}
        for number, step in enumerate(self.steps):
            if step.value is not None:
                if not _is_whole(step.value):
                    return None
                constants[number] = step.value.astype(np.int64, copy=False)
        return self._written(constants=constants)

    @cached_property
    def has_structured(self) -> bool:
        """Whether the structured tier runs a part of the plan in each run."""
        return any(step.op == "structured" for step in self.steps)

    def _error(self, problem: str, kind: str) -> ExecutionError:
        return ExecutionError(problem, abbreviate(self.blueprint.roots[0], self.names), kind=kind)

    def _check(self, parts: Sequence[Any]) -> None:
        shapes = [step.shape for step in self.blueprint.inputs]
        if len(parts) != len(shapes):
            raise InputError(f"expected {len(shapes)} arrays of tokens, got {len(parts)}")
        for part, shape in zip(parts, shapes, strict=True):
            self.backend.check(part, shape)

    @property
    def counts(self) -> Mapping[str, int]:
        """Numbers of matrix products, gathers, masks and other operations of the plan.

        For structured steps, the operations of the last run are counted. Fused attention counts as two
        products and a softmax. A product with a bias counts as one product.
        """
        counts = Counter(step.op for step in self.steps)
        counts["matmul"] += 2 * counts["attention"] + counts["biased_product"]
        counts["softmax"] += counts["attention"]
        counts["fetch"] += counts["take_rows"]
        counts["mask"] = sum(_is_mask(step) for step in self.steps)
        return sum(self._structured.values(), counts)

    @property
    def opaque(self) -> Mapping[Node, str]:
        """The s-ops that the structured tier computes, in each run or when the plan is made, with the
        reasons.
        """
        return self.blueprint.opaque

    def explain(self) -> str:
        """Return the steps of the plan as text, with the names of s-ops in the program."""
        return explained(self.steps, self.blueprint, self.names)

    def named(self, names: Mapping[Node, str]) -> Plan:
        """Return a copy of the plan whose explanation uses the given names of nodes."""
        plan = copy.copy(self)
        plan.names = names
        return plan

    def with_functions(
        self,
        changed: Iterable[tuple[Step, Sequence[Step]]],
        make_steps: Callable[[], Sequence[Step]],
    ) -> Plan:
        """Return a copy of the plan with other sizes, strides or offsets in some steps.

        ``changed`` pairs each new step with the steps of this plan whose functions the new step
        replaces. ``make_steps`` returns the complete list of new steps. Run the copy with
        :meth:`run_all`.
        """
        functions: dict[int, Function] = {}
        for new, olds in changed:
            numbers = [self._numbers[old] for old in olds if old in self._numbers]
            if numbers:
                functions.update(dict.fromkeys(numbers, self._function(new)))
        plan = copy.copy(self)
        plan._run = replace_functions(self._run, functions)
        plan._make_steps = make_steps
        vars(plan).pop("steps", None)
        return plan

    @cached_property
    def steps(self) -> Sequence[Step]:
        """The steps of the plan, each after its inputs."""
        return self._make_steps()

    def greatest_integer(self, tokens: Types, largest: float) -> float:
        """Return an upper bound on the absolute values of the integers that arithmetic steps compute.

        ``tokens`` contains the types of the tokens; ``largest`` bounds their absolute values.
        """
        key = (tokens, 0.0 if tokens == {float} else largest)
        bound = self._greatest.get(key)
        if bound is None:
            if len(self._greatest) >= _REMEMBERED:
                self._greatest.clear()
            opaque = partial(integer_bound, tokens=key[0], largest=key[1], length=self.blueprint.length)
            bound = self._greatest[key] = greatest_integer(self.steps, *key, opaque)
        return bound

    def __repr__(self) -> str:
        return f"<plan of {self._size} steps, {self.backend.name}>"


def _series(arrays: Arrays, array: Any, types: Types) -> Any:
    """Convert an array of a plan to an array or a series of these types for the structured tier."""
    if types <= {bool}:
        return array != 0
    if types <= {bool, int}:
        rounded = array.round() if is_floating(array) else array
        return rounded.long() if is_tensor(array) else rounded.astype(np.int64)
    if float in types and len(types) > 1 and not is_tensor(array):
        return structured.Series(np.asarray(array, dtype=np.float64), "float", mixed=True)
    return array if is_floating(array) else arrays.to_float(array)


def _is_whole(value: Any) -> bool:
    """Return whether an array of numbers contains only integers with absolute values below 2⁵³."""
    is_number = value.dtype.kind in "if" and bool((np.abs(value) < LARGEST_EXACT).all())
    return is_number and bool((value == np.rint(value)).all())


def _is_seen_elsewhere(step: Step) -> bool:
    """Return whether a result must be copied.

    Views of arguments and of constants, and arrays that ``expand`` has repeated, must be copied.
    """
    while step.op in ("view", "reshape", "permute", "expand"):
        if step.op == "expand":
            return True
        (step,) = step.inputs
    return step.op == "input" or step.value is not None


def _is_mask(step: Step) -> bool:
    return step.op == "apply" and step.settings == ("if_else",) and step.inputs[0].value is not None
