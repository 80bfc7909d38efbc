"""Represent programs as graphs of interned nodes, each with an operation from a fixed table."""

from locum.graph.atoms import Atom, Attribute, is_atom, sequence_type
from locum.graph.families import family, members, size_of, substitute, sum_over
from locum.graph.node import Node
from locum.graph.operations import (
    CASTS,
    COMPARISONS,
    OPERATIONS,
    PREDICATES,
    Operation,
    Sort,
    build,
    sort_of,
)
from locum.graph.printer import abbreviate, to_rasp
from locum.graph.serialize import dumps, loads, stable_hash
from locum.graph.traversal import postorder
from locum.graph.wellformed import problems

__all__ = [
    "CASTS",
    "COMPARISONS",
    "OPERATIONS",
    "PREDICATES",
    "Atom",
    "Attribute",
    "Node",
    "Operation",
    "Sort",
    "abbreviate",
    "build",
    "dumps",
    "family",
    "is_atom",
    "loads",
    "members",
    "postorder",
    "problems",
    "sequence_type",
    "size_of",
    "sort_of",
    "stable_hash",
    "substitute",
    "sum_over",
    "to_rasp",
]
