"""Write docs/torch_operations.md from the table of operations: ``python -m docs.site.torch_operations``."""

from __future__ import annotations

import inspect
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
    """Return the text of the page."""
    version = torch.__version__.partition("+")[0]
    sections = "\n\n".join(section(kind) for kind in KINDS)
    tables = "\n".join(f"| {kind} | {names(of.split())} |" for kind, of in OPERATIONS_BY_KIND.items())
    drawn = names(packet.__name__ for packet in RANDOM)
    return f"""# Supported PyTorch operations

Use this page to look up which ATen operations the backend `torch.compile(model, backend="locum")` runs on U.
[torch.md](torch.md) describes the backend. Error messages name an operation as this page does, such as `aten.mm.default`.

`python -m docs.site.torch_operations` writes this page from `locum.torch.table.TABLE`, which has {len(TABLE)} overloads.
The lists are those of PyTorch {version}.

A captured graph has four kinds of operations:

- operations with a construction, which U computes;
- operations that PyTorch decomposes into others before the backend receives the graph;
- operations that PyTorch runs on the host;
- all others, which raise `UnsupportedOperationError`.

{sections}

## Decomposed operations

PyTorch replaces these operations by others. U computes them if it computes the operations that replace them.

{names(decomposed())}

Composite operations, such as `linear`, `matmul`, `einsum` and `scaled_dot_product_attention`, are replaced in the same way.

## Operations on the host

PyTorch draws random numbers with its own generator, as in eager execution:

{drawn}

With `host="allowed"`, PyTorch also computes tables that depend only on integers, positions and shapes. These operations and
views can be part of a table. With `host="forbidden"`, U computes them if they have a construction.

| kind | operations |
|---|---|
{tables}
"""


def section(kind: str) -> str:
    """Return the table of the overloads of a kind; overloads with the same result share a row."""
    overloads: dict[str, list[str]] = {}
    for row in TABLE.values():
        if row.kind == kind:
            overloads.setdefault(description(row), []).append(f"`{row.name}`")
    rows = "\n".join(f"| {'<br>'.join(of)} | {result} |" for result, of in overloads.items())
    return f"## {kind.capitalize()}\n\n| overloads | result |\n|---|---|\n{rows}"


def description(row: Row) -> str:
    """Return the first sentence of a construction's docstring, without the markup of Sphinx."""
    text = (inspect.getdoc(row.construct) or "").partition("\n\n")[0].replace("\n", " ")
    text = re.sub(r":\w+:`(\w+)`", r"`\1`", text.replace("``", "`"))
    return re.sub(r"(?<!\\)\|", r"\\|", text)


def decomposed() -> list[str]:
    """Return the ATen operations that the backend has decomposed, without composite operations."""
    return [
        overload.overloadpacket.__name__
        for overload in decompositions()
        if overload.namespace == "aten"
        and not overload._schema.is_mutable
        and not overload.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)
    ]


def names(of: Iterable[str]) -> str:
    """Return the names of operations in their order, without repetitions."""
    return ", ".join(f"`{name}`" for name in sorted(set(of)))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
