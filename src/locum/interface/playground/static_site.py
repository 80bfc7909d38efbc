"""Export the playground as a static site, which runs Python in the browser with Pyodide.

The site works on any host of static files, under any path. Pyodide is included in the site, or is
loaded from its official address. In the second case, the hashes of the loaded files are checked.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import zipfile
from pathlib import Path
from typing import Any

from locum.errors import InputError
from locum.files import read_bytes, read_json, write_folder
from locum.interface.playground.answer import answer
from locum.interface.playground.share import PAGE, POLICY, page_files

#: The official distribution of Pyodide, and hashes of files that are loaded before packages. Pyodide
#: checks packages by the hashes in pyodide-lock.json. The npm package `pyodide` has the same files.
VERSION, HOST = "314.0.7", "https://cdn.jsdelivr.net"
OFFICIAL = f"{HOST}/pyodide/v{VERSION}/full/"
INTEGRITY = {
    "pyodide.mjs": "Lp79fMwxa4n2BLtugpUAoQMlbxIdg8iCUiP1r3h7nJLkQjwlXT1JzZTeHVL+f4Dg",
    "pyodide.asm.mjs": "/2281iaC0Iimw0B3Kagy1DBfZcJG3W4KYW+EmOqhsdY3fR9BJ88FE2Zt6y0KQKpa",
    "pyodide.asm.wasm": "y++qrQ72KPA1fTjLIuGMP+jppgGxjbLCgfdb0zMrnNnQVhxRUXTOTF6rTxNzllSu",
    "python_stdlib.zip": "xW3A5jmenkrPXbsgrIaB1FCJh9OuLT7FRMagsJMgtlhVc19k/mSy3+7nMaF/d767",
    "pyodide-lock.json": "o8SQQvpVlZnOl04+3dFTJipKxul9GbViVusA379wlOrfHSgxbzt0yPiqCTxOiYES",
}
#: Pure Python packages of the site, and a compiled package that Pyodide includes.
PACKAGES, COMPILED = ("locum", "lark", "array_api_compat"), "numpy"
#: Packages of Locum that the static site does not use.
UNUSED = ("torch", "interface/cli", "experiments")
#: Maximum size in bytes of a file of a distribution.
_LARGEST = 200_000_000
_BASE = '<script src="base.js" defer></script>'


def export(folder: Path, pyodide: Path | None = None) -> dict[str, Any]:
    """Write the static site to ``folder``, and return a summary of the files.

    ``folder`` must be new, empty, or the folder of an earlier export. ``pyodide`` is the folder of a
    Pyodide distribution to include in the site.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "locum.zip").is_file():
        raise InputError(f"{folder}: expected a new folder, or one of an earlier export")
    files = {name: (PAGE / name).read_bytes() for name in page_files()}
    files |= {name: (PAGE / name).read_bytes() for name in ("local.js", "worker.js")}
    files["first.json"] = json.dumps(first_answers()).encode()
    files["locum.zip"] = archive()
    settings = {"engine": OFFICIAL, "integrity": {n: f"sha384-{h}" for n, h in INTEGRITY.items()}}
    if pyodide is not None:
        files |= distribution(pyodide)
        settings = {"engine": ".", "integrity": {}}
    files["index.html"] = page(settings, files["index.html"].decode()).encode()
    write_folder(folder, files)
    return {
        "folder": str(folder),
        "files": len(files),
        "bytes": sum(map(len, files.values())),
        "pyodide": OFFICIAL if pyodide is None else "included",
    }


def first_answers() -> list[dict[str, Any]]:
    """Return the first requests of the page and their answers, shown while Python loads."""
    catalogue = answer({"action": "catalogue"})
    program = {name: catalogue["examples"][0][name] for name in ("source", "input")}
    requests = [{"action": "run", **program}, {"action": "draw", **program}]
    pairs = [{"request": request, "reply": answer(request)} for request in requests]
    return [{"request": {"action": "catalogue"}, "reply": catalogue}, *pairs]


def page(settings: dict[str, Any], text: str) -> str:
    """Return the HTML file of the site, which uses a Web Worker instead of a server."""
    rules = {rule.partition(" ")[0]: rule for rule in POLICY.split("; ")}
    rules["script-src"] += " 'wasm-unsafe-eval'"
    rules["worker-src"] = "worker-src blob:"
    if settings["integrity"]:
        # Scripts of the host run from blobs after their hashes have been checked.
        rules["script-src"] += " blob:"
        rules["connect-src"] += f" {HOST}"
    policy = "; ".join(rules.values())
    tag = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    data = f'<script id="site" type="application/json">{json.dumps(settings)}</script>'
    local = _BASE.replace("base.js", "local.js")
    text = text.replace('<meta name="policy">', tag).replace(_BASE, f"{_BASE}\n{local}")
    return text.replace("</body>", f"{data}\n</body>")


def archive() -> bytes:
    """Return a zip file of Locum and of the pure Python packages that it needs."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name in PACKAGES:
            specification = importlib.util.find_spec(name)
            assert specification is not None
            assert specification.origin is not None
            root = Path(specification.origin).parent
            for file in sorted(root.rglob("*")):
                inner = file.relative_to(root).as_posix()
                if name == "locum" and inner.startswith(UNUSED):
                    continue
                if file.is_file() and file.suffix != ".pyc":
                    # With a fixed date, equal files lead to equal archives.
                    packed.writestr(zipfile.ZipInfo(f"{name}/{inner}"), file.read_bytes(), 8)
    return buffer.getvalue()


def distribution(folder: Path) -> dict[str, bytes]:
    """Return a mapping from names to the files of a Pyodide distribution that the site needs.

    The hashes of the packages are checked.
    """
    lock = _lock(folder)
    # Before version 314, the second script is not a module.
    script = "pyodide.asm.mjs" if (folder / "pyodide.asm.mjs").exists() else "pyodide.asm.js"
    names = ["pyodide.mjs", script, "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json"]
    files = {name: read_bytes(folder / name, _LARGEST) for name in names}
    waiting = [COMPILED]
    while waiting:
        wanted = waiting.pop()
        try:
            package = lock["packages"][wanted]
            name, expected, depends = (package[key] for key in ("file_name", "sha256", "depends"))
        except (KeyError, TypeError):
            raise InputError(
                f"{folder / 'pyodide-lock.json'}: expected file_name, sha256 and depends of "
                f"{wanted}; try the file of the full distribution, pyodide-{VERSION}.tar.bz2"
            ) from None
        if not (folder / name).exists():
            raise InputError(
                f"--pyodide {folder}: expected {name} in it; try the full distribution, "
                f"pyodide-{VERSION}.tar.bz2, or the file from {OFFICIAL}"
            )
        files[name] = read_bytes(folder / name, _LARGEST)
        digest = hashlib.sha256(files[name]).hexdigest()
        if digest != expected:
            raise InputError(
                f"{folder / name}: expected the SHA-256 {expected} of pyodide-lock.json, got "
                f"{digest}; try to download the file again"
            )
        waiting += depends
    return files


def _lock(folder: Path) -> dict[str, Any]:
    lock: dict[str, Any] = read_json(folder / "pyodide-lock.json", _LARGEST)
    try:
        python = tuple(map(int, lock["info"]["python"].split(".")[:2]))
        known = COMPILED in lock["packages"]
    except (KeyError, TypeError, ValueError, AttributeError):
        python, known = (0, 0), False
    if python < (3, 11) or not known:
        raise InputError(f"--pyodide {folder}: expected Pyodide with Python 3.11 or newer and NumPy")
    return lock
