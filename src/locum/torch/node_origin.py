"""Where a node of a captured graph comes from: its module and its line of source code."""

from __future__ import annotations

import re

from torch import fx

#: The object that Dynamo traces, such as ``L['self']``, and everything before its first attribute.
_ROOT = re.compile(r"^[A-Z]\['\w+'\]")
_ITEM = re.compile(r"\[(?:'([^']*)'|(\d+))\]")


def module_paths(node: fx.Node) -> list[str]:
    """Return the paths of the modules around a node, outermost first, such as ``encoder.layer.0``.

    The compiled module itself has the path "". A node of a backward graph has the modules of the
    operation that it differentiates.
    """
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    return [normalise_path(path) for path, _ in stack.values()]


def module_path(node: fx.Node) -> str:
    """Return the path of the innermost module of a node; "" outside of any module."""
    paths = module_paths(node)
    return paths[-1] if paths else ""


def normalise_path(path: str) -> str:
    """Return a path of Dynamo as ``named_modules`` prints it.

    >>> normalise_path("L['self'].encoder.layer[0].output")
    'encoder.layer.0.output'
    """
    path = _ROOT.sub("", path)
    path = path.replace("._modules", "")
    return _ITEM.sub(lambda match: f".{match[1] or match[2]}", path).strip(".")


def source_line(node: fx.Node) -> str:
    """Return the innermost line of the user's source code, such as ``File "model.py", line 3``."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    return next((line for line in reversed(lines) if line.startswith("File ")), "")


def describe_origin(node: fx.Node) -> str:
    """Return the module and the source line of a node for an error message; "" if unknown."""
    path, source = module_path(node), source_line(node)
    return (f" in module {path}" if path else "") + (f" ({source})" if source else "")
