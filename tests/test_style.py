"""Texts keep the rules of the style: words, lengths of sentences, pages and help texts.

``python -m tests.test_style [WORD …]`` counts the findings by rule and file, or lists those whose line
contains one of the words.
"""

from __future__ import annotations

import ast
import functools
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from locum.interface.cli.main import cli

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "locum"
LONGEST_SENTENCE = 40
LONGEST_PAGE = 1_800
LONGEST_HELP = 60
#: Folders of Python files next to the package, and files with comments, by their marks.
SCRIPTS = (".ci", "benchmarks", "docs", "examples", "experiments", "packaging")
MARKS = {
    r"#+:?": ("src/**/*.rasp", "examples/*.rasp", "sweeps/*.toml", "constraints/*", "pyproject.toml")
    + ("Makefile", "Containerfile", ".dockerignore", ".github/workflows/*", ".ci/run"),
    r"//": ("examples/*.crasp", "examples/*.subleq", "examples/*.fleq"),
}
#: Pages whose text is generated from tables of the program, and pages that list statements.
GENERATED = {"operations", "torch_operations", "errata", "paper", "proofs"}

#: Words and constructions that are avoided, each with what to write instead.
WORDS = {
    r"\bso (?:many|much)\b": "the number of",
    r"\bwhat (?:comes|came|is told)\b": "a noun",
    r"\bthat there (?:are|is)\b": "existing",
    r"\bof (?:its|their|his) own\b": "separate",
    r"\bas (?:it is|they are)\b(?! (?:in|for|on|given|used|printed|not|a|the|to)\b)": "unchanged",
    r"\banew\b": "again",
    r"\b(?:goes|go|going|gone|went) on\b": "continue",
    r"\b(?:stands?(?! for\b)|stood)\b": "is",
    r"\b(?:lies?|lain)\b": "is",
    r"\bhangs? on\b": "depends on",
    r"\bbeside\b": "next to, compared with",
    r"\bbehind\b": "after",
    r"(?<!only )(?<!not )\btoo(?=[.;:!?)])|,? too$|, too,": "also, before the verb",
    r"\b(?:somebody|someone|nobody|anybody|whoever)\b": "a user, a caller",
    r"\bmended\b": "fixed",
    r"\bby the (?:thousand|dozen)\b": "many",
    r"\brefus(?:e|es|ed|al|als|ing)\b": "raises, is rejected, is not supported",
    r"\bknows\b|\bknow (?:nothing|no|what|how|which|where|only)\b": "has",
    r"\b(?:says?|said|tells?|told) (?:so|what|which|how|where|that|why|nothing)\b|\bsays\b": "states",
    r"\bours\b": "Locum's",
    r"\bwhole division\b": "integer division",
    r"\bhalf types?\b": "half precision",
    r"\bby the root mean square\b": "RMSNorm",
    r"\bbiases of scores\b": "relative position biases",
    r"\bagain and again\b": "repeatedly",
    r"\b(?:doors?|rooms?|houses?)\b": "no metaphors",
}
RULES = {pattern: re.compile(pattern, re.IGNORECASE) for pattern in WORDS}
#: Texts that are quoted from other sources.
QUOTED = ("src/locum/paper/statements.py", "src/locum/paper/errata.py")


@dataclass(frozen=True)
class Text:
    """A paragraph: where it is, what kind of text it is, and its words."""

    file: str
    line: int
    kind: str
    words: str


def plain(text: str) -> str:
    """Remove code, quotations, links and formulas from a paragraph, each replaced by one word."""
    text = re.sub(r"``.*?``|`[^`]*`(?:_|)|:\w+:`[^`]*`", "CODE", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r'"[^"]{0,200}"|“[^”]*”', "QUOTE", text)
    text = re.sub(r"https?://\S+|<[^<>]*>", "LINK", text)
    return " ".join(text.split())


def sentences(text: str) -> list[str]:
    """Split a paragraph into sentences."""
    # A list of names counts as one.
    names = re.sub(r"CODE(?:,? (?:and |or )?CODE)+", "CODE", plain(text))
    return re.split(r"(?<=[.!?:])[)\"*_]*\s+(?=[\W_]*[A-ZΣ⟨])", names)


def findings(text: Text) -> Iterator[tuple[str, str]]:
    """Yield the rule and the place of each finding in a paragraph."""
    words = plain(text.words)
    if text.kind == "string" and text.file in QUOTED:
        return
    for pattern, rule in RULES.items():
        for match in rule.finditer(words):
            around = words[max(0, match.start() - 40) : match.end() + 30]
            yield f"{match[0].lower()!r} (write: {WORDS[pattern]})", around
    if text.kind != "string":
        for sentence in sentences(text.words):
            count = len(sentence.split())
            if count > LONGEST_SENTENCE:
                yield f"a sentence of more than {LONGEST_SENTENCE} words", f"{count}: {sentence[:90]}"


# Sources of texts


def markdown(path: Path) -> list[Text]:
    """List the paragraphs, list items, headings and cells of a page, without blocks of code."""
    page = path.read_text(encoding="utf-8")
    page = re.sub(
        r"^( *)(`{3,}|~{3,}).*?^\1\2`*$|<!--.*?-->|^\$\$.*?\$\$$",
        lambda match: "\n" * match[0].count("\n"),
        page,
        flags=re.DOTALL | re.MULTILINE,
    )
    if path.name == "CHANGELOG.md":
        page = page.partition("\n## ")[2].partition("\n## ")[0]
    found: list[Text] = []
    name = path.relative_to(ROOT).as_posix()
    current: list[str] = []
    begun = 1

    def end() -> None:
        if current:
            found.append(Text(name, begun, "page", " ".join(current)))
            current.clear()

    for number, line in enumerate(page.splitlines(), 1):
        stripped = line.strip()
        if not stripped or re.match(r"([-*+>]|\d+\.|#+) |\||</?\w", stripped):
            end()
        if stripped.startswith("|"):
            found += [
                Text(name, number, "page", cell) for cell in stripped.split("|") if cell.strip(" -:")
            ]
        elif stripped:
            if not current:
                begun = number
            current.append(re.sub(r"^([-*+>]|\d+\.|#+) ", "", stripped))
    end()
    return found


def paragraphs(text: str) -> list[str]:
    """Split a docstring into paragraphs and list items, without its examples."""
    text = re.sub(
        r"^[ \t]*>>>.*?(?:\n[ \t]*\n|\Z)", "\n\n", text + "\n\n", flags=re.DOTALL | re.MULTILINE
    )
    text = re.sub(r"::\n\n(?: .*\n|\n)+", "\n\n", text)
    return [part for part in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.|:\w+.*?:) ", text) if part.strip()]


def source(path: Path) -> Iterator[Text]:
    """Yield the docstrings, comments and messages of a module."""
    name, code = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    tree = ast.parse(code)
    documented = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            documented.add(id(node.value))
            for part in paragraphs(node.value.value):
                yield Text(name, node.lineno, "docstring", part)
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
    } - {id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)}
    for node in ast.walk(tree):
        if id(node) in documented or id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            value = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "VALUE" for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            value = node.value
        else:
            continue
        if re.search(r"[a-z,;:]+ [a-z]+ [a-z]+", value):
            yield Text(name, node.lineno, "string", value)
    block: list[str] = []
    last = begun = 0
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type != tokenize.COMMENT:
            continue
        if token.start[0] != last + 1 and block:
            yield Text(name, begun, "comment", " ".join(block))
            block = []
        begun = begun if block else token.start[0]
        last = token.start[0]
        block.append(token.string.lstrip("#: "))
    if block:
        yield Text(name, begun, "comment", " ".join(block))


def comments(path: Path, mark: str) -> Iterator[Text]:
    """Yield the comments of a file, each of which consists of lines that begin with a mark."""
    name = path.relative_to(ROOT).as_posix()
    block: list[str] = []
    for number, line in enumerate([*path.read_text(encoding="utf-8").splitlines(), ""], 1):
        match = re.match(rf"\s*{mark} ?(.*)$", line)
        if match:
            block.append(match[1])
        elif block:
            yield Text(name, number - len(block), "comment", " ".join(block))
            block = []
        if help_text := re.search(r" ## (.+)$", line):
            yield Text(name, number, "string", help_text[1])


def coq_comments(path: Path) -> Iterator[Text]:
    """Yield the paragraphs of the comments of a Coq file; names in brackets count as code."""
    code = path.read_text(encoding="utf-8")
    for match in re.finditer(r"\(\*+(.*?)\*\)", code, re.DOTALL):
        line = code[: match.start()].count("\n") + 1
        for part in re.split(r"\n\s*\n", match[1]):
            words = re.sub(r"\[[^\[\]]*\]", "`code`", part)
            yield Text(path.relative_to(ROOT).as_posix(), line, "comment", " ".join(words.split()))


def page_texts() -> Iterator[Text]:
    """Yield the texts of pages: what their HTML shows, and the strings of their scripts."""
    for path in sorted([*SOURCE.rglob("*.html"), *SOURCE.rglob("*.js")]):
        name, content = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if path.suffix == ".html":
            content = re.sub(r"<(script|style)\b.*?</\1>", "", content, flags=re.DOTALL)
            shown = [
                *re.findall(r">([^<]+)<", content),
                *re.findall(r'(?:title|placeholder|aria-label)="([^"]+)"', content),
            ]
        elif path.suffix == ".js" and path.name != "codemirror.js":
            shown = [
                a or b or c
                for a, b, c in re.findall(
                    r'"((?:[^"\\\n]|\\.)*)"|\'((?:[^\'\\\n]|\\.)*)\'|`([^`]*)`', content
                )
            ]
            shown += re.findall(r"^\s*(?://|\*|/\*\*?) ?(.*)$", content, re.MULTILINE)
        else:
            continue
        yield from (Text(name, 0, "string", text) for text in shown if text.count(" ") > 1)


def help_texts() -> Iterator[tuple[str, str]]:
    """Yield each option with its help text, and each command with the first line of its help text."""

    def walk(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
        yield name, command.get_short_help_str(limit=500)
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                yield f"{name} {parameter.opts[0]}", parameter.help or ""
        if isinstance(command, click.Group):
            context = click.Context(command)
            for key in command.list_commands(context):
                child = command.get_command(context, key)
                assert child is not None
                yield from walk(child, f"{name} {key}")

    yield from walk(cli, "locum")


def documents() -> list[Path]:
    """List the pages that users read."""
    return [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").glob("*.md")),
    ]


@functools.cache
def texts() -> tuple[Text, ...]:
    """Return every text under the rules."""
    return tuple(_texts())


def _texts() -> Iterator[Text]:
    for path in documents():
        yield from markdown(path)
    scripts = [path for folder in SCRIPTS for path in sorted((ROOT / folder).rglob("*.py"))]
    for path in (*sorted(SOURCE.rglob("*.py")), *scripts, ROOT / "conftest.py"):
        yield from source(path)
    for mark, patterns in MARKS.items():
        for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
            yield from comments(path, mark)
    for path in sorted((ROOT / "proofs").glob("*.v")):
        yield from coq_comments(path)
    yield from page_texts()


def all_findings() -> list[tuple[Text, str, str]]:
    """List every finding with its text."""
    return [(text, *found) for text in texts() for found in findings(text)]


def problems_of_lengths() -> Iterator[str]:
    """Yield pages and help texts that are too long."""
    for path in documents():
        words = sum(len(text.words.split()) for text in markdown(path))
        if path.stem not in GENERATED and words > LONGEST_PAGE:
            yield f"{path.relative_to(ROOT)}: expected at most {LONGEST_PAGE} words, got {words}"
    for name, text in help_texts():
        shown = text.partition("  [")[0]
        if not shown:
            yield f"{name}: expected a help text"
        elif len(shown) > LONGEST_HELP:
            yield f"{name}: expected at most {LONGEST_HELP} characters, got {len(shown)}: {shown}"


def test_texts_keep_the_rules_of_the_style() -> None:
    found = [f"{text.file}:{text.line}: {rule}: {around}" for text, rule, around in all_findings()]
    assert not found, "\n".join(found)


def test_pages_and_help_texts_are_short() -> None:
    found = list(problems_of_lengths())
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("words", "count"),
    [
        ("The value stands behind the token, too.", 3),
        ("`T` stands for a transformer that is not too large.", 0),
        ("It refuses so many inputs, as nobody knows.", 4),
        (" ".join(["word"] * 41) + ".", 1),
        ("A list of names: " + ", ".join(["`code`"] * 50) + ".", 0),
    ],
)
def test_the_rules_find_what_they_name(words: str, count: int) -> None:
    assert len(list(findings(Text("a.md", 1, "page", words)))) == count


def test_texts_come_from_every_kind_of_source() -> None:
    kinds = Counter(text.kind for text in texts())
    assert min(kinds[kind] for kind in ("page", "docstring", "comment", "string")) > 1_000


def main() -> None:
    """Print counts by rule and by file, or the findings in some files."""
    found = all_findings()
    lines = [f"{text.file}:{text.line} {text.kind}: {rule}: {around}" for text, rule, around in found]
    if words := sys.argv[1:]:
        sys.stdout.writelines(f"{line}\n" for line in lines if any(word in line for word in words))
        return
    for title, counts in {
        "rule": Counter(rule for _, rule, _ in found),
        "kind": Counter(text.kind for text, _, _ in found),
        "file": Counter(text.file for text, _, _ in found),
    }.items():
        sys.stdout.writelines(f"{count:5} {title} {name}\n" for name, count in counts.most_common())
    sys.stdout.writelines(f"{line}\n" for line in problems_of_lengths())


if __name__ == "__main__":
    main()
