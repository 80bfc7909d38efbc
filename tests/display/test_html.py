"""Pages: a policy that allows what each page has, and nothing else; no text goes in as HTML."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

import locum
from locum.interface.display import model_page
from locum.interface.display.html import filled
from locum.interface.display.network import page

TEMPLATES = [page.TEMPLATE, model_page.TEMPLATE]
PAYLOADS = [
    "</script><script>document.title='sprung'</script>",
    "<img src=x onerror=document.title='sprung'>",
    "<!--<script>",
    "__DATA____POLICY__",
    "'\"><svg onload=document.title='sprung'>",
]


class Parts(HTMLParser):
    """The policy of a page, and what it has to allow."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.policy: dict[str, str] = {}
        self.inline: list[tuple[str, str]] = []
        self.attributes: set[str] = set()
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        inputs = dict(attrs)
        self.attributes |= inputs.keys()
        self._open = tag if tag in ("script", "style") and "type" not in inputs else ""
        if inputs.get("http-equiv") == "Content-Security-Policy":
            assert not self.inline, "the policy stands behind what it is for"
            rules = (rule.strip().partition(" ") for rule in str(inputs["content"]).split(";"))
            self.policy = {name: value for name, _, value in rules}

    def handle_data(self, data: str) -> None:
        if self._open:
            self.inline.append((self._open, data))

    def handle_endtag(self, tag: str) -> None:
        self._open = ""


def check(text: str) -> None:
    parts = Parts(text)
    assert parts.policy["default-src"] == parts.policy["base-uri"] == "'none'"
    assert "unsafe" not in " ".join(parts.policy.values())
    assert parts.inline
    for kind, content in parts.inline:
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in parts.policy[f"{kind}-src"]
    # What a policy of hashes does not allow: styles and handlers in attributes.
    assert not {name for name in parts.attributes if name == "style" or name.startswith("on")}
    assert "src" not in parts.attributes
    assert "href" not in parts.attributes


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.parent.name)
def test_pages_allow_their_own_script_alone(template: Path) -> None:
    check(filled(template, {"title": PAYLOADS}))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.parent.name)
def test_no_text_becomes_html(template: Path) -> None:
    script = template.read_text(encoding="utf-8")
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert way not in script
    text = filled(template, PAYLOADS)
    assert len(re.findall(r"<script", text)) == 2
    assert "onerror" not in Parts(text).attributes


#: A page whose data were to become a script of their own, past the script of the page.
INJECTED = "<p id=here></p><script>document.title = 'sprung'</script>"


@pytest.mark.skipif(not shutil.which("chromium"), reason="there is no chromium")
def test_a_browser_runs_the_page_and_nothing_else(tmp_path: Path) -> None:
    model = locum.compile(locum.tokens, length=3, vocabulary=[*PAYLOADS, "b"], name="<b>" + PAYLOADS[0])
    text = page.network_page(model, [[PAYLOADS[0], "b"]])
    (tmp_path / "page.html").write_text(text.replace("</body>", f"{INJECTED}</body>"), encoding="utf-8")
    command = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    done = subprocess.run(
        [*command, f"--user-data-dir={tmp_path}/profile", f"file://{tmp_path}/page.html"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 'id="here"' in done.stdout
    assert "<title>sprung" not in done.stdout
    assert "<title>&lt;b&gt;&lt;/script&gt;" in done.stdout  # the page's own script has run
    assert "Input and output" in done.stdout
    assert 'class="end"' in done.stdout
