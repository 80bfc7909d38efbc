"""The page in a real browser: Playwright with the system's Chromium, or skipped with a message."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from locum.interface.playground import answer
from locum.interface.playground.example_programs import FIRST_STEPS
from locum.interface.playground.share import PAGE, fragment, state
from locum.interface.playground.solutions import SOLUTIONS
from locum.paper import figure2
from tests.old.interface.test_share import LINKS, NO_LINKS
from tests.old.interface.test_teaching import BY_HAND

pytest.importorskip("playwright", reason="the browser tests need playwright")
from playwright.sync_api import Locator, Page, Route, sync_playwright
from playwright.sync_api import expect as expect_in

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
REVERSE = FIRST_STEPS["reverse"][1]
#: Milliseconds for anything to appear: workers of a fresh server are starting, and machines are busy.
PATIENCE = 300_000
#: Milliseconds between two looks at the page.
PAUSE = 25

#: What is said of digits that a number would drop.
_FEWER = "expected a number that floats hold to its last digit (15 digits always are), got"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The playground as a user starts it."""
    # A busy machine takes long by the clock: the limits are not what is tested here.
    command = [sys.executable, "-m", "locum", "playground", "--port", "0", "--json", "--limit", "300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()


#: What the pages wrote into their console as errors.
PROBLEMS: list[str] = []


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory, address: str) -> Iterator[Page]:
    """A page for all tests: a browser takes longer to make one than most of them take.

    It is closed before the server ends, so that no request fails.
    """
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=CHROMIUM, args=FLAGS
        )
        context.set_default_timeout(PATIENCE)
        (page,) = context.pages
        page.on(
            "console",
            lambda message: PROBLEMS.append(message.text) if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: PROBLEMS.append(str(error)))
        yield page
        context.close()
        assert PROBLEMS == []


@pytest.fixture
def page(tab: Page) -> Iterator[Page]:
    """The page, whose console must stay free of errors."""
    tab.set_viewport_size({"width": 1400, "height": 900})
    tab.emulate_media(color_scheme="light")
    yield tab
    tab.unroute_all()
    problems = PROBLEMS.copy()
    PROBLEMS.clear()
    assert problems == []


class _Watched:
    """What Playwright expects of a part of a page, looked at more often than it does."""

    def __init__(self, locator: Locator) -> None:
        self._page, self._expected = locator.page, expect_in(locator)

    def __getattr__(self, name: str) -> Callable[..., None]:
        def watch(*arguments: Any) -> None:
            looking = getattr(self._expected, name)
            for _ in range(PATIENCE // PAUSE):
                with contextlib.suppress(AssertionError):
                    looking(*arguments, timeout=1)
                    return
                self._page.wait_for_timeout(PAUSE)
            looking(*arguments, timeout=1)

        return watch


def expect(locator: Locator) -> Any:
    """Wait until something holds: Playwright's own looks after 100, 350, 850, … milliseconds alone."""
    return _Watched(locator)


_NUMBERS = itertools.count()


def fresh(address: str) -> str:
    """An address like none before it: with another fragment alone the page would not be loaded."""
    return f"{address}?{next(_NUMBERS)}"


def opened(page: Page, address: str, **content: Any) -> None:
    page.goto(fresh(address) + (fragment(content) if content else ""))


#: Follow a link in a page that is open, and wait until the program of the link has been run; what was
#: drawn before goes at once, so that no test can take it for its own.
FOLLOW = """async (link) => {
    for (const pane of ["heads", "counts", "values"]) Locum.byId(pane).replaceChildren();
    const mark = Locum.add(Locum.byId("values"), "p");
    history.replaceState(null, "", location.pathname + location.search);
    location.hash = link;
    while (mark.isConnected) await new Promise((done) => setTimeout(done, 5));
}"""


def linked(page: Page, address: str, **content: Any) -> None:
    """Follow a link, else one to the first example, in the page that is open: loading takes longer."""
    is_open = page.url.startswith(address) and "embed" not in page.url
    if not is_open or not page.evaluate("Boolean(Locum.catalogue)"):
        opened(page, address, **content)
        return
    page.evaluate(FOLLOW, fragment(content or {"source": REVERSE, "input": "hello"}))


def written(page: Page, source: str) -> None:
    """Write a program in the place of what there is, at once: a browser takes long for each key."""
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(source)


def details(page: Page) -> None:
    """Open the options and facts of the pane of weights."""
    page.locator("#details").evaluate("(details) => { details.open = true; }")


def texts(rows: Locator) -> list[list[str]]:
    return [row.locator("td").all_inner_texts() for row in rows.all()]


def test_a_program_gives_values_heads_and_weights(page: Page, address: str) -> None:
    opened(page, address)
    written(page, "flip = select(indices, length - 1 - indices, ==);\n")
    page.keyboard.type("back = aggregate(flip, tokens);\n")  # as a user does
    expect(page.locator(".cm-value").last).to_have_text("[o, l, l, e, h] (strings)")
    head = page.locator("#heads .head").last
    expect(head.locator(".title")).to_have_text("flip")
    expect(head.locator("td.on")).to_have_count(5)
    page.fill("#input", "abc")
    expect(page.locator("#heads p").first).to_have_text("back(a b c) = c b a")
    page.click("#tab-values")
    expect(page.locator("#values .list tr").last).to_have_text("backstringcba")
    page.click("#tab-weights")
    expect(page.locator("#network .good")).to_contain_text(
        "the network and the program return the same output"
    )
    expect(page.locator("#moment-name")).to_have_text("after the embedding")
    page.focus("#moment")
    page.keyboard.press("End")
    expect(page.locator("#sublayer tr").last).to_have_text("answercba")
    expect(page.locator("#moment")).to_have_attribute("aria-valuetext", "after layer 1's feed-forward")
    details(page)
    page.select_option("#option-attention", "softmax")
    expect(page.locator("#facts")).to_contain_text("softmax")
    page.click("#others")
    expect(page.locator("#others-result")).to_contain_text(
        "same outputs as the program on all 20 inputs"
    )
    expect(page.locator("#others-result")).not_to_contain_text("up to")
    page.click("#tab-counts")
    expect(page.locator("#counts tr").last).to_have_text("back21, 11")


def test_without_results_nothing_is_outdated(page: Page, address: str) -> None:
    opened(page, address, source="x = ;", input="abc")
    expect(page.locator("#stale-note")).to_have_text("The program has an error in line 1.")
    page.fill("#input", '["a", 1')
    expect(page.locator("#stale-note")).to_have_text("The input has an error.")


def test_a_mistake_is_marked_at_its_place(page: Page, address: str) -> None:
    linked(page, address)
    written(page, "x = indices;\ny = x + unknown;\n")
    mark = page.locator(".cm-lintRange-error")
    expect(mark).to_have_text("unknown")
    mark.hover()
    expect(page.locator(".cm-tooltip-lint")).to_contain_text("unknown")


def test_statements_heads_and_slots_light_up_together(page: Page, address: str) -> None:
    opened(page, address)
    head = page.locator("#heads .head").last
    expect(page.locator("#flow svg").first).to_be_attached()  # nothing moves after that
    expect(page.locator("#heads")).not_to_have_class("stale")
    expect(head).to_be_visible()
    head.hover()
    expect(page.locator(".cm-line.cm-lit")).to_have_count(2)
    expect(page.locator(".cm-line.cm-lit").first).to_contain_text("flip")
    line = page.locator(".cm-line", has_text="reverse =")
    line.hover()
    expect(head).to_have_class("head lit")
    head.locator("[data-cell='0 4']").hover()
    expect(page.locator("#heads .cross")).to_have_count(4)  # query, key, what is read, what comes out
    page.click("#tab-weights")
    page.focus("#moment")
    page.keyboard.press("End")
    line.hover()
    expect(page.locator("#sublayer tr.lit th").first).to_contain_text("reverse")
    page.focus("#moment")
    page.keyboard.press("ArrowLeft")  # the attention of the last layer
    page.locator("#sublayer .head summary").click()
    row = page.locator("#sublayer .matrix tr[data-statements='1']").first
    row.hover()
    expect(page.locator(".cm-line.cm-lit")).to_contain_text("reverse =")
    line.hover()
    expect(row).to_have_class("lit")


def test_weights_have_scores_patterns_and_units(page: Page, address: str) -> None:
    opened(page, address, pane="weights", input="hello", source=REVERSE)
    expect(page.locator("#option-feed_forward")).to_have_value("relu")
    page.focus("#moment")
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    network = answer({"action": "compile", "source": REVERSE, "input": "hello"})["network"]
    last = network["depth"] - 1
    expect(page.locator("#moment-name")).to_have_text(f"after layer {last}'s attention")
    ((*rows,),) = network["inputs"][0]["scores"][last]
    cells = page.locator("#sublayer .scores tbody td")
    expect(cells).to_have_count(sum(map(len, rows)))
    shown = [float((cell.get_attribute("title") or "").split(": ")[-1]) for cell in cells.all()]
    assert shown == [score for row in rows for score in row]
    expect(page.locator("#sublayer .scores td.top")).to_have_count(5)
    expect(page.locator("#sublayer .grid:not(.scores) td.on")).to_have_count(5)
    first = next(layer for layer, feed in enumerate(network["feeds"]) if feed)
    page.keyboard.press("Home")
    for _ in range(2 * first + 2):
        page.keyboard.press("ArrowRight")
    page.locator("#sublayer .feed summary").first.click()
    expect(page.locator("#sublayer .feed details div").first).to_contain_text("relu(")


# What is shown belongs to what is typed ------------------------------------------------------------


def answers(page: Page, action: str) -> list[Route]:
    """Hold back the answers to an action until the test lets them go."""
    held: list[Route] = []

    def handle(route: Route) -> None:
        if json.loads(route.request.post_data or "{}").get("action") == action:
            held.append(route)
        else:
            route.continue_()

    page.route("**/answer", handle)
    return held


def waited(page: Page, held: list[Route]) -> Route:
    while not held:
        page.wait_for_timeout(20)
    return held.pop(0)


def test_an_answer_to_an_older_program_is_not_shown(page: Page, address: str) -> None:
    linked(page, address, source="first = indices;", input="abc", pane="weights")
    expect(page.locator("#facts dt").first).to_be_attached()
    held = answers(page, "compile")
    written(page, "second = indices + 1;")
    late = waited(page, held)
    written(page, "second = indices + ;")
    expect(page.locator("#stale-note")).to_have_text(
        "The program has an error in line 1: the results are outdated."
    )
    late.continue_()
    expect(page.locator("#weights")).to_have_class("stale")
    expect(page.locator(".cm-value")).to_have_count(0)
    page.unroute("**/answer")
    written(page, "third = indices * 2;")
    expect(page.locator("#weights")).not_to_have_class("stale")
    page.focus("#moment")
    page.keyboard.press("End")
    expect(page.locator("#sublayer tr").last).to_have_text("answer024")
    expect(page.locator("#stale-note")).to_be_hidden()


def test_a_request_that_was_given_up_does_not_make_a_pane_fresh(page: Page, address: str) -> None:
    linked(page, address, source="x = indices;", input="abc", pane="weights")
    expect(page.locator("#facts")).to_contain_text("relu")
    expect(page.locator("#weights")).not_to_have_class("stale")
    held = answers(page, "compile")
    details(page)
    page.select_option("#option-attention", "softmax")
    waited(page, held)
    page.select_option("#option-feed_forward", "gelu")  # the first request is given up
    last = waited(page, held)
    expect(page.locator("#weights")).to_have_class("stale")
    expect(page.locator("#facts")).to_contain_text("relu")
    last.continue_()
    expect(page.locator("#facts")).to_contain_text("gelu")
    expect(page.locator("#weights")).not_to_have_class("stale")
    page.unroute("**/answer")


def test_typing_over_a_selection_keeps_to_the_policy(page: Page, address: str) -> None:
    opened(page, address, source="x = indices;\ny = length;\n", input="abc")
    expect(page.locator(".cm-value").last).to_have_text("[3]*3 (ints)")
    page.locator(".cm-content").click()
    page.keyboard.press("Control+a")
    page.keyboard.type("z = 1 + indices;")
    expect(page.locator(".cm-value")).to_have_text("[1, 2, 3] (ints)")
    page.keyboard.press("Control+z")
    page.keyboard.press("Control+a")
    page.keyboard.type("(")  # brackets are put around what is selected
    expect(page.locator(".cm-line").first).to_have_text(re.compile(r"^\(x = indices;"))


def test_fast_typing_ends_with_the_values_of_the_last_text(page: Page, address: str) -> None:
    linked(page, address)
    written(page, "x = 0 + indices;")
    for digit in range(1, 10):
        page.keyboard.press("Home")
        page.keyboard.type(f"x = {digit} * indices; ")
    expect(page.locator(".cm-value")).to_contain_text("[0, 9, 18, 27, 36] (ints)")
    page.fill("#input", "")
    expect(page.locator("#notice")).to_contain_text("at least one token")
    expect(page.locator(".cm-value")).to_have_count(0)
    expect(page.locator("#heads")).to_have_class("stale")


def test_a_program_that_sets_its_own_example_says_so(page: Page, address: str) -> None:
    linked(page, address, source='set example "xy"\nt = tokens;', input="abc")
    expect(page.locator("#input-note")).to_have_text("not used: the program sets its own example, x y")
    linked(page, address, source='s = tokens;\nset example "xy"\nt = tokens;', input="abc")
    expect(page.locator("#input-note")).to_have_text(
        "used up to line 1; after that, the program sets its own example, x y"
    )
    page.select_option("#examples", label="sort by frequency")
    expect(page.locator("#input")).to_have_value("abbcccd")
    expect(page.locator("#input-note")).to_contain_text("characters, or a list")
    expect(page.locator("#heads p").first).to_contain_text("= c b a d - - -")


def test_what_is_typed_into_a_box_makes_the_network_old(page: Page, address: str) -> None:
    linked(page, address, source="x = indices;", input="abc", pane="weights")
    expect(page.locator("#facts")).to_contain_text("1 to 8 tokens")
    expect(page.locator("#weights")).not_to_have_class("stale")
    held = answers(page, "compile")
    details(page)
    for box, text in (
        ("#option-length", "4"),
        ("#option-vocabulary", "abcd"),
        ("#option-tolerance", "1"),
    ):
        page.locator(box).press_sequentially(text)
        expect(page.locator("#weights")).to_have_class("stale")  # and the box has still the focus
        expect(page.locator(box)).to_be_focused()
    while True:
        last = waited(page, held)
        if json.loads(last.request.post_data or "{}").get("tolerance") == 1:
            break
    last.continue_()
    expect(page.locator("#facts")).to_contain_text("1 to 4 tokens")
    expect(page.locator("#weights")).not_to_have_class("stale")
    page.unroute("**/answer")
    for text in ("Infinity", "1e999", "0x4", "4.00000000000000000001"):
        page.fill("#option-length", text)
        expect(page.locator("#network .bad")).to_have_text(
            f"length: expected an integer from 1 to 32, got {text!r}"
        )


def test_other_inputs_say_how_far_the_network_is_off(page: Page, address: str) -> None:
    source = "x = 6 / (tokens_int - 1) * indices / 3;"
    options = {"vocabulary": "[1, 2, 3]", "tolerance": 0.3, "length": 4}
    linked(page, address, source=source, input="[2, 3]", pane="weights", options=options)
    page.click("#others")
    said = re.compile(
        r"^✓ same outputs as the program on all \d+ of 20 inputs on which the program is defined"
    )
    expect(page.locator("#others-result")).to_have_text(said)
    means = "aggregate(select(indices, indices, <=), aggregate(select(tokens_int, 2, !=), indices))"
    options |= {"vocabulary": "[0, 1, -1, 2]", "tolerance": 0.6}
    source = f"x = {means} * {means.replace('<=', '>=')};"
    linked(page, address, source=source, input="[2, -1]", pane="weights", options=options)
    expect(page.locator("#network .good")).to_have_text(re.compile(r"on this input, up to 5\.\de-1$"))
    page.click("#others")
    said = re.compile(r"^✓ same outputs as the program on all 20 inputs, up to [1-5]\.\de-[12]$")
    expect(page.locator("#others-result")).to_have_text(said)


def test_u_takes_a_size_as_it_is_typed_or_says_what_is_wrong(page: Page, address: str) -> None:
    linked(page, address)
    page.click("#mode-u")
    expect(page.locator("#u-error")).to_contain_text("U of order (3, 3, 3)")
    for typed, got in (("9", "9"), ("0", "0"), ("2.5", "2.5"), ("", "nothing"), ("x", "x")):
        page.fill("#u-n", typed)
        expect(page.locator("#u-problem")).to_have_text(
            f"n: expected an integer from 1 to 6, got {got}"
        )
        expect(page.locator("#u-result")).to_be_hidden()
    page.fill("#u-n", "2")
    expect(page.locator("#u-error")).to_contain_text("U of order (2, 3, 3)")
    expect(page.locator("#u-n")).to_be_focused()
    expect(page.locator("#u-problem")).to_have_text("")


# U -------------------------------------------------------------------------------------------------


def test_u_steps_as_explain_does(page: Page, address: str) -> None:
    opened(page, address)
    page.click("#mode-u")
    demonstration = figure2.figure2()
    expect(page.locator("#u-step-name")).to_contain_text("step 1 of 6: XA")
    for number, step in enumerate(demonstration.explanation):
        if number:
            page.get_by_label("next step").click()
        expect(page.locator("#u-step-name")).to_contain_text(f": {step.name}")
        expect(page.locator("#u-step-error")).to_contain_text(f"difference: {step.error:.2e}"[:-3])
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
    page.fill("#u-temperature", "0.5")
    expect(page.locator("#u-result:not(.stale)")).to_be_visible()


def test_u_shows_no_result_that_rounding_decides(page: Page, address: str) -> None:
    u = {"X": [[0.1, 0.2], [0.3, 0]], "A": [[1, 1], [1, 1]], "V": [[1], [3]], "recipe": "fetch"}
    linked(page, address, mode="universal", u={**u, "temperature": 0, "base": "e"})
    expect(page.locator("#universal h2").first).to_have_text("T(X) = hardmax(X A Xᵀ) X V")
    expect(page.locator("#u-problem")).to_contain_text("scores that floats can distinguish")
    expect(page.locator("#u-result")).to_be_hidden()
    page.fill("#u-X-1-0", "0.25")
    expect(page.locator("#u-error")).to_contain_text("U of order (2, 2, 1)")


def test_u_shows_nothing_for_what_is_no_number(page: Page, address: str) -> None:
    linked(page, address)
    page.click("#mode-u")
    expect(page.locator("#u-matrix")).to_be_visible()
    for box, text, words in (
        ("#u-X-1-0", "", "X row 1 column 0: expected a number, got nothing"),
        ("#u-X-1-0", "1e400", "X row 1 column 0: expected a number, got 1e400"),
        ("#u-X-1-0", "0x10", "X row 1 column 0: expected a number, got 0x10"),
        (
            "#u-X-1-0",
            "1.00000000000000000001",
            f"X row 1 column 0: {_FEWER} 1.00000000000000000001",
        ),
        ("#u-X-1-0", "0.99999999999999999", f"X row 1 column 0: {_FEWER} 0.99999999999999999"),
        ("#u-X-1-0", "0.30000000000000001", f"X row 1 column 0: {_FEWER} 0.30000000000000001"),
        ("#u-X-1-0", "1e-400", f"X row 1 column 0: {_FEWER} 1e-400"),
        (
            "#u-X-1-0",
            "1e7",
            "X: expected a matrix of at most 6 rows and columns of numbers up to 1e+06",
        ),
        ("#u-base", "euler", "base: expected a number, got euler"),
        ("#u-base", "0", "base: expected a number from 0.001 to 1000"),
    ):
        before = page.locator(box).input_value()
        page.fill(box, text)
        expect(page.locator("#u-problem")).to_contain_text(words)
        expect(page.locator("#u-result")).to_be_hidden()
        page.fill(box, before)
        expect(page.locator("#u-result")).to_be_visible()
        expect(page.locator("#u-problem")).to_have_text("")
    page.fill("#u-A-0-0", "x")
    page.click("#share")
    expect(page.locator("#notice")).to_have_text("A row 0 column 0: expected a number, got x")
    expect(page.locator("#shared")).to_be_hidden()


def test_links_carry_the_state_both_ways(page: Page, address: str) -> None:
    source = "x = indices * 2;\n"
    options = {"length": 6, "attention": "softmax", "feed_forward": "exact"}
    opened(page, address, source=source, input="[1, 2.0]", pane="weights", options=options)
    expect(page.locator(".cm-value")).to_have_text("[0, 2] (ints)")
    expect(page.locator("#tab-weights")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#option-length")).to_have_value("6")
    page.click("#share")
    expect(page.locator("#link")).to_have_value(
        re.compile(re.escape(page.url.partition("#")[0]) + "#v1=.+")
    )
    content = state("#" + page.locator("#link").input_value().partition("#")[2])
    assert content["source"] == source
    assert content["options"] == {
        **options,
        "dtype": "float64",
        "fold": True,
        "reuse_slots": True,
    }
    assert content["input"] == "[1, 2.0]"


def text_of(page: Page) -> str:
    text: str = page.evaluate("Locum.editor.text()")
    return text


def reloaded(page: Page) -> None:
    page.reload()
    expect(page.locator("#heads")).not_to_be_empty()


def test_a_reload_keeps_what_was_typed(page: Page, address: str) -> None:
    opened(page, address)
    expect(page.locator("#heads .head").first).to_be_visible()
    written(page, "draft = indices;")
    reloaded(page)
    assert text_of(page) == "draft = indices;"
    page.click("#share")
    expect(page.locator("#shared")).to_be_visible()
    shared = page.url
    written(page, "later = indices + 1;")
    reloaded(page)
    assert text_of(page) == "later = indices + 1;"
    page.goto("about:blank")
    opened(page, address)  # another page opens its own content
    expect(page.locator("#heads .head").first).to_be_visible()
    page.goto(shared)
    expect(page.locator("#heads")).not_to_be_empty()
    assert text_of(page) == "draft = indices;"


def test_exercises_keep_their_drafts(page: Page, address: str) -> None:
    opened(page, address)
    expect(page.locator("#heads .head").first).to_be_visible()
    first, second = (page.locator("#exercises option").nth(n).get_attribute("value") for n in (1, 2))
    page.select_option("#exercises", first)
    written(page, "half = tokens;")
    page.select_option("#exercises", second)
    assert text_of(page) != "half = tokens;"
    page.select_option("#exercises", first)
    assert text_of(page) == "half = tokens;"


def test_a_draft_of_an_exercise_is_stored_when_another_is_chosen(page: Page, address: str) -> None:
    opened(page, address)
    expect(page.locator("#heads .head").first).to_be_visible()
    page.evaluate("localStorage.clear()")  # drafts of other tests
    page.select_option("#exercises", "reverse")
    # Both in one task, so that no timer can store the draft.
    page.evaluate(
        """() => {
            Locum.editor.set("fast = tokens;");
            const choose = document.querySelector("#exercises");
            choose.value = "shift";
            choose.dispatchEvent(new Event("change"));
        }"""
    )
    page.select_option("#exercises", "reverse")
    assert text_of(page) == "fast = tokens;"


def test_a_link_to_an_exercise_does_not_replace_its_draft(page: Page, address: str) -> None:
    for exercise in ("reverse", CUSTOM):
        opened(page, address, exercise=exercise, source="start = tokens;", input="ab")
        expect(page.locator("#check")).to_be_visible()
        expect(page.locator("#exercise-title")).not_to_have_text("…")
        written(page, "mine = indices;")
        opened(page, address, exercise=exercise, source="start = tokens;", input="ab")
        offer = page.locator("#exercise-draft")
        expect(offer).to_be_visible()
        assert text_of(page) == "start = tokens;"
        reloaded(page)
        expect(offer).to_be_visible()
        offer.get_by_role("button").click()
        assert text_of(page) == "mine = indices;"
        expect(offer).to_be_hidden()
        reloaded(page)
        assert text_of(page) == "mine = indices;"
        expect(offer).to_be_hidden()


def test_a_link_that_cannot_be_read_is_told(page: Page, address: str) -> None:
    page.goto(fresh(address) + "#v9=AAAA")
    expect(page.locator("#link-note")).to_be_visible()
    linked(page, address, source="x = 1;", options={"length": "<b>", "feed_forward": 7})
    expect(page.locator("#stale-note")).to_contain_text(
        "there is no s-op yet: a plain value is not an s-op"
    )
    expect(page.locator("#link-note")).to_be_hidden()
    odd: dict[str, Any] = {"pane": "else", "options": {"feed_forward": [1], "odd": 1, "length": 4}}
    linked(page, address, source="x = indices;", more=1, u={"X": [[1]]}, **odd)
    expect(page.locator("#link-note")).to_have_text(
        "Parts of this link are not supported and were omitted: "
        "more, options.feed_forward, options.odd, pane, u."
    )
    linked(page, address, source="x = indices;", pane="weights", options={"length": "<b>"})
    expect(page.locator("#network .bad")).to_contain_text(
        "length: expected an integer from 1 to 32, got '<b>'"
    )
    expect(page.locator("#try-exact")).to_have_count(0)


def test_a_name_that_a_link_asks_for_is_found_or_told(page: Page, address: str) -> None:
    source = "x = indices;\ny = length;\n"
    linked(page, address, source=source, input="abc", name="x")
    expect(page.locator("#heads p").first).to_have_text("x(a b c) = 0 1 2")
    expect(page.locator("#notice")).to_be_hidden()
    linked(page, address, source=source, input="abc", name="lost")
    expect(page.locator("#notice")).to_have_text("there is no s-op lost in the program: y is shown")
    expect(page.locator("#name")).to_have_value("y")
    # A name is kept while there is a mistake in the program.
    linked(page, address, source=source + "z = ;", input="abc", name="x")
    expect(page.locator("#stale-note")).to_be_visible()
    written(page, source)
    expect(page.locator("#heads p").first).to_have_text("x(a b c) = 0 1 2")
    expect(page.locator("#name")).to_have_value("x")


@pytest.mark.parametrize(
    ("typed", "boxed"),
    [
        ("a\nb", '"a\\nb"'),
        ("[1,\n 2]", "[1,  2]"),
        ('"ab"\r\n', '"ab"  '),
        ("[\n]", '"[\\n]"'),
        ("5\n", '"5\\n"'),
    ],
)
def test_an_input_of_several_lines_is_kept(page: Page, address: str, typed: str, boxed: str) -> None:
    linked(page, address, source="t = tokens;", input=typed, pane="values")
    expect(page.locator("#input")).to_have_value(boxed)
    there = answer({"action": "run", "source": "t = tokens;", "input": typed})
    row = page.locator("#values table tr").nth(1).locator("td")
    expect(row).to_have_count(2 + len(there["input"]))
    assert row.evaluate_all("cells => cells.map((cell) => cell.textContent)")[2:] == there["input"]


def test_what_no_link_can_hold_is_told(page: Page, address: str) -> None:
    for typed in ("[1\n2]", '"a\nb"', '["a\nb"]'):
        options = {"vocabulary": typed}
        linked(page, address, source="t = tokens;", input=typed, options=options)
        expect(page.locator("#link-note")).to_contain_text("omitted: options.vocabulary, input.")
    linked(page, address, source="x = indices;", input="abc")
    page.click("#share")
    expect(page.locator("#shared")).to_be_visible()
    page.fill("#input", "xyz")  # the link is not that of the page any more
    expect(page.locator("#shared")).to_be_hidden()
    # The server refuses so large a program, which the console would tell.
    page.route("**/answer", lambda route: route.fulfill(json={"ok": False, "error": "too large"}))
    page.evaluate("Locum.editor.set('# ' + 'a'.repeat(210000))")
    expect(page.locator("#notice")).to_have_text("too large")
    page.click("#share")
    expect(page.locator("#notice")).to_contain_text("the program is too long for a link")
    expect(page.locator("#shared")).to_be_hidden()


def test_bounds_are_rounded_up_in_the_page(page: Page, address: str) -> None:
    linked(page, address)
    numbers = [0.2500086, 0.25, 9.96e-5, 1.04e-3, 1e-17, 123456.0]
    shown = page.evaluate("(numbers) => numbers.map((n) => Locum.atMost(n, 1))", numbers)
    assert shown == ["2.6e-1", "2.5e-1", "1.0e-4", "1.1e-3", "1.0e-17", "1.3e+5"]


def test_the_page_reads_the_links_that_python_reads(page: Page, address: str) -> None:
    linked(page, address)
    unpacked = (
        "async (link) => { const found = await Locum.share.unpack(link); return found !== null; }"
    )
    expect(page.locator("#link-note")).to_be_hidden()
    assert [why for why, link in NO_LINKS.items() if page.evaluate(unpacked, link)] == []
    assert [why for why, link in LINKS.items() if not page.evaluate(unpacked, link)] == []


def test_a_mistake_behind_wide_characters_is_at_its_place(page: Page, address: str) -> None:
    opened(page, address)
    # Another page of this address may have written what it likes.
    page.evaluate("localStorage.setItem('locum solved', '{')")
    opened(page, address, source='x = "\N{GRINNING FACE}\N{GRINNING FACE}" + unknown;', input="ab")
    expect(page.locator(".cm-lintRange-error")).to_have_text("unknown")
    page.evaluate("localStorage.removeItem('locum solved')")


def test_values_of_another_input_have_a_table_of_their_own(page: Page, address: str) -> None:
    source = (
        'r = tokens;\nr("ab");\nset example "xyz"\na, b = indices, tokens;\n'
        'set selector example "pq"\ns = select(tokens, tokens, ==);\n'
    )
    linked(page, address, source=source, input="hello", pane="values")
    tables = page.locator("#values > table")
    expect(tables).to_have_count(3)
    assert texts(tables.nth(0).locator("tr"))[1:] == [
        ["tokens", "", "x", "y", "z"], ["a", "int", "0", "1", "2"], ["b", "string", "x", "y", "z"],
    ]  # fmt: skip
    assert texts(tables.nth(1).locator("tr"))[1:] == [["r", "string", *"hello"]]
    expect(tables.nth(2).locator("caption")).to_have_text("on a b, an input that the program sets")
    expect(page.locator("#values .grid caption")).to_have_text("on p q")
    assert page.locator("#values .grid thead th").all_inner_texts() == ["p", "q"]


def test_exercises_check_themselves_and_remember(page: Page, address: str) -> None:
    opened(page, address)
    page.evaluate("localStorage.clear()")  # drafts of other tests
    page.select_option("#exercises", "reverse")
    page.click("#check")
    expect(page.locator("#verdict")).to_contain_text("✗ input a b: expected b a, but reverse is a b")
    page.get_by_role("button", name="Show this input").click()
    expect(page.locator("#input")).to_have_value("ab")
    written(page, SOLUTIONS["reverse"])
    page.click("#check")
    expect(page.locator("#verdict")).to_contain_text("✓ solved")
    page.reload()
    expect(page.locator("#exercises option").nth(1)).to_have_text("✓ 1. Reverse")


CUSTOM = {
    "title": "<b>Twice</b>",
    "task": "Count <i>occurrences</i>.\nReturn a number.",
    "reference": "times = selector_width(select(tokens, tokens, ==));",
    "example": "banana",
    "without": ["selector_width"],
}


def test_an_exercise_of_a_link_is_checked_and_teachers_make_links(page: Page, address: str) -> None:
    linked(page, address, exercise=CUSTOM, source="times = indices;", input="banana")
    expect(page.locator("#exercise-title")).to_have_text("<b>Twice</b>")
    expect(page.locator("#exercise-without")).to_have_text("Not allowed: selector_width")
    assert page.inner_text("#exercise-task") == CUSTOM["task"]
    page.click("#solution")
    expect(page.locator("#solution-text")).to_contain_text("after you have solved it")
    assert page.locator("#exercise b, #exercise i").count() == 0
    written(page, BY_HAND)
    page.click("#check")
    expect(page.locator("#verdict")).to_contain_text(
        "with 1 layer and 2 heads. The reference has 1 layer and 2 heads."
    )
    page.click("#share")
    expect(page.locator("#shared")).to_be_visible()
    handed_in = state("#" + page.input_value("#link").partition("#")[2])
    assert (handed_in["exercise"], handed_in["source"]) == (CUSTOM, BY_HAND)
    page.click("#open-teach")
    page.fill("#teach-title", "Mine")
    page.fill("#teach-task", "Do this.")
    page.fill("#teach-reference", "x = tokens;")
    page.click("#teach-make")
    expect(page.locator("#teach-link")).to_be_visible()
    made = state("#" + page.input_value("#teach-link").partition("#")[2])["exercise"]
    assert (made["title"], made["reference"]) == ("Mine", "x = tokens;")
    page.click("#teach-close")


def test_an_error_of_an_exercise_names_the_label_and_is_in_view(page: Page, address: str) -> None:
    linked(page, address)
    page.set_viewport_size({"width": 1360, "height": 850})
    page.click("#open-teach")
    page.fill("#teach-title", "Mine")
    page.fill("#teach-task", "Do this.")
    page.fill("#teach-longest", "11")
    page.evaluate("document.querySelector('#teach-make').click()")
    said = page.locator("#teach-said")
    expect(said).to_contain_text(
        "Length up to which all inputs are checked: expected an integer from 1 to 10, got 11"
    )
    expect(said).to_be_in_viewport()
    page.fill("#teach-longest", "2")
    page.evaluate("document.querySelector('#teach-make').click()")
    expect(page.locator("#teach-link")).to_be_in_viewport()
    page.click("#teach-close")


def test_an_exercise_that_the_server_does_not_check_is_not_called_invalid(
    page: Page, address: str
) -> None:
    opened(page, address)
    expect(page.locator("#heads .head").first).to_be_visible()
    page.evaluate(GONE)
    page.evaluate("(link) => { location.hash = link; }", fragment({"exercise": CUSTOM}))
    expect(page.locator("#exercise-title")).to_have_text("This exercise could not be checked")
    expect(page.locator("#exercise-task")).to_contain_text("The server cannot be reached")
    page.goto("about:blank")
    opened(page, address, exercise=CUSTOM | {"reference": "x = ;"})
    expect(page.locator("#exercise-title")).to_have_text("This exercise is invalid")


def test_a_link_that_contains_only_an_exercise_opens_its_starter_and_example(
    page: Page, address: str
) -> None:
    linked(page, address, exercise=CUSTOM | {"starter": "times = indices;"})
    expect(page.locator("#input")).to_have_value("banana")
    assert text_of(page) == "times = indices;"


def test_heads_are_ablated(page: Page, address: str) -> None:
    linked(page, address, source=REVERSE, input="hello", pane="weights")
    page.locator("#intervene summary").click()
    expect(page.locator("#intervened .good")).to_contain_text("wrong on 0 of 40")
    page.locator("#intervene input[type=checkbox]").last.check()
    expect(page.locator("#intervened .bad")).to_contain_text("of 40 random inputs")
    assert page.locator("#intervened .wrong").count() > 0


def test_the_language_of_a_program_is_its_first_line(page: Page, address: str) -> None:
    linked(page, address)
    page.select_option("#language", "B-RASP")
    expect(page.locator(".cm-value").last).to_have_text("[T, T, T, T, F] (bools)")
    expect(page.locator("#heads .head").first).to_be_visible()
    linked(page, address)
    expect(page.locator(".cm-value").last).to_contain_text("[o, l, l, e, h]")
    expect(page.locator("#language")).to_have_value("RASP")


def test_an_embedded_page_shows_the_program_alone(page: Page, address: str) -> None:
    page.goto(
        fresh(address)
        + "&embed"
        + fragment({"source": "x = indices;", "input": "abc", "pane": "values"})
    )
    expect(page.locator(".cm-value")).to_have_text("[0, 1, 2] (ints)")
    expect(page.locator(".tools")).to_be_hidden()
    whole = page.locator("#whole")
    expect(whole).to_be_visible()
    before = whole.get_attribute("href")
    written(page, "x = length;")
    expect(page.locator(".cm-value")).to_have_text("[3]*3 (ints)")
    expect(whole).not_to_have_attribute("href", before or "")
    assert state("#" + (whole.get_attribute("href") or "").partition("#")[2])["source"] == "x = length;"


def test_markup_is_shown_as_text(page: Page, address: str) -> None:
    image = "<img src=x onerror=document.title=1>"
    linked(page, address, source=f'x = tokens + "{image}";\nbad = {image};', input=image[:5])
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


# Layout, errors and the flow figure -------------------------------------------------------------------


def boxes(page: Page) -> tuple[Any, Any]:
    return page.locator("#source").bounding_box(), page.locator("#result").bounding_box()


@pytest.mark.parametrize("width", [1440, 1024, 720, 700])
def test_results_are_next_to_the_program_and_resized(page: Page, address: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 450})
    opened(page, address)
    expect(page.locator("#heads .head").first).to_be_visible()
    left, right = boxes(page)
    assert left["x"] + left["width"] <= right["x"]
    assert left["y"] == right["y"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    divider = page.locator("#divider")
    expect(divider).to_have_attribute("aria-valuenow", "42")
    divider.focus()
    page.keyboard.press("ArrowRight")
    expect(divider).to_have_attribute("aria-valuenow", "45")
    wider, _ = boxes(page)
    assert wider["width"] > left["width"]
    place = divider.bounding_box()
    assert place is not None
    page.mouse.move(place["x"] + 5, place["y"] + 100)
    page.mouse.down()
    page.mouse.move(width * 0.35, 200)
    page.mouse.up()
    dragged = re.compile("^3[3-6]$")
    expect(divider).to_have_attribute("aria-valuenow", dragged)
    narrower, _ = boxes(page)
    assert narrower["width"] < wider["width"]
    page.reload()
    expect(divider).to_have_attribute("aria-valuenow", dragged)
    divider.dblclick()
    expect(divider).to_have_attribute("aria-valuenow", "42")


def test_an_embedded_page_shows_the_pane_that_it_asks_for_first(page: Page, address: str) -> None:
    page.set_viewport_size({"width": 760, "height": 420})
    link = fragment({"source": "x = indices;", "input": "abc", "pane": "heads"})
    page.goto(f"{fresh(address)}&embed=values{link}")
    cell = page.locator("#values td", has_text="x")
    expect(cell).to_be_visible()
    place = cell.bounding_box()
    assert place is not None
    assert place["y"] + place["height"] < 420
    left, right = boxes(page)
    assert right["x"] < left["x"]


def test_errors_are_a_list_with_keys(page: Page, address: str) -> None:
    linked(page, address)
    written(page, "flip = select(indices, length, =);\nr = aggregate(flip, tokens);\nw = flop;")
    errors = page.locator("#problems button")
    expect(errors).to_have_count(3)
    expect(errors.nth(0)).to_contain_text("line 1: '=' is not a comparison")
    expect(errors.nth(1)).to_have_text("line 2: Undefined variable: flip (caused by line 1)")
    expect(errors.nth(1)).to_have_class("because")
    expect(page.locator("#problems")).to_have_attribute("role", "status")
    for key, number in (("F8", 0), ("F8", 1), ("F8", 2), ("F8", 0), ("Shift+F8", 2)):
        page.keyboard.press(key)
        expect(errors.nth(number)).to_have_attribute("aria-current", "true")
        expect(page.locator(".cm-activeLine")).to_have_text(
            page.locator(".cm-line").nth(number).inner_text()
        )
    errors.nth(1).click()
    page.keyboard.type("x")  # the focus is in the editor, at the error
    expect(page.locator(".cm-line").nth(1)).to_contain_text("aggregate(xflip")
    written(page, "x = indices;")
    expect(errors).to_have_count(0)


#: The server is not there, which the page finds out after some time.
GONE = """() => {
    const real = fetch;
    window.ended = () => { window.fetch = real; };
    window.fetch = async () => {
        await new Promise((done) => setTimeout(done, 1500));
        throw new TypeError("network error");
    };
}"""


def test_a_problem_of_the_server_is_not_an_error_of_the_program(page: Page, address: str) -> None:
    opened(page, address)
    expect(page.locator("#heads .head").first).to_be_visible()
    page.evaluate(GONE)
    page.fill("#input", "abcd")
    expect(page.locator("#waiting")).to_be_visible()
    expect(page.locator("#server")).to_contain_text("The server cannot be reached")
    expect(page.locator("#waiting")).to_be_hidden()
    expect(page.locator("#server")).to_contain_text("outdated")
    expect(page.locator("#stale-note")).to_be_hidden()
    expect(page.locator("#heads")).to_have_class("stale")
    page.evaluate("ended()")
    page.click("#again")
    expect(page.locator("#server")).to_be_hidden()
    expect(page.locator("#heads p").first).to_have_text("reverse(a b c d) = d c b a")
    page.goto("about:blank")


def test_the_flow_figure_leads_to_sublayers_and_to_u(page: Page, address: str) -> None:
    opened(page, address)
    expect(page.locator("#heads .became").last).to_have_text("head 1.0 of the network")
    part = page.locator("#flow [data-part='blocks.1.attn.head.0']")
    expect(part).to_contain_text("head 2")
    part.hover()
    expect(page.locator(".cm-line.cm-lit")).to_have_count(2)
    part.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#moment-name")).to_have_text("after layer 1's attention")
    expect(part).to_have_class(re.compile("now"))
    card = page.locator("#sublayer .head")
    expect(card.locator(".number")).to_have_text("head 2")
    expect(card.locator(".title")).to_have_text("flip")
    expect(page.locator("#sublayer .stream tr", has_text="code of reverse")).to_have_text(
        "s0 code of reverseolleh"
    )
    written(page, "b = aggregate(select(indices, indices, <=), indices);")
    expect(page.locator("#flow li")).to_have_text(
        "head 1: no head: a table of positions in the embedding"
    )
    opened(page, address, pane="weights", source=REVERSE, input="hello")
    page.locator("#flow [data-part='blocks.1.attn.head.0']").click()
    page.get_by_role("button", name="Open this head in U").click()
    expect(page.locator("#u-from")).to_contain_text("head 2 (flip), layer 1, head 0")
    expect(page.locator("#u-error")).to_contain_text("U of order (5, 5, 1)")
    expect(page.locator("#u-layers [aria-current]")).to_contain_text("layer 1")
    expect(page.get_by_text("0: hard attention")).to_be_visible()
