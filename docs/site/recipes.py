"""Write a page for each item of the paper, and one that lists them all, from the one list of items.

Each has the paper's claim, the formula, a picture, RASP, Python, heads by layer, what is proven, errata and a
link into the playground. Nothing on it is written by hand but the few lines of Python in ``snippets.py``.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path

from docs.site.links import PLAYGROUND
from docs.site.openings import DRAWN, LIKE, opening
from docs.site.snippets import SNIPPETS

from locum.interface.cli.programs import Program
from locum.interface.display.claims import sentence
from locum.interface.playground.share import fragment
from locum.paper import listings
from locum.paper.as_printed import stated
from locum.paper.errata import ERRATA
from locum.paper.findings import Finding, examine
from locum.paper.item import Item
from locum.paper.items import ITEMS
from locum.rasp import Session, to_rasp
from locum.rasp.drawing.flow import flow_svg

#: Items about layouts, where there is nothing to draw.
_NO_PICTURE = {"positions"}


def pages() -> dict[str, str]:
    """Return the pages and pictures of all items, by their path in docs/."""
    written = {}
    findings = {key: examine(item) for key, item in ITEMS.items()}
    for key, finding in findings.items():
        written[f"recipes/{key}.md"] = page(finding)
        if svg := picture(finding.item):
            written[f"recipes/{key}.svg"] = svg
    written["recipes/index.md"] = index(findings)
    return written


def index(findings: dict[str, Finding]) -> str:
    """Write the page that lists the items."""
    rows = "\n".join(
        f"| [{finding.item.operation}]({key}.md) | {finding.item.paper} | {finding.verdict} | "
        f"{', '.join(finding.item.errata) or '–'} |"
        for key, finding in findings.items()
    )
    tree = "\n".join(findings)
    return f"""# Recipes

Every item of the paper as a program: formula, picture, RASP, Python, heads by layer, proofs, errata.

| recipe | in the paper | verdict | errata |
|---|---|---|---|
{rows}

:::{{toctree}}
:hidden:

{tree}
:::
"""


def page(finding: Finding) -> str:
    """Write the page of one item."""
    item = finding.item
    parts = [
        f"# {_title(item)}",
        _facts(finding),
        f"> {item.claim}",
        *_formula(item),
        *_picture_part(item),
        *_heads(finding),
        *_rasp(item),
        *_python(item),
        *_proofs(item),
        *_errata(item),
        *_further(item),
    ]
    return "\n\n".join(parts) + "\n"


def picture(item: Item) -> str | None:
    """Draw an item's program at work; None where U's own picture stands for it, or nothing is to be drawn."""
    if item.key in DRAWN:
        program, values = DRAWN[item.key]
        return flow_svg(program.node, values, item.key.replace("-", "_"))
    names = ITEMS[LIKE.get(item.key, item.key)].listings
    if not names:
        return None
    loaded = Program(Path(names[-1]))
    name, value = loaded.sop(None)
    return flow_svg(value.node, loaded.tokens, name, loaded.names())


def output_of(code: str) -> str:
    """Run a snippet and return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "snippet", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


def _facts(finding: Finding) -> str:
    functions = ", ".join(f"`{name}`" for name in finding.item.functions)
    return f"**In the paper**: {finding.item.paper}. **Verdict**: {finding.verdict}. **Functions**: {functions}."


def _title(item: Item) -> str:
    """Return the item's operation as a title: words begin with a capital, names and formulas stay."""
    first = item.operation[0]
    named = item.operation.split(",")[0] in item.functions or not first.isascii()
    return item.operation if named else first.upper() + item.operation[1:]


def _formula(item: Item) -> Iterator[str]:
    if not item.proofs:
        return
    yield "## Formula"
    claim = stated(item.quick_proofs[-1])
    text = re.sub(r", P being <code>.*?</code>$", "", sentence(claim))
    yield f'<div class="formula"><p>{text[:1].upper() + text[1:]}</p></div>'
    yield "This is the formula that is proven, at one of its shapes. P⟨…⟩ is what the program P gives on these tokens."


def _picture_part(item: Item) -> Iterator[str]:
    if item.key in _NO_PICTURE:
        return
    yield "## Picture"
    if picture(item) is None:
        yield "![The matrices of T and the rows of X become tokens; U answers T(X)](../pictures/universal.svg)"
        return
    yield f":::{{container}} picture\n![The heads of the program, layer by layer]({item.key}.svg)\n:::"
    yield "Layers are columns; queries are rows, keys are columns; below stands what is read, on the right what comes out."


def _heads(finding: Finding) -> Iterator[str]:
    if not finding.heads:
        return
    claimed = finding.item.claimed_heads
    yield "## Heads by layer"
    rows = "\n".join(
        f"| {recipe} | {len(heads)} | {', '.join(map(str, heads)) or 'none'} | {sum(heads)} |"
        for recipe, heads in finding.heads.items()
    )
    yield f"| program | layers | heads in each | heads |\n|---|---|---|---|\n{rows}"
    if claimed is not None:
        numbers = ", ".join(map(str, claimed)) or "none"
        agrees = "it is what is counted" if finding.counted else "**that is not what is counted**"
        yield f"The paper claims heads {numbers} for its recipe, the first row: {agrees}."


def _rasp(item: Item) -> Iterator[str]:
    yield "## RASP"
    for name in item.listings:
        text = listings.text(name)
        yield f"`locum run {name}`:"
        yield f"```rasp\n{text.strip()}\n```"
        yield f"```output\n{shown(text)}```"
    if item.listings:
        return
    programs = item.programs() or ({"at work": DRAWN[item.key][0]} if item.key in DRAWN else {})
    if not programs:
        yield f"There is no listing and no program of its own: see `{item.command}`."
        return
    recipe, program = min(programs.items(), key=lambda pair: len(to_rasp(pair[1])))
    yield f"The paper has no listing. The program of *{recipe}*, as `locum.rasp.to_rasp` writes it:"
    # Read back, it is the same object: what stands here is the program that was counted and checked.
    ((_, read_back),) = Session().script(to_rasp(program))
    assert read_back.node is program.node
    yield "<!-- not run: it takes tokens of one number; the build reads it back as the same program -->"
    yield f"```rasp\n{to_rasp(program).strip()}\n```"


def shown(text: str) -> str:
    """Return what a session prints for a program."""
    printed = "".join(result.printed for result in Session().execute(text))
    return re.sub(r"\n?$", "\n", printed)


def _python(item: Item) -> Iterator[str]:
    code = SNIPPETS[item.key]
    yield "## Python"
    yield f"```python\n{code}```"
    if printed := output_of(code):
        yield f"```output\n{printed}```"


def _proofs(item: Item) -> Iterator[str]:
    yield "## What is proven"
    if not item.proofs and not item.theorems:
        yield f"Not proven; measured: {item.measured} (`locum paper items`)."
        return
    if item.proofs:
        shapes = ", ".join(
            f"`{' '.join([one.name, *map(str, one.shape)])}`{f' ({one.recipe})' if one.recipe else ''}"
            for one in item.quick_proofs
        )
        yield (
            f"For all inputs, at {len(item.proofs)} shapes and recipes, by symbols ([how](../verification.md)); "
            f"`make prove` proves them all, with certificates. Some that take seconds: {shapes}."
        )
    if item.theorems:
        names = ", ".join(
            f"[{theorem['theorem']}](../../{theorem['file']})" for theorem in item.all_shapes
        )
        yield f"For all shapes, by Coq (`make coq`; [the statements](../proofs.md)): {names}."


def _errata(item: Item) -> Iterator[str]:
    if not item.errata:
        return
    yield "## Errata"
    yield from (ERRATA[number].section for number in item.errata)
    yield "All errata of the paper: [errata](../errata.md)."


def _further(item: Item) -> Iterator[str]:
    yield "## Go on"
    opened = opening(item)
    yield (
        f"- `{item.command}` shows it at work.\n"
        f"- [Open it in the playground]({PLAYGROUND}{fragment(opened.state)}), when `locum playground` runs. "
        f"{opened.note}".rstrip()
    )
