"""Compare Locum's constructions with other systems, by claimed and measured sizes and errors.

Locum's constructions are compiled to weights and run. The looped transformers (Giannou et al. 2023) are
the networks of ``locum.networks.looped``. These networks are reconstructions where the authors' layout
could not be read. Systems that are not run here are only cited, and their rows state this.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from locum import constructions as c
from locum.constructions import Matrix
from locum.networks.compiler import compile as compile_program
from locum.networks.looped import FleqMachine, Product, Transposition, inversion_program
from locum.networks.looped.machine_programs import PROGRAMS
from locum.networks.transformer import CompiledTransformer
from locum.networks.transformer.transformer_architecture import TransformerArchitecture
from locum.rasp.python import tokens
from locum.simulators import Attention, UniversalSimulator

#: Orders of matrices, and scales of their entries, for which errors of transpositions and products are
#: measured.
ORDERS, SCALES = (3, 5, 8), (0.01, 1.0, 10.0)
LOOPED, RECONSTRUCTED = "looped transformer", "looped transformer (reconstruction)"
#: A function that is called with the number of finished rows, of all rows, and the name of a row.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Row:
    """A row of the comparison: one operation by one system."""

    operation: str
    system: str
    #: The authors' claim, such as layers, heads and the size of the input.
    claimed: str
    #: "measured", or "cited" if nothing was run.
    status: str
    order: str = ""
    layers: int | None = None
    passes: int | None = None
    heads: int | None = None
    d_model: int | None = None
    tokens: int | None = None
    parameters: int | None = None
    nonzeros: int | None = None
    #: For each input, the largest difference from the expected result, divided by the largest absolute
    #: entry of the expected result. The inputs of transpositions and products have entries of about
    #: 0.01, 1 and 10. For SUBLEQ, the share of wrong states.
    errors: tuple[float, ...] = ()
    seconds: float | None = None
    #: What the weights depend on, whether a loop outside of the network is required, and how T or the
    #: data are given to the network.
    weights_depend_on: str = ""
    loop: bool = False
    enters_as: str = ""
    note: str = ""

    @property
    def error(self) -> float:
        """The largest measured error, or NaN if no error was measured."""
        return max(self.errors, default=float("nan"))

    @property
    def depth(self) -> int:
        """The number of layers that are applied in sequence."""
        return (self.layers or 0) * (self.passes or 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the row as a JSON-compatible dictionary."""
        return dataclasses.asdict(self) | {"errors": list(self.errors)}


def _sizes(architecture: TransformerArchitecture, positions: int) -> dict[str, Any]:
    return {
        "layers": architecture.layers,
        "heads": max(architecture.heads, default=0),
        "d_model": architecture.d_model,
        "tokens": positions,
        "parameters": architecture.parameters,
        "nonzeros": architecture.nonzeros,
    }


def _measured(
    run: Callable[..., Any], exact: Callable[..., Any], inputs: list[tuple[Any, ...]]
) -> dict[str, Any]:
    """Run a system on each input; return the relative errors, and the median wall time in seconds."""
    errors, spent = [], []
    for case in inputs:
        started = time.perf_counter()
        result = run(*case)
        spent.append(time.perf_counter() - started)
        expected = exact(*case)
        errors.append(float(np.abs(result - expected).max() / np.abs(expected).max()))
    return {"errors": tuple(errors), "seconds": float(np.median(spent))}


def _matrices(order: int, count: int) -> list[tuple[Any, ...]]:
    rng = np.random.default_rng(order)
    return [tuple(scale * rng.normal(size=(count, order, order))) for scale in SCALES]


#: The kinds of networks to which Locum's constructions are compiled: their names in rows, and options
#: of the compiler. Symbolic feed-forwards are executed as instructions, so they have separate rows.
_EXACT: tuple[str, dict[str, Any]] = (
    "hard attention, exact feed-forwards (instructions)",
    {"feed_forward": "exact"},
)
_UNITS = {
    kind: (
        f"softmax attention, {kind} units",
        {"attention": "softmax", "feed_forward": kind, "ranges": (-50.0, 50.0)},
    )
    for kind in ("glu", "relu")
}


def _apply(model: CompiledTransformer, program: Matrix, length: int, *matrices: Any) -> Any:
    sequence = np.zeros(length)
    flat = np.concatenate([np.asarray(matrix).ravel() for matrix in matrices])
    sequence[: len(flat)] = flat
    places = program.places
    values = np.asarray(model(sequence))[places.positions.start : places.positions.stop]
    return places.take(values)


def _ours(
    operation: str, recipe: str, claimed: str, order: int, program: Matrix, size: int,
    exact: Callable[..., Any], inputs: list[tuple[Any, ...]],
    host: tuple[str, dict[str, Any]] = _EXACT,
) -> Row:  # fmt: skip
    length = max(size, program.needs)
    note, options = host
    model = compile_program(program.sop, length=length, numeric=True, fixed=True, **options)
    kind = None if host is _EXACT else options["feed_forward"]
    return Row(
        operation, f"ours, {recipe}" + (f", {kind}" if kind else ""), claimed, "measured", f"{order} × {order}", passes=1,
        **_sizes(model.architecture, length),
        **_measured(lambda *case: _apply(model, program, length, *case), exact, inputs),
        weights_depend_on="the order", enters_as="tokens", note=note,
    )  # fmt: skip


def _transpositions() -> Iterator[Row]:
    for order in ORDERS:
        inputs = _matrices(order, 1)
        matrix = Matrix(tokens, order, order)
        for host in (_EXACT, _UNITS["relu"]):
            yield _ours(
                "transposition", "paper", "2 layers, 1 head, O(1)", order, c.transpose(matrix, "paper"),
                order**2, np.transpose, inputs, host,
            )  # fmt: skip
        block = Transposition(order)
        yield Row(
            "transposition", RECONSTRUCTED, "4 layers, 1 head, input 4r × r²", "measured",
            f"{order} × {order}", passes=1, **_sizes(block.architecture, block.positions),
            **_measured(block, np.transpose, inputs), weights_depend_on="the order, through λ",
            enters_as="columns of a prepared state", note="softmax attention, relu units",
        )  # fmt: skip


def _products() -> Iterator[Row]:
    for order in ORDERS:
        inputs = _matrices(order, 2)
        first, second = c.concatenate(tokens, (order, order), (order, order))
        for recipe in ("paper", "fetch", "tiled", "scatter"):
            claim = "3 layers, O(rc) heads, input k(r + c)" if recipe == "paper" else "not in the paper"
            yield _ours(
                "multiplication", recipe, claim, order, c.matmul(first, second, recipe), 2 * order**2,
                np.matmul, inputs,
            )  # fmt: skip
        for host in _UNITS.values():
            yield _ours(
                "multiplication", "fetch", "not in the paper", order, c.matmul(first, second, "fetch"),
                2 * order**2, np.matmul, inputs, host,
            )  # fmt: skip
        for heads in (1, 2):
            block = Product(order, order, order, heads=heads, largest=1e4)
            claim = "2 layers, 1 head, input 54d²" if heads == 1 else "not in their paper"
            yield Row(
                "multiplication", f"{RECONSTRUCTED}, {heads} {'head' if heads == 1 else 'heads'}", claim,
                "measured", f"{order} × {order}", passes=1, **_sizes(block.architecture, block.positions),
                **_measured(block, lambda a, b: a.T @ b, inputs),
                weights_depend_on="the order, and δ, which trades range for digits",
                enters_as="columns of a prepared state", note="softmax attention, relu units; AᵀB by a linearised softmax",
            )  # fmt: skip


def _inversions() -> Iterator[Row]:
    for order in (3, 4):
        rng = np.random.default_rng(order)
        inputs = [(np.eye(order) + 0.3 * rng.normal(size=(order, order)),) for _ in range(3)]
        matrix = Matrix(tokens, order, order)
        recipes = ("paper", "cofactor", "gauss-jordan") if order == 3 else ("gauss-jordan",)
        for recipe in recipes:
            claim = "5 layers, 4 heads, 3 × 3 alone" if recipe == "paper" else "not in the paper"
            built = (
                c.inverse(matrix, recipe, order=3) if recipe == "paper" else c.inverse(matrix, recipe)
            )
            yield _ours("inversion", recipe, claim, order, built, order**2, np.linalg.inv, inputs)
        passes = 2 + 5 * 30
        registers, program = inversion_program(inputs[0][0], 30)
        machine = FleqMachine(order, len(registers), len(program))

        def newton(A: Any, machine: FleqMachine = machine, passes: int = passes) -> Any:
            return machine.execute(*inversion_program(A, 30), passes)[0][2]

        yield Row(
            "inversion", f"{RECONSTRUCTED}, Newton by FLEQ", "13 layers, 1 head, any order", "measured",
            f"{order} × {order}", **_sizes(machine.architecture, machine.positions),
            **_measured(newton, np.linalg.inv, inputs), passes=passes,
            weights_depend_on="order, registers, program length", loop=True,
            enters_as="a program and its registers in a prepared state", note="softmax attention, relu units; 30 iterations",
        )  # fmt: skip


def _attentions() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    order = (3, 3, 3)
    A, V = rng.normal(size=(2, 3, 3))
    T, X = Attention(A, V), rng.normal(size=(3, 3))
    claims = {"paper": "one network for every T; depth independent of the order"}
    # Networks of softmax heads and GELU units can be loaded into a stock PyTorch encoder. Symbolic
    # feed-forwards are executed as instructions.
    units = {"attention": "softmax", "feed_forward": "gelu", "ranges": (-5.0, 5.0)}
    hosts = [("native", units)] + [
        (recipe, {"feed_forward": "exact"})
        for recipe in ("paper", "fetch", "tiled", "width-1", "native")
    ]
    for recipe, options in hosts:
        U = UniversalSimulator(*order, recipe="fetch" if recipe == "native" else recipe)
        model = U.compile(recipe, **options)
        head = "a softmax head does the softmax" if recipe == "native" else "hard attention"

        def run(X: Any, U: UniversalSimulator = U, model: CompiledTransformer = model) -> Any:
            return U.decode(model(U.encode(T, X)))

        yield Row(
            "attention", f"ours, U {recipe}" + (", gelu" if options is units else ""), claims.get(recipe, "not in the paper"), "measured",
            "(3, 3, 3)", passes=1, **_sizes(model.architecture, U.length),
            **_measured(run, T, [(X,), (0.1 * X,), (2 * X,)]), weights_depend_on="the order (n, d, d_v)",
            enters_as="tokens, with X",
            note=head + (", gelu units" if options is units else ", exact feed-forwards (instructions)"),
        )  # fmt: skip
    special = UniversalSimulator(*order).specialise(T)
    model = special.compile("native", **units)
    yield Row(
        "attention", "ours, U specialised to T", "the first Futamura projection", "measured", "(3, 3, 3)",
        passes=1, **_sizes(model.architecture, special.length),
        **_measured(lambda X: special.decode(model(special.encode(X))), T, [(X,), (0.1 * X,), (2 * X,)]),
        weights_depend_on="the order, and T", enters_as="weights", note="one softmax head, gelu units; W_QK is A",
    )  # fmt: skip


def _computers() -> Iterator[Row]:
    program = PROGRAMS["factorial"]
    machine = program.machine
    model = machine.model()
    states = program.looped()
    wrong = sum(a != b for a, b in zip(states, program.interpreted(), strict=True))
    yield Row(
        "SUBLEQ, one command", LOOPED, "9 layers, 2 heads (the authors' code: 10 blocks)", "measured",
        f"{machine.words} words of {machine.bits} bits, {machine.commands} commands",
        **_sizes(model.architecture, machine.positions), passes=program.steps, errors=(wrong / program.steps,),
        weights_depend_on="the number of words, commands and bits", loop=True,
        enters_as="tokens: words and commands",
        note=f"factorial: {wrong} of {program.steps} states differ from a plain interpreter",
    )  # fmt: skip


_CITED = [
    Row(
        "attention", "in-context emulation (Hu et al., ICLR 2026)",
        "two frozen softmax layers emulate any head, to any precision", "cited",
        weights_depend_on="the order and the precision", enters_as="prompt",
        note="the public code trains networks to copy a head; it does not run the construction",
    ),
    Row(
        "attention", "fixed universal transformers (Andoni, Hsu, Liu 2026)",
        "all L layers at once, width O(HLd)", "cited", weights_depend_on="sizes alone",
        enters_as="input embedding", note="no public code was found",
    ),
    Row(
        "any computation", "prompting is Turing complete (Qiu et al. 2025)",
        "one finite decoder, hard attention and layer norm", "cited", loop=True,
        weights_depend_on="nothing", enters_as="prompt, then chain of thought",
        note="no public code was found",
    ),
    Row(
        "any computation", "transformer-vm (2026)", "7 layers, d_model 36, 18 heads of dimension 2",
        "cited", loop=True, weights_depend_on="nothing, or the program (Futamura)",
        enters_as="tokens: WebAssembly", note="not run here",
    ),
    Row(
        "any program", "Tracr (Lindner et al. 2023)",
        "RASP on finite vocabularies; no operation on real matrices", "cited",
        weights_depend_on="the program, its vocabulary and length", enters_as="weights",
        note="recorded figures of 18 programs: docs/benchmarks.md",
    ),
]  # fmt: skip


#: Number of rows that are measured, for the progress.
MEASURED = 47


def compare(progress: Progress = lambda done, total, label: None) -> list[Row]:
    """Run all systems that are not only cited, and return the measured rows and the cited rows."""
    rows: list[Row] = []
    for part in (_transpositions, _products, _inversions, _attentions, _computers):
        for row in part():
            rows.append(row)
            progress(len(rows), MEASURED, f"{row.operation}, {row.system}")
    return rows + _CITED


def shown(error: float) -> str:
    """Format an error with one significant digit.

    >>> shown(0.0), shown(2.3e-12)
    ('0', '2e-12')
    """
    return f"{error:.0e}" if error else "0"


def _network(row: Row) -> str:
    """Return the name of a row's system, with its kind of attention and feed-forwards."""
    return f"{row.system}: {row.note}"


def winners(rows: list[Row]) -> list[str]:
    """Write a text for each operation and order, on the best errors, depths and sizes.

    Only measured rows are compared. Operations without a construction of Locum are omitted.
    """
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.status == "measured":
            groups.setdefault((row.operation, row.order), []).append(row)
    sentences = []
    for (operation, order), group in groups.items():
        rivals = [row for row in group if row.system.startswith(LOOPED)]
        ours = [row for row in group if row not in rivals]
        if not ours:
            continue
        best = min(ours, key=lambda row: (row.error, row.depth))
        shallow = min(ours, key=lambda row: row.depth)
        sentence = (
            f"{operation} of {order}: Locum's smallest error is {shown(best.error)} ({_network(best)}). "
            f"Its smallest number of layers is {shallow.depth} ({_network(shallow)})"
        )
        if rivals:
            rival = min(rivals, key=lambda row: row.error)
            wide = min(rivals, key=lambda row: row.heads or 0)
            size = (rival.tokens or 0) * (rival.d_model or 0)
            narrow = min(ours, key=lambda row: row.heads or 0)
            sentence += (
                f". Of the looped transformers, the smallest error is {shown(rival.error)} "
                f"({_network(rival)}), with {rival.depth} layers and a state of {size:,} numbers. Locum's "
                f"network reads {best.tokens} tokens. The smallest number of heads in a layer is "
                f"{narrow.heads} for Locum and {wide.heads} for the looped transformers"
            )
        sentences.append(sentence + ".")
    return sentences
