"""The page in a real browser: Playwright with the system's Chromium, or skipped with a message."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locum.paper import figure2
from locum.playground.saving import PAGE
from locum.playground.share import fragment, state
from tests.playground.solutions import SOLUTIONS

pytest.importorskip("playwright", reason="the browser tests need playwright")
from playwright.sync_api import BrowserContext, Locator, Page, expect, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="the browser tests need Chromium")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
#: Milliseconds for anything to appear: workers of a fresh server are starting, and machines are busy.
PATIENCE = 300_000
#: The playground as a user starts it, but for limits on time that a busy machine would exceed.
SERVER = """
from locum.cli.main import main
from locum.playground import pool, worker

class Pool(pool.Pool):
    def __init__(self, limits):
        super().__init__(limits=worker.Limits(cpu=60, wall=600.0))

pool.Pool = Pool
main()
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the playground answers."""
    command = [sys.executable, "-c", SERVER, "playground", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"]
        process.terminate()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"),
            executable_path=CHROMIUM,
            args=FLAGS,
            viewport={"width": 1400, "height": 900},
        )
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        yield context
        context.close()


@pytest.fixture
def page(browser: BrowserContext) -> Iterator[Page]:
    """An empty page, whose console must stay free of errors."""
    page = browser.new_page()
    problems: list[str] = []
    page.on(
        "console", lambda message: problems.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield page
    page.close()
    assert problems == []


def opened(page: Page, address: str, **content: Any) -> Page:
    page.goto("about:blank")
    page.goto(address + (fragment(content) if content else ""))
    return page


def written(page: Page, source: str) -> None:
    """Type a program, as a user does."""
    editor = page.locator(".cm-content")
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.type(source)


def texts(rows: Locator) -> list[list[str]]:
    return [row.locator("td").all_inner_texts() for row in rows.all()]


def test_a_program_gives_values_heads_and_weights(page: Page, address: str) -> None:
    opened(page, address)
    written(
        page, "flip = select(indices, length - 1 - indices, ==);\nback = aggregate(flip, tokens);\n"
    )
    expect(page.locator(".cm-value").last).to_have_text("[o, l, l, e, h] (strings)")
    head = page.locator("#heads .head").last
    expect(head.locator(".title")).to_have_text("flip")
    expect(head.locator("td.on")).to_have_count(5)
    page.fill("#input", "abc")
    expect(page.locator("#heads p").first).to_have_text("back(a b c) = c b a")
    page.click("#tab-values")
    expect(page.locator("#values .list tr").last).to_have_text("backstringcba")
    page.click("#tab-weights")
    expect(page.locator("#network .good")).to_contain_text("the network gives what the program gives")
    expect(page.locator("#sublayer tr").last).to_have_text("answercba")
    page.focus("#moment")
    page.keyboard.press("Home")
    expect(page.locator("#moment-name")).to_have_text("after the embedding")
    page.select_option("#option-attention", "softmax")
    expect(page.locator("#network dl")).to_contain_text("softmax")
    page.click("#others")
    expect(page.locator("#network p").last).to_contain_text("the same as the program on all 20")
    page.click("#tab-counts")
    expect(page.locator("#sizes tr").last).to_have_text("back21, 11")


def test_a_mistake_is_marked_at_its_place(page: Page, address: str) -> None:
    opened(page, address)
    written(page, "x = indices;\ny = x + unknown;\n")
    mark = page.locator(".cm-lintRange-error")
    expect(mark).to_have_text("unknown")
    mark.hover()
    expect(page.locator(".cm-tooltip-lint")).to_contain_text("unknown")


def test_statements_heads_and_slots_light_up_together(page: Page, address: str) -> None:
    opened(page, address)
    head = page.locator("#heads .head").last
    expect(page.locator(".cm-value").last).to_be_visible()  # nothing is drawn again after that
    head.hover()
    expect(page.locator(".cm-line.cm-lit").first).to_have_text(re.compile("^flip"))
    page.locator(".cm-line", has_text="reverse =").hover()
    expect(head).to_have_class("head lit")
    page.click("#tab-weights")
    page.locator(".cm-line", has_text="reverse =").hover()
    expect(page.locator("#sublayer tr.lit th").first).to_contain_text("reverse")
    cell = page.locator("#heads [data-cell='0 4']").last
    page.click("#tab-heads")
    cell.hover()
    expect(page.locator("#heads .cross")).to_have_count(4)  # query, key, what is read and comes out


def test_u_steps_as_explain_does(page: Page, address: str) -> None:
    opened(page, address)
    page.click("#mode-u")
    demonstration = figure2.figure2()
    expect(page.locator("#u-step-name")).to_contain_text("step 1 of 6: XA")
    for number, step in enumerate(demonstration.explanation):
        if number:
            page.get_by_label("next step").click()
        expect(page.locator("#u-step-name")).to_contain_text(
            f": {step.name}, error {step.error:.2e}"[:-3]
        )
        cells = page.locator("#u-matrix td")
        expect(cells).to_have_count(step.matrix.size)
        shown = [float(cell.get_attribute("title") or "nan") for cell in cells.all()]
        assert shown == step.matrix.ravel().tolist()
    expect(page.locator("#u-tokens span")).to_have_count(27)
    page.fill("#u-X-0-0", "2")
    expect(page.locator("#u-tokens span").first).to_have_text("2")
    page.select_option("#u-recipe", "fetch")
    expect(page.locator("#u-error")).to_contain_text("U of order (3, 3, 3)")
    page.fill("#u-temperature", "0")
    expect(page.get_by_text("0: hard attention")).to_be_visible()
    page.click("#u-prove")
    expect(page.locator("#u-proof")).to_contain_text("Proven, attention 3 3 3 (fetch)")


def test_links_carry_the_state_both_ways(page: Page, address: str) -> None:
    source, options = "x = indices * 2;\n", {"length": 6, "attention": "softmax"}
    opened(page, address, source=source, input="[1, 2.0]", pane="weights", options=options)
    expect(page.locator(".cm-value")).to_have_text("[0, 2] (ints)")
    expect(page.locator("#tab-weights")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#option-length")).to_have_value("6")
    page.click("#share")
    expect(page.locator("#link")).to_have_value(re.compile(re.escape(address) + "#v1=.+"))
    content = state("#" + page.locator("#link").input_value().partition("#")[2])
    assert content["source"] == source
    assert content["options"] == options
    assert content["input"] == "[1, 2.0]"


def test_exercises_check_themselves_and_remember(page: Page, address: str) -> None:
    opened(page, address)
    page.select_option("#exercises", "reverse")
    page.click("#check")
    expect(page.locator("#verdict")).to_contain_text("✗ on a b it should be b a, but reverse is a b")
    page.get_by_role("button", name="show it").click()
    expect(page.locator("#input")).to_have_value("ab")
    written(page, SOLUTIONS["reverse"])
    page.click("#check")
    expect(page.locator("#verdict")).to_contain_text("✓ solved")
    page.reload()
    expect(page.locator("#exercises option").nth(1)).to_have_text("✓ 1. Reverse")


def test_an_embedded_page_shows_the_program_alone(page: Page, address: str) -> None:
    page.goto(
        address + "?embed" + fragment({"source": "x = indices;", "input": "abc", "pane": "values"})
    )
    expect(page.locator(".cm-value")).to_have_text("[0, 1, 2] (ints)")
    expect(page.locator("h1")).to_be_hidden()
    expect(page.locator("#whole")).to_be_visible()


def test_a_saved_page_works_from_the_disk(page: Page, address: str, tmp_path: Path) -> None:
    source = 'x = tokens + "</script><b>bold</b>";\nwidth = selector_width(select(x, x, ==));\n'
    opened(page, address, source=source, input="hello")
    expect(page.locator("#heads .head").first).to_be_visible()
    page.click("#more summary")
    with page.expect_download() as download:
        page.click("#save-html")
    path = tmp_path / "saved.html"
    download.value.save_as(path)
    page.goto(path.as_uri())
    expect(page.locator(".cm-value").last).to_have_text("[1, 1, 2, 2, 1] (ints)")
    expect(page.locator("#heads .head").first).to_be_visible()
    page.click("#tab-weights")
    expect(page.locator("#network .good")).to_be_visible()
    assert page.locator("b").count() == 0


def test_markup_is_shown_as_text(page: Page, address: str) -> None:
    image = "<img src=x onerror=document.title=1>"
    opened(page, address, source=f'x = tokens + "{image}";\nbad = {image};', input=image[:5])
    expect(page.locator(".cm-value").first).to_contain_text("<img")
    page.click("#tab-values")
    expect(page.locator("#values")).to_contain_text(image)
    assert page.locator("img[src]").count() == 0
    assert page.title() == "Locum playground"


def test_narrow_dark_and_by_keyboard(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.emulate_media(color_scheme="dark")
    opened(page, address)
    expect(page.locator("#heads .head").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.focus("#tab-heads")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#tab-weights")).to_be_focused()
    expect(page.locator("#network .good")).to_be_visible()


def contrast(one: list[float], other: list[float]) -> float:
    """The contrast of two colours, as WCAG 2 defines it."""

    def luminance(colour: list[float]) -> float:
        c = np.array(colour) / 255
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    light, dark = sorted([luminance(one), luminance(other)], reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_have_contrast(theme: str) -> None:
    style = (PAGE / "style.css").read_text(encoding="utf-8")
    rules = re.findall(r":root[^{]*\{([^}]*)\}", style)[theme == "dark"]
    colours = {
        name: [float(int(value[i : i + 2], 16)) for i in (0, 2, 4)]
        for name, value in re.findall(r"--(\w+): #([0-9a-f]{6})", rules)
    }
    for ink in ("ink", "soft", "accent", "good", "bad"):
        for paper in ("card", "page"):
            assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
    assert contrast(colours["ink"], colours["lit"]) >= 4.5
    assert contrast(colours["soft"], colours["lit"]) >= 4.5
