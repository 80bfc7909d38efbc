"""Write the page as one HTML file: scripts, style and answers in it, without server or network."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from locum.display.html import inside, policy
from locum.errors import LocumError
from locum.playground import panes, universal, weights

#: Characters of a message that are shown.
MAX_ERROR = 2_000
PAGE = Path(__file__).with_name("page")
_SCRIPT = re.compile(r'<script src="([a-z.]+)" defer></script>')
_STYLE = re.compile(r'<link rel="stylesheet" href="([a-z.]+)">')
#: Where the answers stand in the page; the page of the server has none.
_ANSWERS = '<script id="answers" type="application/json">null</script>'
_POLICY = '<meta name="policy">'
#: What the forms of a saved page offer, so that they show what was chosen.
CHOICES = {
    "attentions": weights.SETTINGS["attention"].choices,
    "feedForwards": weights.SETTINGS["feed_forward"].choices,
    "recipes": list(universal.RECIPES),
    "presets": {},
    "defaults": {"network": weights.DEFAULTS, "universal": universal.DEFAULTS},
}
#: The policy of a saved page loads no icon, and a file needs none.
_ICON = '<link rel="icon" href="data:,">'


def save(source: str, typed: str, pane: str, **options: Any) -> dict[str, Any]:
    """Return the page of a program with everything it shows computed beforehand.

    What the page refuses, the saved page refuses in the same words.
    """
    name = options.pop("name")
    state = {"source": source, "input": typed, "pane": pane, "name": name, "options": dict(options)}
    answers = {
        "run": _answer(lambda: panes.run(source, typed)),
        "analyse": _answer(lambda: panes.analyse(source, typed)),
        "draw": _answer(lambda: panes.draw(source, typed, name, svg=True)),
        "compile": _answer(lambda: weights.compile(source, typed, name, **options)),
    }
    return {"html": one_file({"state": state, "answers": answers, "catalogue": CHOICES})}


def save_universal(**settings: Any) -> dict[str, Any]:
    """Return the page of U on this T and X, with its steps computed beforehand."""
    answers = {"explain": _answer(lambda: universal.explain(**settings))}
    state = {"mode": "universal", "u": settings}
    return {"html": one_file({"state": state, "answers": answers, "catalogue": CHOICES})}


def _answer(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return an answer, or why there is none."""
    try:
        return {"ok": True, **work()}
    except LocumError as error:
        return {"ok": False, "error": str(error)[:MAX_ERROR]}


def one_file(data: dict[str, Any]) -> str:
    """Return the page with scripts and styles inside, allowed by their hashes alone, and its data."""
    page = (PAGE / "index.html").read_text(encoding="utf-8")
    scripts = _SCRIPT.findall(page)
    page = _SCRIPT.sub("", page).replace(_ICON, "")
    page = _STYLE.sub(lambda link: f"<style>{_text(link[1])}</style>", page)
    inline = "".join(f"<script>{_text(script)}</script>" for script in scripts)
    page = page.replace("</body>", f"{inline}</body>")
    rules = policy(page)
    page = page.replace(_POLICY, f'<meta http-equiv="Content-Security-Policy" content="{rules}">')
    return page.replace(_ANSWERS, _ANSWERS.replace("null", inside(data)))


def _text(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")
