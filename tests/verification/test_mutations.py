"""Certificates of the prover, changed as a forger would: what is accepted holds at sample points.

Every part of a file is changed: the program, the formula, the conditions, the tokens, the questions,
the trees, the hints. The hash of the program is then computed again. So the checker has to reject the
proof itself.
"""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from locum.errors import LocumError
from locum.graph import OPERATIONS, Sort, build, dumps, loads, stable_hash
from locum.proofs import Proof, RejectedError, prove
from locum.proofs.checker.check import check
from locum.proofs.claims.formula import from_json
from tests.verification.forger import SHOWN, SMALL, Forger, examine

NAMED: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("groupsort", (2, 2)),
    ("match2", (2, 3)),
    ("softmax", (1, 2)),
    ("inverse", (2,)),
    ("relu", (2,)),
    ("matmul", (2, 1, 2)),
    ("attention", (2, 1, 1)),
    ("hard_attention", (2, 1, 1)),
)
#: How many certificates are about programs of the forger.
OWN = 24
#: Stands for a node of a program while another node is built on it.
_HOLE = build("constant", value=987_654_321)
_REPLACEMENTS: tuple[Any, ...] = (
    0,
    1,
    -1,
    2,
    5,
    "0",
    "1",
    "-1/2",
    {"shown": []},
    ">",
    "=",
    None,
    [],
    {},
    True,
)
_ELEMENTWISE = ("add", "subtract", "multiply", "divide", "maximum", "minimum")


@cache
def certificate(number: int) -> str:
    """Return a certificate of the prover, as JSON."""
    if number < len(NAMED):
        name, shape = NAMED[number]
        proof = prove(name, *shape)
        assert isinstance(proof, Proof)
        return json.dumps(proof.certificate)
    seed = 1_000 * number
    while True:
        verdict = prove(Forger(random.Random(seed)).claim())
        if isinstance(verdict, Proof):
            return json.dumps(verdict.certificate)
        seed += 1


class Mutation:
    """Random changes of one certificate."""

    def __init__(self, draw: random.Random, content: dict[str, Any]) -> None:
        self.draw = draw
        self.content = content
        self.rows: list[Any] = content["program"]["graph"]["nodes"]
        self.table: list[Any] = content["formulas"]["table"]
        self.questions = max(1, len(content["questions"]["roots"]))

    def change(self) -> None:
        """Make one change."""
        changes: list[Callable[[], None]] = [
            self.hide_noise,
            self.hide_noise,
            self.change_operation,
            self.change_input,
            self.change_attribute,
            self.change_reference,
            self.change_condition,
            self.change_sequence,
            self.change_tree,
            self.change_proof,
            self.change_proof,
        ]
        self.draw.choice(changes)()

    # The program ----------------------------------------------------------------------------------

    def hide_noise(self) -> None:
        """Put noise that is not used on top of a node, which may be the result."""
        draw = self.draw
        sops = [n for n, row in enumerate(self.rows) if OPERATIONS[row[0]].gives is Sort.SOP]
        number = sops[-1] if draw.random() < 0.3 else draw.choice(sops)
        forger = Forger(draw)
        hidden = forger.hide(_HOLE, forger.noise(draw.choice((1, 2))))
        added: list[Any] = []
        places: list[int] = []
        for op, inputs, attributes in json.loads(dumps(hidden))["nodes"]:
            if (op, attributes) == ("constant", {"value": 987_654_321}):
                places.append(number)
            else:
                places.append(number + 1 + len(added))
                added.append([op, [places[n] for n in inputs], attributes])
        for row in self.rows[number + 1 :]:
            row[1] = [
                n + len(added) if n > number else places[-1] if n == number else n for n in row[1]
            ]
        self.rows[number + 1 : number + 1] = added

    def change_operation(self) -> None:
        """Exchange an operation for another one with the same operands."""
        row = self.draw.choice(self.rows)
        old = OPERATIONS[row[0]]
        row[0] = self.draw.choice(
            [
                new.name
                for new in OPERATIONS.values()
                if (new.takes, new.gives) == (old.takes, old.gives)
                and new.attributes.keys() == old.attributes.keys()
            ]
        )

    def change_input(self) -> None:
        """Replace an operand by another node."""
        rows = [(n, row) for n, row in enumerate(self.rows) if row[1]]
        number, row = self.draw.choice(rows)
        row[1][self.draw.randrange(len(row[1]))] = self.draw.randrange(number)

    def change_attribute(self) -> None:
        """Replace a constant, a default, a predicate or an entry of a table."""
        paths = [
            (n, 2, *path) for n, row in enumerate(self.rows) for path in list_paths(row[2]) if row[2]
        ]
        if paths:
            new = self.draw.choice((*SMALL, True, 0.5, "==", "<", ">="))
            replace(self.rows, self.draw.choice(paths), new)

    # The claim ------------------------------------------------------------------------------------

    def change_reference(self) -> None:
        """Change the formula that the program is compared with."""
        draw, roots = self.draw, self.content["formulas"]["roots"]
        row = draw.choice(self.table)
        if row[0] == "constant":
            row[2][0] = str(draw.choice(SMALL))
        elif row[0] in _ELEMENTWISE and draw.random() < 0.7:
            row[0] = draw.choice(_ELEMENTWISE)
        elif draw.random() < 0.5:
            self.table.append([draw.choice(_ELEMENTWISE), [roots[0], draw.choice(roots)], None])
            roots[0] = len(self.table) - 1
        else:
            self.table.append([draw.choice(("absolute", "negate")), [roots[0]], None])
            roots[0] = len(self.table) - 1

    def change_condition(self) -> None:
        """Remove or change a condition, or the domain."""
        draw, relations, roots = self.draw, self.content["relations"], self.content["formulas"]["roots"]
        if relations and draw.random() < 0.8:
            number = draw.randrange(len(relations))
            if draw.random() < 0.5:
                relations[number] = draw.choice((">", "!="))
            else:
                del relations[number], roots[number + 1]
        else:
            self.content["domain"] = draw.choice(("real", "integer"))

    def change_sequence(self) -> None:
        """Change a token, or the places of the result."""
        draw, tokens, places = self.draw, self.content["tokens"], self.content["places"]
        if draw.random() < 0.5:
            tokens[draw.randrange(len(tokens))] = draw.choice((*SMALL, draw.choice(tokens)))
        else:
            row = draw.choice(places)
            row[draw.randrange(len(row))] = draw.randrange(len(tokens))

    def falsify(self) -> None:
        """Add 1 to the reference of a true claim."""
        roots = self.content["formulas"]["roots"]
        (reference, *_) = from_json(self.content["formulas"])
        self.table.append(["constant", [], ["1", *reference.shape]])
        self.table.append(["add", [roots[0], len(self.table) - 1], None])
        roots[0] = len(self.table) - 1

    # The proof ------------------------------------------------------------------------------------

    def change_tree(self) -> None:
        """Replace a part of a tree by a leaf or by another part, or split it."""
        draw, trees = self.draw, self.content["trees"]
        paths = [
            path for path in list_paths(trees) if path[-1] == "cases" or path[-2:-1] == ("answers",)
        ]
        if not paths:
            return
        path = draw.choice(paths)
        parts = [find(trees, other) for other in paths]
        questions = self.questions
        split = {"sign": draw.choice((">", "=")), "of": draw.randrange(questions), "answers": parts[:2]}
        impossible = {"impossible": [[draw.randrange(questions), draw.choice((1, -1))]]}
        new = draw.choice((SHOWN, SHOWN, impossible, split, draw.choice(parts)))
        replace(trees, path, json.loads(json.dumps(new)))

    def change_proof(self) -> None:
        """Replace or remove a part of the questions, the trees or the hints."""
        draw = self.draw
        part = draw.choice(("questions", "trees"))
        paths = list_paths(self.content[part])
        if paths:
            *way, last = draw.choice(paths)
            holder = find(self.content[part], way)
            if isinstance(holder, list) and draw.random() < 0.5:
                del holder[last]
            else:
                holder[last] = draw.choice(_REPLACEMENTS)

    def seal(self) -> dict[str, Any]:
        """Return the file with the hash of its program."""
        program = self.content["program"]
        with contextlib.suppress(LocumError, ValueError, TypeError):  # the checker rejects the file
            program["hash"] = stable_hash(loads(json.dumps(program["graph"])))
        return self.content


def list_paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all parts of a JSON value."""
    found = [here] if here else []
    if isinstance(value, (dict, list)):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            found += list_paths(part, (*here, key))
    return found


def find(value: Any, path: Any) -> Any:
    """Return the part of a JSON value at a path."""
    for step in path:
        value = value[step]
    return value


def replace(value: Any, path: Any, new: Any) -> None:
    """Replace the part of a JSON value at a path."""
    find(value, path[:-1])[path[-1]] = new


def mutate(draw: random.Random) -> dict[str, Any]:
    """Return a changed certificate."""
    mutation = Mutation(draw, json.loads(certificate(draw.randrange(len(NAMED) + OWN))))
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        mutation.change()
    return mutation.seal()


@given(st.integers(0, 2**64))
def test_mutated_certificates_hold_at_points_if_they_are_accepted(seed: int) -> None:
    draw = random.Random(seed)
    event(examine(mutate(draw), draw))


@given(st.integers(0, 2**64))
def test_mutated_proofs_of_false_claims_are_rejected(seed: int) -> None:
    """The claims are known to be false, so no certificate may be accepted."""
    draw = random.Random(seed)
    mutation = Mutation(draw, json.loads(certificate(draw.randrange(len(NAMED)))))
    mutation.falsify()
    for _ in range(draw.randint(0, 4)):
        draw.choice((mutation.change_tree, mutation.change_proof))()
    with pytest.raises(RejectedError):
        check(mutation.content)
