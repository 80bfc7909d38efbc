"""Write a page for each item of the paper, and an index of these pages.

A page contains the claim of the paper, Python code and a link to the playground. The page also contains
the formula, a figure, RASP text, the numbers of heads by layer, proofs and errata if they exist.
``snippets.py`` contains the Python code, and the other parts are generated.
"""

from __future__ import annotations

import contextlib
import io
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from docs.site.links import PLAYGROUND
from docs.site.openings import DRAWN, LIKE, opening
from docs.site.snippets import SNIPPETS

from locum.interface.cli.programs import Program
from locum.interface.playground.share import fragment
from locum.paper import listings
from locum.paper.as_printed import stated
from locum.paper.errata import ERRATA
from locum.paper.findings import Finding, examine
from locum.paper.item import Item
from locum.paper.items import ITEMS
from locum.proofs import FAMILIES
from locum.rasp import Session, to_rasp
from locum.rasp.drawing.flow import flow_svg

#: Maximum number of heads that a figure draws in each layer, and the width of a page in pixels.
_HEADS, _PAGE = 2, 760.0
#: Maximum number of characters in a line of RASP code.
_LINE = 90
#: Keys of items without a figure, which are about the layout of tokens.
_NO_PICTURE = {"positions"}
#: The item whose page shows the figure of U.
_UNIVERSAL = "attention"
#: Subjects of items whose key does not name the subject.
_SUBJECTS = {
    "cofactor": "cofactors",
    "identify-shift": "identify and shift",
    "match": "Match₂ and Match₃",
    "matmul": "matrix product",
    "maxmin": "sorting pairs",
    "multihead": "blocks in parallel",
}


def pages() -> dict[str, str]:
    """Return the pages and figures of all items, by their paths in docs/."""
    written = {}
    findings = {key: examine(item) for key, item in ITEMS.items()}
    for key, finding in findings.items():
        written[f"recipes/{key}.md"] = page(finding)
        if svg := picture(finding.item):
            written[f"recipes/{key}.svg"] = svg
    written["recipes/index.md"] = index(findings)
    return written


def index(findings: dict[str, Finding]) -> str:
    """Return the Markdown text of the page that lists all items with their verdicts."""
    rows = "\n".join(
        f"| [{_title(finding.item)}]({key}.md) | {finding.item.operation} | {finding.verdict} | "
        f"{', '.join(finding.item.errata) or '–'} |"
        for key, finding in findings.items()
    )
    tree = "\n".join(findings)
    return f"""# Recipes: the items of the paper as programs

Use these pages to run each item of the paper. A page contains Python code and, if they exist, the formula of the item, a figure, RASP text,
the heads in each layer, proofs and errata.

| item of the paper | operation | verdict | errata |
|---|---|---|---|
{rows}

:::{{toctree}}
:hidden:

{tree}
:::
"""


def page(finding: Finding) -> str:
    """Return the Markdown text of the page of one item of the paper."""
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
    """Draw a listing or a program of ``DRAWN`` on an example as SVG, or return None without both."""
    if item.key in DRAWN:
        program, values = DRAWN[item.key]
        return flow_svg(program.node, values, item.key.replace("-", "_"), most=_HEADS, page=_PAGE)
    names = item.listings
    if not names:
        return None
    loaded = Program(Path(names[-1]))
    name, value = loaded.sop(None)
    return flow_svg(value.node, loaded.tokens, name, loaded.names(), most=_HEADS, page=_PAGE)


def output_of(code: str) -> str:
    """Run Python code and return its printed output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "snippet", "exec"), {"__name__": "__main__"})
    return printed.getvalue()


def _facts(finding: Finding) -> str:
    functions = ", ".join(f"`{name}`" for name in finding.item.functions)
    return f"**Operation**: {finding.item.operation}. **Verdict**: {finding.verdict}. **Functions**: {functions}."


def _title(item: Item) -> str:
    """Return the title of an item's page: the location in the paper and usually the subject.

    An example is "Theorem 1: attention".
    """
    if item.key in _SUBJECTS:
        return f"{item.paper}: {_SUBJECTS[item.key]}"
    words = item.key.split("-")
    place = item.paper.lower().replace("-", "")
    return item.paper if all(word in place for word in words) else f"{item.paper}: {' '.join(words)}"


def _formula(item: Item) -> Iterator[str]:
    if not item.proofs:
        return
    yield "## Formula"
    claim = stated(item.quick_proofs[-1])
    yield f"For {claim.scope}: {claim.heading}. This formula is proven; here it is shown for one shape."


def _picture_part(item: Item) -> Iterator[str]:
    if item.key in _NO_PICTURE:
        return
    yield "## Figure"
    if item.key in LIKE:
        yield f"See [the figure of {LIKE[item.key]}]({LIKE[item.key]}.md#figure)."
        return
    if picture(item) is None and item.key != _UNIVERSAL:
        yield f"[The figure of Theorem 1]({_UNIVERSAL}.md#figure) shows how U reads T and X as tokens."
        return
    if picture(item) is None:
        yield "![The matrices of T and the rows of X become tokens; U returns T(X)](../pictures/universal.svg)"
        return
    yield f":::{{container}} picture\n![The heads of the program, layer by layer]({item.key}.svg)\n:::"
    yield (
        "Each row of the figure is a layer. In an attention pattern, rows are queries and columns are keys. The "
        "values are below the pattern, and the results are on its right."
    )


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
        numbers = (
            f"these heads in each layer: {', '.join(map(str, claimed))}" if claimed else "no heads"
        )
        agrees = "equals" if finding.counted else "**differs from**"
        yield f"For its recipe, the paper states {numbers}. This claim {agrees} the count in the first row."


def _rasp(item: Item) -> Iterator[str]:
    yield "## RASP"
    for name in item.listings:
        text = wrapped(listings.text(name).strip()) + "\n"
        yield f"`locum run {name}`:"
        yield f"```rasp\n{text}```"
        yield f"```output\n{shown(text)}```"
    if item.listings:
        return
    programs = item.programs() or ({"the figure": DRAWN[item.key][0]} if item.key in DRAWN else {})
    if not programs:
        yield f"The paper contains no listing for this item. To check the item, run `{item.command}`."
        return
    recipe, program = min(programs.items(), key=lambda pair: len(to_rasp(pair[1])))
    yield (
        "The paper contains no listing for this item. `locum.rasp.to_rasp` returns this text for the program of "
        f"*{recipe}*:"
    )
    text = wrapped(to_rasp(program).strip())
    # Reading the text returns the same node, so the text is the program whose heads were counted.
    ((_, read_back),) = Session().script(text)
    assert read_back.node is program.node
    yield "<!-- not run: it needs one number per token; the build reads it again as the same program -->"
    yield f"```rasp\n{text}\n```"


def wrapped(text: str) -> str:
    """Break long lines of RASP text at spaces; comments and lines with strings are not broken.

    >>> wrapped("x = " + "+ ".join(["1 "] * 60) + ";").count("\\n")
    2
    """
    lines = []
    for line in text.splitlines():
        is_code = not set("#'\"") & set(line)
        long = textwrap.wrap(
            line, _LINE, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )
        lines += long if is_code and len(line) > _LINE else [line]
    return "\n".join(lines)


def shown(text: str) -> str:
    """Return the output that a session prints for a program in RASP text."""
    printed = "".join(result.printed for result in Session().execute(text))
    return re.sub(r"\n?$", "\n", printed)


def _python(item: Item) -> Iterator[str]:
    code = SNIPPETS[item.key]
    yield "## Python"
    yield f"```python\n{code}```"
    if printed := output_of(code):
        yield f"```output\n{printed}```"


def _proofs(item: Item) -> Iterator[str]:
    yield "## Proofs"
    if not item.proofs and not item.theorems:
        yield f"This item is not proven. `locum paper items` checks {item.measured}."
        return
    if item.proofs:
        # `locum prove claim` accepts no claims about listings.
        commands = ", ".join(
            f"`{' '.join(['locum prove claim', one.name, *map(str, one.shape), *_recipe(one.recipe)])}`"
            for one in item.quick_proofs
            if one.name in FAMILIES
        )
        yield (
            f"The item is proven for all inputs, at {len(item.proofs)} combinations of shapes and recipes "
            f"([verification](../verification.md)). "
            f"Some of these claims can be proven in seconds: {commands}."
        )
    if item.theorems:
        names = ", ".join(
            f"[{theorem['theorem']}](../../{theorem['file']})" for theorem in item.all_shapes
        )
        yield (
            "`make coq` checks these [theorems in Coq](../theorems.md), which hold for all inputs and, unless a theorem "
            f"fixes a size, for all shapes: {names}."
        )


def _recipe(recipe: str | None) -> list[str]:
    return ["--recipe", recipe] if recipe else []


def _errata(item: Item) -> Iterator[str]:
    if not item.errata:
        return
    # Searches for "errata" find the page of all errata first.
    yield "## Corrections"
    rows = "\n".join(
        f"- {number} ({ERRATA[number].severity}): {ERRATA[number].where}" for number in item.errata
    )
    yield (
        f"{rows}\n\nEach entry states the severity and the place in the paper. The page [errata](../errata.md) contains the "
        "quotes, counterexamples and corrections."
    )


def _further(item: Item) -> Iterator[str]:
    yield "## Run it"
    opened = opening(item)
    yield (
        f"- `{item.command}`\n"
        f"- [Open the item in the playground]({PLAYGROUND}{fragment(opened.state)}) while `locum playground` is "
        f"running. {opened.note}".rstrip()
    )
