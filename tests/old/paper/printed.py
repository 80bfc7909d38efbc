"""The words of the paper's TeX source, to find quotes in it."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from tests.old.paper.source import read_source

#: Commands of TeX, and how quotes write them.
_SYMBOLS = {
    "in": "∈", "subset": "⊂", "mid": "∣", "sum": "∑", "dots": "…", "ldots": "…", "cdots": "⋯",
    "ll": "≪",
    "ge": "≥", "geq": "≥", "le": "≤", "leq": "≤", "times": "×", "cdot": "·", "to": "→", "circ": "∘",
    "otimes": "⊗", "boxtimes": "⊠", "concat": "⊙", "f": "⊚", "top": "⊤", "prime": "′", "cup": "∪",
    "langle": "⟨", "rangle": "⟩", "lambda": "λ", "epsilon": "ϵ", "sigma": "σ", "rho": "ρ", "Pi": "Π",
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "ell": "ℓ", "infty": "∞", "coloneqq": "≔",
    "eqqcolon": "≕", "softmax": "softmax", "prop": "prop", "Pool": "Pool", "mod": "mod", "min": "min",
    "max": "max", "exp": "exp", "log": "log", "R": "R", "Return": "return", "sqrt": "√",
}  # fmt: skip
#: What is left out on both sides: white space, and braces and signs of TeX's layout.
_LEFT_OUT = re.compile(r"[\s{}$_^&~▷]")
_GROUP = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
#: Quotation marks of TeX and of the quotes.
_MARKS = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "`": "'", "ᵀ": "⊤"})


def normalise(text: str) -> str:
    """Reduce a quote to its letters, digits, symbols, brackets and punctuation.

    >>> normalise("T_σ^{(r)}(prop(A)) = prop(σ(Aᵀ)), d_v − 1")
    'Tσ(r)(prop(A))=prop(σ(A⊤)),dv-1'
    """
    decomposed = unicodedata.normalize("NFKD", text.translate(_MARKS))
    return _LEFT_OUT.sub("", decomposed.replace("−", "-"))


def _quotient(found: re.Match[str]) -> str:
    above, below = found[1], found[2]
    return f"{above}/{below}" if re.fullmatch(r"\\?\w+|\\sqrt\{\w\}", below) else f"{above}/({below})"


def _matrix(found: re.Match[str]) -> str:
    rows = found[1].strip().removesuffix(r"\\")
    return f"({rows})".replace(r"\\", ";")


def _with_tilde(found: re.Match[str]) -> str:
    marked = found[1] or found[2]
    return f"{marked[0]}\u0303{marked[1:]}"


def normalise_tex(text: str) -> str:
    """Reduce TeX in the same way as ``normalise`` reduces a quote; commands become symbols."""
    text = re.sub(
        r"\\(?:cite[a-z]*|autoref|ref|label|footnote|cmark)\s*\{(?:[^{}]|\{[^{}]*\})*\}", " ", text
    )
    text = text.replace('\\"o', "ö")
    text = re.sub(
        r"\\(?:mathrm|operatorname|mathbf|mathcal|mathbb|text[a-z]*|emph|lstinline)(?![a-zA-Z])",
        " ",
        text,
    )
    text = re.sub(r"\\begin\{pmatrix\}(.*?)\\end\{pmatrix\}", _matrix, text, flags=re.DOTALL)
    text = re.sub(r"\\(?:begin|end)\{[a-z]*\}", " ", text)
    text = re.sub(rf"\\(?:wide)?tilde\s*(?:{_GROUP}|(\w))", _with_tilde, text)
    text = re.sub(rf"\\frac\s*{_GROUP}\s*{_GROUP}", _quotient, text)
    text = re.sub(r"\\([a-zA-Z]+)", lambda found: _SYMBOLS.get(found[1], ""), text)
    text = re.sub(r"\\[][:;,.]", "", text)  # spaces, and the brackets of displayed formulas
    return normalise(text.replace("\\", "").replace("%", ""))


@cache
def source() -> list[str] | None:
    """Return the lines of the source, or None if it is not here."""
    text = read_source()
    return None if text is None else text.splitlines()
