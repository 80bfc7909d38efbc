"""What axe-core finds in the page: nothing, in any pane, light and dark, wide and narrow.

The script is ``node_modules/axe-core/axe.min.js`` (``npm install axe-core``), or the file that
``LOCUM_AXE`` names; without it the tests are skipped.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.old.interface.test_browser import (  # the fixtures, too
    CHROMIUM,
    address,
    details,
    expect,
    opened,
    page,
    tab,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["address", "page", "tab"]

_INSTALLED = Path(__file__).parents[3] / "node_modules/axe-core/axe.min.js"
AXE = Path(os.environ.get("LOCUM_AXE") or _INSTALLED)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="the browser tests need Chromium"),
    pytest.mark.skipif(not AXE.is_file(), reason=f"needs axe-core: {AXE} or LOCUM_AXE"),
]
WRONG = "x = 1 +;\ny = x;\n"
SORT = (
    "smaller = select(tokens, tokens, <);\nearlier = select(tokens, tokens, ==) and "
    "select(indices, indices, <);\nrank = selector_width(smaller or earlier);\n"
    "sorted = aggregate(select(rank, indices, ==), tokens);\n"
)


def found(page: Page) -> list[tuple[str, Any]]:
    """Return the rules that the page breaks, and where."""
    page.evaluate(f"{AXE.read_text(encoding='utf-8')}; 0")
    result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        (rule["id"], [node["target"] for node in rule["nodes"][:3]]) for rule in result["violations"]
    ]


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (720, "light"), (400, "dark")])
def test_axe_finds_nothing_in_any_pane(page: Page, address: str, scheme: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    opened(page, address, source=SORT, input="hello")
    expect(page.locator("#flow svg").first).to_be_attached()
    problems = {"heads": found(page)}
    page.click("#tab-weights")
    expect(page.locator("#network .good")).to_be_visible()
    details(page)
    for step in range(4):
        problems[f"weights {step}"] = found(page)
        page.click("#moment-next")
    for pane, sign in (("values", "#values table"), ("counts", "#counts table")):
        page.click(f"#tab-{pane}")
        expect(page.locator(sign).first).to_be_visible()
        problems[pane] = found(page)
    page.click("#open-teach")
    problems["teach"] = found(page)
    page.click("#teach-close")
    page.click("#mode-u")
    expect(page.locator("#u-matrix")).to_be_visible()
    problems["U"] = found(page)
    assert {pane: rules for pane, rules in problems.items() if rules} == {}


def test_axe_finds_nothing_with_errors_exercises_and_in_a_frame(page: Page, address: str) -> None:
    opened(page, address, source=WRONG, input="hello")
    expect(page.locator("#problems button")).to_have_count(2)
    assert found(page) == []
    page.select_option("#exercises", "reverse")
    page.click("#check")
    expect(page.locator("#verdict")).to_contain_text("✗")
    assert found(page) == []
    page.set_viewport_size({"width": 760, "height": 420})
    page.goto(f"{address}?embed=heads")
    expect(page.locator("#heads .head").first).to_be_visible()
    assert found(page) == []
