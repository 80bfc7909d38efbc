"""Statements as they are run: what they show, and where their errors are."""

from __future__ import annotations

from locum.language.rasp.machine import Syntax
from locum.language.rasp.mistakes import RaspError
from locum.language.rasp.reader import Statement


def inner(statement: Statement) -> Syntax:
    """Return the tree of a statement that was read without an error."""
    assert statement.tree is not None
    return statement.tree.children[0]


def name_shown(tree: Syntax) -> str:
    """Name an expression for its display: a name is shown under itself, any other as ``out``."""
    expression = tree.children[0]
    return str(expression.children[0]) if expression.data == "name" else "out"


def with_source(error: RaspError, statement: Statement) -> RaspError:
    """Give an error its line of the program (that of the statement, if nothing nearer is known)."""
    number = error.line or statement.line
    source = statement.source.line(number)
    column = error.column or 1 + len(source) - len(source.lstrip())
    return error.at(number, column, source)
