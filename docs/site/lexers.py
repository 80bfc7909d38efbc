"""Define lexers for code blocks: RASP text is highlighted, and outputs and Coq are plain text."""

from __future__ import annotations

from pygments.lexer import RegexLexer, words
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Text


class RaspLexer(RegexLexer):  # type: ignore[misc, unused-ignore]
    """A lexer that highlights RASP text."""

    name = "RASP"
    aliases = ("rasp",)
    tokens = {  # noqa: RUF012 (what Pygments expects)
        "root": [
            (r"#.*$", Comment.Single),
            (r'"[^"\n]*"', String),
            (
                words(
                    (
                        "def",
                        "return",
                        "for",
                        "in",
                        "if",
                        "else",
                        "and",
                        "or",
                        "not",
                        "set",
                        "load",
                        "draw",
                        "example",
                        "True",
                        "False",
                    ),
                    suffix=r"\b",
                ),
                Keyword,
            ),
            (
                words(
                    ("select", "aggregate", "selector_width", "best", "indicator", "round", "range"),
                    suffix=r"\b",
                ),
                Name.Builtin,
            ),
            (
                words(
                    (
                        "tokens",
                        "tokens_str",
                        "tokens_int",
                        "tokens_float",
                        "tokens_bool",
                        "tokens_asis",
                        "indices",
                        "length",
                        "full_s",
                    ),
                    suffix=r"\b",
                ),
                Name.Variable,
            ),
            (r"\d+(\.\d+)?([eE][+-]?\d+)?", Number),
            (r"[-+*/%^=<>!]+", Operator),
            (r"\w+", Name),
            (r".|\n", Text),
        ]
    }


class PlainLexer(TextLexer):  # type: ignore[misc, unused-ignore]
    """A lexer that does not highlight its text, for outputs and Coq."""

    aliases = ("output", "coq")
