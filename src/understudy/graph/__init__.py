"""The one representation under every front end: interned nodes over a closed table of operations."""

from understudy.graph.atoms import Atom, Attribute, is_atom, sequence_type
from understudy.graph.families import family, members, size_of, substitute, sum_over
from understudy.graph.node import Node
from understudy.graph.operations import CASTS, OPERATIONS, PREDICATES, Operation, Sort, build, sort_of
from understudy.graph.printer import abbreviate, to_rasp
from understudy.graph.serialize import dumps, loads, stable_hash
from understudy.graph.traversal import postorder
from understudy.graph.wellformed import problems

__all__ = [
    "CASTS",
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
