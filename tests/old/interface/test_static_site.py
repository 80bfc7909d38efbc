"""The static site: complete, bounded by its policy, and the same answers as the server.

``LOCUM_PYODIDE`` names a folder with Pyodide and its NumPy. Without it no browser opens the site.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import json
import os
import re
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from locum.errors import InputError
from locum.interface.playground import answer
from locum.interface.playground.share import POLICY, page_files
from locum.interface.playground.static_site import HOST, INTEGRITY, OFFICIAL, export
from tests.cli.commands import command_line
from tests.old.interface.test_browser import CHROMIUM, FLAGS, PATIENCE, REVERSE

PYODIDE = os.environ.get("LOCUM_PYODIDE")


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A host of static files."""

    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def log_message(self, *parts: object) -> None:
        pass


def pyodide(folder: Path, python: str = "3.14.2") -> Path:
    """Make a folder that looks like Pyodide."""
    wheel = b"numpy"
    package = {"file_name": "numpy.whl", "depends": [], "sha256": hashlib.sha256(wheel).hexdigest()}
    folder.mkdir()
    for name in INTEGRITY:
        (folder / name).write_text(name)
    lock = {"info": {"python": python}, "packages": {"numpy": package}}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))
    (folder / "numpy.whl").write_bytes(wheel)
    return folder


def policy(site: Path) -> dict[str, str]:
    (text,) = re.findall(r'-Policy" content="(.*?)"', (site / "index.html").read_text())
    return {rule.partition(" ")[0]: rule.partition(" ")[2] for rule in text.split("; ")}


def own_policy() -> dict[str, str]:
    return {rule.partition(" ")[0]: rule.partition(" ")[2] for rule in POLICY.split("; ")}


def test_a_site_with_pyodide_needs_no_other_host(tmp_path: Path) -> None:
    site = tmp_path / "site"
    report = export(site, pyodide(tmp_path / "pyodide"))
    names = {path.name for path in site.iterdir()}
    assert {*page_files(), *INTEGRITY, "worker.js", "local.js", "numpy.whl"} <= names
    assert report["files"] == len(names)
    more = {"script-src": "'self' 'wasm-unsafe-eval'", "worker-src": "blob:"}
    assert policy(site) == own_policy() | more
    for path in site.iterdir():
        if path.suffix in (".html", ".css", ".js") and path.name != "codemirror.js":
            assert HOST not in path.read_text(), path.name


def test_the_official_pyodide_is_one_host_and_every_file_is_checked(tmp_path: Path) -> None:
    site = tmp_path / "site"
    export(site)
    rules = policy(site)
    assert rules["connect-src"] == f"'self' {HOST}"
    assert HOST not in rules["script-src"]  # scripts run after their hashes were checked
    (text,) = re.findall(r'<script id="site".*?>(.*?)</script>', (site / "index.html").read_text())
    settings = json.loads(text)
    assert settings["engine"] == OFFICIAL
    assert all(value.startswith("sha384-") for value in settings["integrity"].values())


def test_what_is_shown_first_is_what_the_server_answers(tmp_path: Path) -> None:
    export(tmp_path / "site")
    pairs = json.loads((tmp_path / "site" / "first.json").read_text())
    assert [pair["request"]["action"] for pair in pairs] == ["catalogue", "run", "draw"]
    for pair in pairs:
        assert pair["reply"] == json.loads(json.dumps(answer(pair["request"])))


def test_the_archive_answers_without_flint(tmp_path: Path) -> None:
    """What the worker does, in an interpreter that has NumPy besides the archive alone."""
    export(tmp_path / "site")
    content = (tmp_path / "site" / "locum.zip").read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        archive.extractall(tmp_path / "packages")
    program = (
        "import sys; sys.modules['flint'] = None\n"
        "from locum.interface.playground.answer import answer_text\n"
        "import locum; print(locum.__file__)\n"
        "for line in sys.stdin: print(answer_text(line))"
    )
    requests: list[dict[str, Any]] = [
        {"action": "run", "source": REVERSE, "input": "abc"},
        {"action": "compile", "source": REVERSE, "input": "abc"},
        {"action": "explain", "X": [[1]], "A": [[1]], "V": [[1]]},
    ]
    text = "\n".join(map(json.dumps, requests))
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "packages")}
    command = [sys.executable, "-c", program]
    result = subprocess.run(
        command, input=text, env=environment, capture_output=True, text=True, check=True
    )
    where, *replies = result.stdout.splitlines()
    assert Path(where).is_relative_to(tmp_path)
    for request, reply in zip(requests, replies, strict=True):
        assert json.loads(reply)["ok"]
        assert json.loads(reply) == json.loads(json.dumps(answer(request)))


def test_what_is_not_a_distribution_is_rejected(tmp_path: Path) -> None:
    good, site = pyodide(tmp_path / "pyodide"), tmp_path / "site"
    with pytest.raises(InputError, match=r"expected Pyodide with Python 3\.11"):
        export(site, pyodide(tmp_path / "old", "3.10.2"))
    (good / "numpy.whl").write_bytes(b"other")
    with pytest.raises(InputError, match="expected the SHA-256"):
        export(site, good)
    (good / "numpy.whl").unlink()
    with pytest.raises(InputError, match=r"expected numpy\.whl in it"):
        export(site, good)
    lock = {"info": {"python": "3.14.2"}, "packages": {"numpy": {}}}
    (good / "pyodide-lock.json").write_text(json.dumps(lock))
    with pytest.raises(InputError, match="expected file_name, sha256 and depends of numpy"):
        export(site, good)
    assert not site.exists()


def test_no_other_folder_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="expected a new folder"):
        export(tmp_path)
    export(tmp_path / "site")
    export(tmp_path / "site")  # an earlier export is
    code, _, error = command_line("playground", "--pyodide", str(tmp_path))
    assert code == 2
    assert "expected --export" in error


#: A worker without Python, which does not answer requests for the layers and heads of a program.
_WORKER = """
self.onmessage = ({ data }) => {
  if (typeof data !== "string") { self.postMessage({ ready: true }); return; }
  if (JSON.parse(data).action === "analyse") return;
  self.postMessage({ reply: JSON.stringify({ ok: false, error: "none" }) });
};
"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_request_has_a_time_limit(tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    export(tmp_path / "site")
    (tmp_path / "site" / "worker.js").write_text(_WORKER)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path / "site")
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.clock.install()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.locator("#heads .head").first.wait_for()
        page.click("#tab-counts")
        limit = page.locator("#counts", has_text="this takes longer than the limit of 10 seconds")
        while not limit.count():
            page.clock.fast_forward(11_000)
            page.wait_for_timeout(20)
        browser.close()
    server.shutdown()
    server.server_close()


@pytest.mark.skipif(CHROMIUM is None or PYODIDE is None, reason="needs Chromium and LOCUM_PYODIDE")
def test_the_site_works_under_a_path(tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    site = tmp_path / "some" / "path"
    site.parent.mkdir()
    export(site, Path(str(PYODIDE)))

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=tmp_path)
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    own = f"http://127.0.0.1:{server.server_port}/"
    requested: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("request", lambda request: requested.append(request.url))
        page.goto(f"{own}some/path/")
        page.locator("#heads .head").first.wait_for()
        page.fill("#input", "abcd")
        expect(page.locator(".cm-value").last).to_have_text("[d, c, b, a] (strings)", timeout=PATIENCE)
        page.click("#tab-weights")
        expect(page.locator("#network .good")).to_contain_text("the network", timeout=PATIENCE)
        page.select_option("#exercises", "reverse")
        page.click("#check")
        expect(page.locator("#verdict")).to_contain_text("✗ input a b: expected b a", timeout=PATIENCE)
        page.click("#share")
        expect(page.locator("#link")).to_have_value(re.compile(f"^{re.escape(own)}some/path/"))
        page.click("#mode-u")
        page.locator("#universal .strip").first.wait_for()
        browser.close()
    server.shutdown()
    server.server_close()
    assert all(url.startswith((own, f"blob:{own}")) for url in requested)
