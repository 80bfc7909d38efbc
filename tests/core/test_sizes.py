"""No group of packages is larger than its limit in tests/sizes.toml.

``python -m tests.core.test_sizes`` lowers the limits to the present sizes. It never raises a limit.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "locum"
FILE = ROOT / "tests" / "sizes.toml"
LIMITS = tomllib.loads(FILE.read_text("utf-8"))["groups"]
#: Brackets and other punctuation, which formatters add and remove.
PUNCTUATION = set("()[]{},:.;")
COUNTED = {tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP}


def count_tokens(source: str) -> int:
    """Count names, numbers, strings and operators outside of docstrings."""
    documented = {
        node.body[0].lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and ast.get_docstring(node, clean=False) is not None
    }
    return sum(
        token.type in COUNTED
        and token.string not in PUNCTUATION
        and not (token.type == tokenize.STRING and token.start[0] in documented)
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
    )


def group_of(path: Path) -> str:
    """Return the group with the longest folder that contains a file."""
    inside = path.parent.relative_to(SOURCE).as_posix() + "/"
    folders = {
        folder: name
        for name, limit in LIMITS.items()
        for folder in limit["folders"]
        if inside.startswith(folder + "/") or (folder == "" and inside == "./")
    }
    assert folders, f"{path} is in no group of tests/sizes.toml"
    return folders[max(folders, key=len)]


def measure(group: str) -> tuple[int, int]:
    """Return the lines and tokens of a group."""
    texts = [path.read_text("utf-8") for path in SOURCE.rglob("*.py") if group_of(path) == group]
    return sum(len(text.splitlines()) for text in texts), sum(map(count_tokens, texts))


@pytest.mark.parametrize("group", LIMITS)
def test_no_group_exceeds_its_limit(group: str) -> None:
    lines, tokens = measure(group)
    assert lines <= LIMITS[group]["lines"]
    assert tokens <= LIMITS[group]["tokens"]


def lower(text: str, group: str, name: str, size: int) -> str:
    """Return the text of the file with a lower limit of a group."""
    pattern = re.compile(rf"(\[groups\.{group}\][^\[]*?(?:\[[^\]]*\][^\[]*?)?\n{name} = )(\d+)")
    return pattern.sub(lambda match: match[1] + str(min(size, int(match[2]))), text)


if __name__ == "__main__":
    written = FILE.read_text("utf-8")
    for group in LIMITS:
        for name, size in zip(("lines", "tokens"), measure(group), strict=True):
            written = lower(written, group, name, size)
    FILE.write_text(written, "utf-8")
