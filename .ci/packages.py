"""Build the wheel and the sdist, install them into empty environments, and test them.

``make packages`` runs this script. For every installed Python from 3.11 to 3.14, it installs the wheel,
runs commands of the documents and the blocks of the README in an empty folder, and opens the page of the
playground. Then it runs the quick tests of the unpacked sdist without PyTorch. ``--json`` prints one JSON
object. The exit code is 1 if a step fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.documents import blocks, matches

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
DIST = ROOT / "build" / "packages"
#: Commands with patterns of their output. The commands of the README are also run.
COMMANDS = {
    "locum --version": r"locum \d",
    "locum --help": "simulate",
    "locum simulate": "T\\(X\\)|figure|error",
    "locum run transpose": r"1\.0, 3\.0",
    "locum run reverse --input abc": "c, b, a",
}
#: Commands that run until they are stopped; the playground is started below.
ENDLESS = ("locum playground", "locum repl")
QUICK = (
    *("tests/core", "--ignore=tests/core/test_docs.py", "tests/test_imports.py"),
    *("tests/test_packaging.py", "tests/test_examples.py", "src/locum/errors.py"),
)


class FailedError(Exception):
    """Raised if a step fails."""


def main() -> int:
    """Build, install and test the packages; return 1 if a step fails, otherwise 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--only", help="one version, such as 3.12")
    parser.add_argument("--everything", action="store_true", help="run all tests of the sdist")
    arguments = parser.parse_args()
    found = pythons(arguments.only)
    asked = [arguments.only] if arguments.only else VERSIONS
    facts: dict[str, Any] = {"pythons": dict.fromkeys(asked, "not found")}
    say = (lambda *words: None) if arguments.json else lambda *words: print(*words, flush=True)
    try:
        wheel, sdist = build()
        facts |= {"wheel_kb": wheel.stat().st_size // 1000, "sdist_kb": sdist.stat().st_size // 1000}
        say(f"{wheel.name}: {facts['wheel_kb']} kB; {sdist.name}: {facts['sdist_kb']} kB")
        check_content(wheel)
        for version, python in found.items():
            with tempfile.TemporaryDirectory(prefix="locum-") as folder:
                facts["pythons"][version] = use_wheel(python, wheel, Path(folder))
                facts["pythons"][version]["sdist"] = use_sdist(
                    python, sdist, Path(folder), arguments.everything
                )
            say(f"Python {version}:", facts["pythons"][version])
        for version in sorted(set(asked) - found.keys()):
            say(f"Python {version}: not found, not tried")
    except FailedError as error:
        print(f"packages: {error}", file=sys.stderr)
        return 1
    if arguments.json:
        print(json.dumps(facts))
    return 0


def pythons(only: str | None) -> dict[str, str]:
    """Return the interpreters that are found on the PATH or in the folder of pyenv, by version."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {}
    for version in [only] if only else VERSIONS:
        candidates = [
            shutil.which(f"python{version}"),
            *sorted(map(str, kept.glob(f"{version}.*/bin/python"))),
        ]
        for candidate in filter(None, candidates):
            shown = subprocess.run(
                [candidate, "--version"], capture_output=True, text=True, check=False
            )
            if shown.stdout.startswith(f"Python {version}"):
                found[version] = candidate
                break
    return found


def build() -> tuple[Path, Path]:
    """Build the wheel and the sdist, and return their paths."""
    shutil.rmtree(DIST, ignore_errors=True)
    run([sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT)], ROOT)
    (wheel,), (sdist,) = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    return wheel, sdist


def check_content(wheel: Path) -> None:
    """Raise an error if the wheel lacks a required file, or contains a foreign file.

    An error is also raised if its metadata lack a file or contain relative links.
    """
    names = zipfile.ZipFile(wheel).namelist()
    needed = ("locum/py.typed", "locum/__init__.pyi", "locum/rasp/text/library.rasp")
    missing = [name for name in needed if name not in names]
    foreign = [name for name in names if not re.match(r"locum(-[\d.]+\.dist-info)?/", name)]
    if missing or foreign:
        raise FailedError(f"the wheel lacks {missing} and has {foreign}")
    extra = ("licenses/LICENSE", "CODEMIRROR.txt")
    described = [name for name in names if ".dist-info/" in name]
    absent = [name for name in extra if not any(entry.endswith(name) for entry in described)]
    metadata = zipfile.ZipFile(wheel).read(
        next(name for name in described if name.endswith("METADATA"))
    )
    relative = re.findall(r"\]\((?!https?:|#)([^)]+)\)", metadata.decode())
    if absent or relative:
        raise FailedError(f"the metadata lack {absent} and have the relative links {relative}")


def environment(python: str, folder: Path, *requirements: str) -> Path:
    """Create a virtual environment with the requirements, and return its folder of programs."""
    run([python, "-m", "venv", str(folder)], folder.parent)
    programs = folder / "bin"
    install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--prefer-binary"]
    run([str(programs / "python"), *install, *requirements], folder.parent)
    return programs


def use_wheel(python: str, wheel: Path, folder: Path) -> dict[str, Any]:
    """Install the wheel, test it in an empty folder, and return the results."""
    programs = environment(python, folder / "wheel", str(wheel))
    empty = folder / "empty"
    empty.mkdir()
    for command, pattern in COMMANDS.items():
        printed = run([str(programs / "locum"), *command.split()[1:]], empty)
        if not re.search(pattern, printed):
            raise FailedError(f"{command} prints {printed[:300]!r}, expected {pattern!r}")
    shown = run_readme(programs, empty)
    named = readme_commands()
    for command in named:
        if not run([str(programs / "locum"), *shlex.split(command)[1:]], empty).strip():
            raise FailedError(f"{command} prints nothing")
    start = json.loads(
        run([str(programs / "python"), str(ROOT / "benchmarks" / "bench_start.py"), "--json"], empty)
    )
    playground(programs, empty)
    times = {row["what"]: round(row["seconds"], 3) for row in start["rows"]}
    return {
        "commands": len(COMMANDS) + len(named),
        "blocks": shown,
        "playground": "served",
        "seconds": times,
    }


def readme_commands() -> list[str]:
    """Return the ``locum`` commands in inline code of the README.

    Commands that contain … or run until they are stopped are omitted.
    """
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = dict.fromkeys(re.findall(r"`(locum [^`]+)`", text))
    return [command for command in named if "…" not in command and not command.startswith(ENDLESS)]


def run_readme(programs: Path, empty: Path) -> int:
    """Run the Python and console blocks of the README with the installed package, and compare outputs.

    Blocks that are marked as not run are skipped. Return the number of all other blocks, including
    blocks of output.
    """
    code, outputs, count = "", [], 0
    shown = [block for block in blocks(ROOT / "README.md") if block.reason is None]
    for block in shown:
        count += 1
        if block.kind == "python":
            code += f"{block.text}\nprint('<<<end of block>>>')\n"
            outputs.append("")
        elif block.kind in ("output", ""):
            outputs[-1] = block.text
    printed = run([str(programs / "python"), "-c", code], empty).split("<<<end of block>>>\n")
    for expected, actual in zip(outputs, printed, strict=False):
        if expected and not matches(expected, actual):
            raise FailedError(f"the README shows\n{expected}\nand this is printed\n{actual}")
    for block in shown:
        if block.kind != "console":
            continue
        for piece in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, expected = piece.partition("\n")
            actual = run(
                ["bash", "-c", command],
                empty,
                {"PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "100"},
            )
            if expected.strip() and not matches(expected, actual):
                raise FailedError(
                    f"the README shows that {command} prints\n{expected}\nand it prints\n{actual}"
                )
    return count


def playground(programs: Path, empty: Path) -> None:
    """Start the playground, and raise an error if its page cannot be loaded."""
    command = [str(programs / "locum"), "playground", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=empty, stdout=subprocess.PIPE, text=True, env=clean()) as server:
        try:
            assert server.stdout is not None
            address = json.loads(server.stdout.readline())["address"]
            for _ in range(100):
                try:
                    page = urllib.request.urlopen(address, timeout=60).read()
                    break
                except OSError:
                    time.sleep(0.2)
            else:
                raise FailedError("the playground does not answer")
            if b"<title>" not in page:
                raise FailedError("the playground's page is not there")
        finally:
            server.terminate()


def use_sdist(python: str, sdist: Path, folder: Path, everything: bool) -> str:
    """Install the sdist without PyTorch, and run tests of the unpacked sdist.

    Return the last line that pytest prints.
    """
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    programs = environment(
        python, folder / "sdist", str(sdist), "pytest>=8", "hypothesis>=6.100", "pytest-xdist>=3.6"
    )
    tests = [] if everything else list(QUICK)
    printed = run(
        [str(programs / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], unpacked
    )
    return printed.strip().splitlines()[-1]


def clean() -> dict[str, str]:
    """Return the environment without variables that refer to the repository."""
    return {
        name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }


def run(command: list[str], folder: Path, extra: dict[str, str] | None = None) -> str:
    """Run a command and return its output; raise an error with the output if the command fails."""
    done = subprocess.run(
        command, cwd=folder, env=clean() | (extra or {}), capture_output=True, text=True, check=False
    )
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).strip().splitlines()[-25:])
        raise FailedError(f"{' '.join(command)[:300]} exits {done.returncode}:\n{end}")
    return done.stdout


if __name__ == "__main__":
    raise SystemExit(main())
