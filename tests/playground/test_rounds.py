"""Random edits and clicks in a browser: no text is lost, and values are those of the program."""

from __future__ import annotations

import random

import pytest
from hypothesis import settings

from locum.interface.playground import answer

pytest.importorskip("playwright", reason="the browser tests need playwright")
from playwright.sync_api import Page

from tests.playground.test_browser import CHROMIUM, PATIENCE, PAUSE, address, page, tab, written

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the browser tests need Chromium")
__all__ = ["address", "page", "tab"]

#: Statements with a free name and the names before.
_STATEMENTS = (
    "{new} = indices + {number};",
    "{new} = {old} * {number} - length;",
    "{new} = aggregate(select(indices, {number}, <=), {old});",
    "{new} = selector_width(select(tokens, tokens, ==)) + {old};",
    "{new} = {old} % {number};",
    "{new} = {old} if indices < {number} else {number};",
    "{new} = aggregate(select(indices, length - 1 - indices, ==), {old});",
    "{new} = {old} < ;",
)
_ACTIONS = ("write", "write", "input", "pane", "mode", "reload", "share", "exercise")
#: The rows of the pane Values, as lists of texts; null while they are outdated.
_VALUES = """() => document.querySelector("#values.stale") ? null :
    [...document.querySelectorAll("#values .list tr")].map(
        (row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent))"""


def program(generator: random.Random) -> str:
    """Write a random program; some have an error."""
    names, lines = ["indices"], []
    for number in range(generator.randrange(1, 5)):
        pattern = generator.choice(_STATEMENTS[: 8 if generator.random() < 0.2 else 7])
        new, old = f"x{number}", generator.choice(names)
        lines.append(pattern.format(new=new, old=old, number=generator.randrange(1, 6)))
        names.append(new)
    return "\n".join(lines) + f"\n# {generator.randrange(10**6)}"


def ready(page: Page) -> None:
    """Wait until a page that was loaded can be used; the policy forbids to wait in it."""
    page.wait_for_selector("#examples optgroup", state="attached")
    page.wait_for_timeout(100)


def settled(page: Page, source: str, typed: str) -> list[list[str]]:
    """Wait until the page has this text and its values."""
    page.wait_for_timeout(PAUSE)
    for _ in range(PATIENCE // PAUSE):
        rows: list[list[str]] | None = page.evaluate(_VALUES)
        if rows is not None and page.evaluate("Locum.editor.text()") == source:
            break
        page.wait_for_timeout(PAUSE)
    assert page.evaluate("Locum.editor.text()") == source
    assert page.input_value("#input") == typed
    return rows or []


def test_random_edits_and_clicks_lose_nothing(page: Page, address: str) -> None:
    rounds = 300 if settings().max_examples > 1_000 else 6
    generator = random.Random(7)
    exercises = {e["key"]: e for e in answer({"action": "catalogue"})["exercises"]}
    stored = {key: exercise["starter"] for key, exercise in exercises.items()}
    page.goto(f"{address}?rounds")
    ready(page)
    current, source, typed = None, "x = indices;", "hello"
    written(page, source)
    for _ in range(rounds):
        action = generator.choice(_ACTIONS)
        if action == "write":
            source = program(generator)
            written(page, source)
        elif action == "input":
            typed = "".join(generator.choices("abc", k=generator.randrange(1, 8)))
            page.fill("#input", typed)
        elif action == "pane":
            page.click(f"#tab-{generator.choice(('heads', 'weights', 'values', 'counts'))}")
        elif action == "mode":
            page.click("#mode-u")
            page.click("#mode-rasp")
        elif action == "share":
            page.click("#share")
            page.locator("#shared").wait_for()
        elif action == "exercise":
            if current is not None:
                stored[current] = source
            current = generator.choice([key for key in exercises if key != current])
            source, typed = stored[current], exercises[current]["example"]
            page.select_option("#exercises", current)
        else:
            page.reload()
            ready(page)
        rows = settled(page, source, typed)
        result = answer({"action": "run", "source": source, "input": typed})
        if result["errors"]:
            assert page.locator(".cm-lintRange-error, .cm-lint-marker-error").count(), source
            continue
        shown = {row[0]: row[2:] for row in rows if row}
        for statement in result["statements"]:
            if statement["kind"] == "s-op":
                assert shown[statement["name"]] == statement["values"], source
