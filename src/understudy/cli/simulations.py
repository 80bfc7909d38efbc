"""What ``understudy simulate`` runs: the figure, a random T or the user's, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from understudy.cli.matrices import Numbers, read_array, read_arrays
from understudy.errors import InputError
from understudy.simulators import Attention, Encoder, Module, MultiHeadAttention, UniversalSimulator
from understudy.simulators import figure2 as figure
from understudy.simulators.arrays import numpy_of
from understudy.simulators.explain import Explanation, Step, explain
from understudy.simulators.hierarchy import require_smaller
from understudy.simulators.sampling import random_module

#: Matrices of more rows or columns are shown in part.
SHOWN = 6
#: Up to so many pairs of positions, over all heads and steps, U is run literally unless one asks.
LITERAL = 5_000_000
#: How U was run, in words.
RUN_BY = {
    "dense": "Run by dense execution: every head, literally.",
    "heads": "Run by its heads: every row that is read, as attention over all keys.",
    "fast": "Run by the fast executor: the same program by products of matrices, not head by head.",
}
#: What a file may contain beside X, A and V.
FURTHER = ("W_O", "b_O", "W1", "W2", "b1", "b2")


class Simulation:
    """A T, an X and the U that runs them."""

    def __init__(
        self,
        title: str,
        T: Module,
        X: Numbers,
        simulator: UniversalSimulator,
        is_figure: bool = False,
        embedded: bool = False,
    ) -> None:
        self.title = title
        self.T = T
        self.X = X
        self.simulator = simulator
        self.is_figure = is_figure
        #: Whether T is smaller than U, and set into it.
        self.embedded = embedded
        self.explanation: Explanation | None = None
        #: What ran it.
        self.executor = ""

    @property
    def count(self) -> int:
        """How many steps there are to run."""
        return 1 if self.embedded else len(self.simulator.each_step())

    def executor_for(self, asked: str | None) -> str:
        """The executor that was asked for; else dense, which is the meaning, while that is quick."""
        if asked is not None:
            return asked
        pairs = self.count * sum(self.simulator.architecture.heads) * self.simulator.length**2
        return "dense" if pairs <= LITERAL else "auto"

    def run(self, asked: str | None, finished: Callable[[str], None]) -> None:
        """All steps, one after another; of an embedded T, the result alone."""
        U, T, X = self.simulator, self.T, self.X
        executor = self.executor = self.executor_for(asked)
        if self.embedded:
            step = Step("output", numpy_of(U.embed(T, X, executor=executor)), T(X))
            self.explanation = Explanation((step,))
        else:
            self.explanation = explain(U, T, X, executor=executor, finished=finished)

    @property
    def steps(self) -> Explanation:
        """What came of it."""
        assert self.explanation is not None
        return self.explanation

    @property
    def figure(self) -> figure.Demonstration | None:
        """The same as the paper's figure, if it is that."""
        return figure.Demonstration(self.simulator, self.steps) if self.is_figure else None

    def holds(self, tolerance: float) -> bool:
        """Whether U gave T(X); with another base than e that is not claimed."""
        if self.simulator.style.base is not None:
            return True
        size = max(1.0, float(np.abs(self.steps.steps[-1].direct).max()))
        agrees = self.figure is None or self.figure.reproduced
        return agrees and self.steps.error <= tolerance * size

    def rows(self) -> list[list[str]]:
        """The table: step, matrix, error, and what the figure has."""
        found = []
        for step in self.steps:
            row = [step.name, _shown(step.matrix), f"{step.error:.6e}"]
            printed = figure.PRINTED.get(step.name)
            if self.figure is not None and printed is not None:
                row[0] = f"{printed.name} = {printed.formula}"
                row += [f"{printed.error:.6e}" if printed.error else "≈ 0"]
                row += ["all equal" if self.figure.agrees(step.name) else "not all equal"]
            found.append(row)
        return found

    @property
    def summary(self) -> str:
        """What U is, and how well it did."""
        U, style = self.simulator, self.simulator.style
        base = "e" if style.base is None else f"{style.base:g}"
        return (
            f"U of order {U.order}: {U.length} tokens, {U.architecture}; recipe {style.recipe}, base "
            f"{base}.\n{RUN_BY.get(self.executor, RUN_BY['fast'])}\n"
            f"U(⟨T, X⟩) differs from T(X) by at most {self.steps.error:.6e}."
        )

    def to_dict(self) -> dict[str, Any]:
        """For scripts."""
        U, order = self.simulator, self.simulator.order
        steps = []
        for step in self.steps:
            entry = step.to_dict()
            printed = figure.PRINTED.get(step.name)
            if self.figure is not None and printed is not None:
                entry |= {
                    "paper": printed.name,
                    "figure_error": printed.error,
                    "digits_agree": self.figure.agrees(step.name),
                }
            steps.append(entry)
        return {
            "order": [order.n, order.attention.d, order.attention.d_v],
            "number_of_heads": order.attention.heads,
            "feed_forward": order.feed_forward,
            "kind": order.attention.kind,
            "recipe": U.style.recipe,
            "executor": self.executor,
            "base": np.e if U.style.base is None else U.style.base,
            "figure": None if self.figure is None else {"reproduced": self.figure.reproduced},
            "steps": steps,
            "result": self.steps.steps[-1].matrix.tolist(),
            "error": self.steps.error,
            "tokens": U.length,
            "layers": U.architecture.layers,
            "heads": U.architecture.heads,
            "program": U.hash,
        }

    def save(self, file: IO[bytes]) -> None:
        """X, the matrices of T, the result, the direct one, and every step, as a .npz file."""
        arrays = {"X": numpy_of(self.X)}
        for name, copies in self.T.matrices().items():
            stacked = np.stack([numpy_of(copy) for copy in copies])
            arrays[name] = stacked if len(copies) > 1 else stacked[0]
        last = self.steps.steps[-1]
        arrays |= {"result": last.matrix, "direct": last.direct}
        arrays |= {f"step {step.name}": step.matrix for step in self.steps}
        np.savez(file, **arrays)  # type: ignore[arg-type]


def chosen(options: Mapping[str, Any]) -> Simulation:
    """The simulation that the options of the command ask for."""
    from_files = [options[name] is not None for name in ("file", "x", "a", "v")]
    if options["order"] is not None and any(from_files):
        raise InputError("--order draws T and X at random: give it, or files, but not both")
    if options["order"] is not None:
        return _random(options)
    if any(from_files):
        return _given(options)
    others = {
        "on": None,
        "heads": 1,
        "ffn": None,
        "norm": "none",
        "mask": None,
        "kind": "softmax",
        "seed": 0,
    }
    wrong = [f"--{name}" for name, default in others.items() if options[name] != default]
    if wrong:
        raise InputError(f"{', '.join(wrong)} need --order n,d,d_v: without it, Figure 2 is run")
    recipe = options["recipe"] or "paper"
    U = UniversalSimulator(3, 3, 3, recipe=recipe, base=options["base"])
    return Simulation("Figure 2 of the paper, by U", figure.T, figure.X, U, is_figure=True)


def _random(options: Mapping[str, Any]) -> Simulation:
    U = _simulator(options["order"], options)
    generator = np.random.default_rng(options["seed"])
    T = random_module(U.order, generator)
    X = generator.normal(size=(U.order.n, U.order.attention.d))
    title = f"A random T of order {U.order}, seed {options['seed']}"
    return _placed(Simulation(title, T, X, U), options)


def _placed(simulation: Simulation, options: Mapping[str, Any]) -> Simulation:
    """The simulation as it is, or on the larger U that --on names."""
    if options["on"] is None:
        return simulation
    U = _simulator(options["on"], options)
    require_smaller(simulation.simulator.order, U.order)
    title = f"{simulation.title}, on a U of order {U.order}"
    return Simulation(title, simulation.T, simulation.X, U, embedded=True)


def _simulator(order: tuple[int, int, int], options: Mapping[str, Any]) -> UniversalSimulator:
    """The U of an order and of the other options."""
    return UniversalSimulator(
        *order,
        options["heads"],
        options["ffn"],
        options["kind"],
        options["norm"],
        options["mask"],
        options["recipe"] or "fetch",
        base=options["base"],
    )


def _given(options: Mapping[str, Any]) -> Simulation:
    arrays = _arrays(options)
    attention = _attention(arrays, options["mask"])
    T: Module = attention
    layer: dict[str, Any] = {name: arrays[name] for name in ("W1", "W2", "b1", "b2") if name in arrays}
    if layer or options["norm"] != "none":
        T = Encoder(attention, **layer, norm=options["norm"])
    if options["kind"] != "softmax":
        raise InputError("files describe softmax attention: other kinds are drawn at random, --order")
    X = arrays["X"]
    if X.ndim != 2:
        raise InputError(f"X must be a matrix, but its shape is {X.shape}")
    U = UniversalSimulator.of(T, len(X), recipe=options["recipe"] or "fetch", base=options["base"])
    U.check(T, X)
    return _placed(Simulation(f"Your T of order {U.order}", T, X, U), options)


def _arrays(options: Mapping[str, Any]) -> dict[str, Numbers]:
    """X, A, V and the rest, from one file or from several."""
    file, single = options["file"], [options[name] for name in ("x", "a", "v")]
    if file is None and single[0] is not None and single[1:] == [None, None]:
        file, single = single[0], [None] * 3  # --x all.npz
    found: dict[str, Numbers] = {}
    if file is not None:
        known = {name.lower(): name for name in ("X", "A", "V", *FURTHER)}
        for name, array in read_arrays(file).items():
            if name.lower() in known:
                found[known[name.lower()]] = array
    for name, path in zip(("X", "A", "V"), single, strict=True):
        if path is not None:
            found[name] = read_array(path)
    missing = [name for name in ("X", "A", "V") if name not in found]
    if missing:
        where = f" in {file}" if file is not None else ""
        raise InputError(
            f"there is no {' and no '.join(missing)}{where}: a simulation needs X, A and V "
            "(--x, --a, --v, or one file with arrays of these names)"
        )
    return found


def _attention(arrays: Mapping[str, Numbers], mask: str | None) -> Attention | MultiHeadAttention:
    """One head, or as many as A and V have on their first axis."""
    A, V = arrays["A"], arrays["V"]
    if A.ndim != 3 and V.ndim != 3 and "W_O" not in arrays:
        return Attention(A, V, mask=mask)
    A, V = (array[None] if array.ndim == 2 else array for array in (A, V))
    if A.ndim != 3 or V.ndim != 3 or len(A) != len(V):
        raise InputError(
            f"A and V of several heads are heads×d×d and heads×d×d_v, not {A.shape}, {V.shape}"
        )
    heads = [Attention(a, v, mask=mask) for a, v in zip(A, V, strict=True)]
    return MultiHeadAttention(heads, arrays.get("W_O"), arrays.get("b_O"))


def _shown(matrix: Numbers) -> str:
    """A matrix with three digits, in part if it is large."""
    rows, columns = matrix.shape
    part = matrix[:SHOWN, :SHOWN]
    width = max(len(f"{value:.3f}") for value in part.ravel())
    text = "\n".join(
        " ".join(f"{value:{width}.3f}" for value in row) + (" …" if columns > SHOWN else "")
        for row in part
    )
    return text + (f"\n… ({rows}×{columns})" if rows > SHOWN or columns > SHOWN else "")
