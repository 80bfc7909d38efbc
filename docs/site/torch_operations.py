"""Write docs/torch_operations.md from the table of operations: ``python -m docs.site.torch_operations``."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterable

import torch
from docs.site.contents import DOCS
from torch._C import DispatchKey

from locum.torch import operations as operations
from locum.torch.backend import decompositions
from locum.torch.host_operations import OPERATIONS_BY_KIND, RANDOM
from locum.torch.table import KINDS, TABLE, Row

PAGE = DOCS / "torch_operations.md"


def page() -> str:
    """Return the Markdown text of docs/torch_operations.md."""
    version = torch.__version__.partition("+")[0]
    sections = "\n\n".join(section(kind) for kind in KINDS)
    tables = "\n".join(f"| {kind} | {names(of.split())} |" for kind, of in OPERATIONS_BY_KIND.items())
    drawn = lines(packet.__name__ for packet in RANDOM)
    return f"""# Supported PyTorch operations

Use this page to look up which ATen operations `torch.compile(model, backend="locum")` runs on U, the universal simulator.
[PyTorch models on U](torch.md) describes the backend. The tables of overloads use the names in error messages, such as
`aten.mm.default`.

U computes an operation if Locum has a *construction* for it: a function that returns a RASP program for the operation.
`locum.torch.table.TABLE` maps {len(TABLE)} overloads to constructions. The command `python -m docs.site.torch_operations`
writes this page from the table. The lists on this page apply to PyTorch {version}.

The backend supports an operation of a captured graph in one of three ways:

- U computes operations with a construction.
- PyTorch decomposes some operations into simpler operations before Locum translates the graph.
- PyTorch runs some operations on the host.

All other operations raise `UnsupportedOperationError`.

{sections}

## Decomposed operations

PyTorch replaces each of these operations by simpler operations. An operation is supported if U computes all operations
that replace it.

{lines(decomposed())}

PyTorch also replaces composite operations, such as `linear`, `matmul`, `einsum` and `scaled_dot_product_attention`.

## Operations on the host

PyTorch generates random numbers on the host, as in eager execution. The following operations generate random numbers:

{drawn}

With `host="allowed"`, PyTorch also computes tensors that depend only on integers, positions and shapes, such as masks. The
computation of such a tensor can contain views and the operations below. With `host="forbidden"`, U computes these operations
if they have a construction or are decomposed into operations with constructions.

| kind | operations |
|---|---|
{tables}
"""


def section(kind: str) -> str:
    """Return a table of the overloads of one kind; overloads with equal descriptions share a row."""
    overloads: dict[str, list[str]] = {}
    for row in TABLE.values():
        if row.kind == kind:
            overloads.setdefault(description(row), []).append(f"`{row.name}`")
    rows = "\n".join(f"| {'<br>'.join(of)} | {result} |" for result, of in overloads.items())
    return f"## {kind.capitalize()}\n\n| overloads | description |\n|---|---|\n{rows}"


def description(row: Row) -> str:
    """Return the first paragraph of a construction's docstring as Markdown, without Sphinx markup."""
    text = (inspect.getdoc(row.construct) or "").partition("\n\n")[0].replace("\n", " ")
    text = re.sub(r":\w+:`(\w+)`", r"`\1`", text.replace("``", "`"))
    return re.sub(r"(?<!\\)\|", r"\\|", text)


def decomposed() -> list[str]:
    """Return the names of the ATen operations that the backend lets PyTorch decompose.

    Operations that mutate an argument, and composite operations, which PyTorch always decomposes, are
    omitted.
    """
    return [
        overload.overloadpacket.__name__
        for overload in decompositions()
        if overload.namespace == "aten"
        and not overload._schema.is_mutable
        and not overload.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)
    ]


def lines(of: Iterable[str]) -> str:
    """Format the names of operations as a list with one line for each first letter."""
    ordered = sorted(set(of), key=lambda name: (name.strip("_"), name))
    groups = itertools.groupby(ordered, key=lambda name: name.strip("_")[0])
    return "\n".join(f"- {', '.join(f'`{name}`' for name in group)}" for _, group in groups)


def names(of: Iterable[str]) -> str:
    """Format the distinct names of operations as a sequence in alphabetical order."""
    return ", ".join(f"`{name}`" for name in sorted(set(of)))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
