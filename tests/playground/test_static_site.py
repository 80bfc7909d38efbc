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

import pytest

from locum.errors import InputError
from locum.interface.playground import answer
from locum.interface.playground.answer import answer_text
from locum.interface.playground.share import POLICY, page_files
from locum.interface.playground.static_site import HOST, INTEGRITY, OFFICIAL, export
from tests.cli.commands import command_line
from tests.playground.test_browser import CHROMIUM, FLAGS, PATIENCE, REVERSE

PYODIDE = os.environ.get("LOCUM_PYODIDE")


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
    wheel = tmp_path / "python_flint-0.9.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl"
    wheel.write_bytes(b"flint")
    report = export(site, pyodide(tmp_path / "pyodide"), wheel)
    names = {path.name for path in site.iterdir()}
    assert {*page_files(), *INTEGRITY, "worker.js", "local.js", "numpy.whl", wheel.name} <= names
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
    requests = [
        {"action": "run", "source": REVERSE, "input": "abc"},
        {"action": "compile", "source": REVERSE, "input": "abc"},
        {"action": "classify", "regex": "(ab)*"},
    ]
    text = "\n".join(map(json.dumps, requests))
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "packages")}
    command = [sys.executable, "-c", program]
    result = subprocess.run(
        command, input=text, env=environment, capture_output=True, text=True, check=True
    )
    where, run, compiled, classified = result.stdout.splitlines()
    assert Path(where).is_relative_to(tmp_path)
    assert json.loads(run) == json.loads(json.dumps(answer(requests[0])))
    assert json.loads(compiled)["ok"]
    assert classified == "None"  # the worker loads python-flint then
    with_flint = answer_text(json.dumps(requests[2]))
    assert with_flint is not None
    assert json.loads(with_flint)["ok"]


def test_what_is_not_a_distribution_is_rejected(tmp_path: Path) -> None:
    good, site = pyodide(tmp_path / "pyodide"), tmp_path / "site"
    with pytest.raises(InputError, match=r"expected Pyodide with Python 3\.11"):
        export(site, pyodide(tmp_path / "old", "3.10.2"))
    flint = tmp_path / "python_flint-0.9.0-cp313-cp313-pyemscripten_2026_0_wasm32.whl"
    with pytest.raises(InputError, match=r"Python 3\.14; try the file"):
        export(site, good, flint)
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


#: A worker without Python. A proof requires a download, and a classification has no answer.
_WORKER = """
let base;
self.onmessage = async ({ data }) => {
  if (typeof data !== "string") { base = data.base; self.postMessage({ ready: true }); return; }
  const { action } = JSON.parse(data);
  if (action === "classify") return;
  if (action === "prove") {
    self.postMessage({ loading: true });
    await (await fetch(base + "wheel")).text();
    self.postMessage({ loading: false });
  }
  const reply = action === "prove" ? { ok: true, text: "answered" } : { ok: false, error: "none" };
  self.postMessage({ reply: JSON.stringify(reply) });
};
"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_the_time_limit_does_not_include_downloads(tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    export(tmp_path / "site")
    (tmp_path / "site" / "worker.js").write_text(_WORKER)
    (tmp_path / "site" / "wheel").write_text("wheel")
    begun, goes_on = threading.Event(), threading.Event()

    class Slow(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/wheel":
                begun.set()
                goes_on.wait()
            super().do_GET()

        def log_message(self, *parts: object) -> None:
            pass

    handler = functools.partial(Slow, directory=tmp_path / "site")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.clock.install()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.click("#tab-counts")
        expect(page.locator("#sizes")).to_have_text("none", timeout=PATIENCE)
        page.click("#prove")
        while not begun.is_set():
            page.wait_for_timeout(20)
        page.clock.fast_forward(60_000)
        goes_on.set()
        expect(page.locator("#proof")).to_have_text("answered", timeout=PATIENCE)
        page.click("#classify")
        while page.evaluate("Object.keys(Locum.pending).length") == 0:
            page.wait_for_timeout(20)
        limit = page.locator("#language", has_text="this takes longer than the limit of 10 seconds")
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

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *parts: object) -> None:
            pass

    Quiet.extensions_map = {**Quiet.extensions_map, ".mjs": "text/javascript"}
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
