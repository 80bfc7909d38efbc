"""The words of the paper's TeX source, to find quotes in it."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from tests.paper.source import read_source

#: Commands of TeX, and how quotes write them.
_SYMBOLS = {
    "in": "∈", "subset": "⊂", "mid": "∣", "sum": "∑", "dots": "…", "ldots": "…", "cdots": "⋯",
    "ll": "≪",
    "ge": "≥", "geq": "≥", "le": "≤", "leq": "≤", "times": "×", "cdot": "·", "to": "→", "circ": "∘",
    "otimes": "⊗", "boxtimes": "⊠", "concat": "⊙", "f": "⊚", "top": "⊤", "prime": "′", "cup": "∪",
    "langle": "⟨", "rangle": "⟩", "lambda": "λ", "epsilon": "ϵ", "sigma": "σ", "rho": "ρ", "Pi": "Π",
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "ell": "ℓ", "infty": "∞", "coloneqq": "≔",
    "eqqcolon": "≔", "softmax": "softmax", "prop": "prop", "Pool": "Pool", "mod": "mod", "min": "min",
    "max": "max", "exp": "exp", "log": "log", "R": "R", "Return": "return", "sqrt": "√",
}  # fmt: skip
#: What is left out on both sides: brackets, punctuation, signs of layout.
_LEFT_OUT = re.compile(r"[\s{}()\[\]$_^~&;,.:|*`'\"‘’“”▷\u0303\u0301]")


def normalise(text: str) -> str:
    """Reduce a quote to its letters, digits and symbols.

    >>> normalise("T_σ^{(r)}(prop(A)) = prop(σ(Aᵀ)), d_v − 1")
    'TσrpropA=propσA⊤dv-1'
    """
    decomposed = unicodedata.normalize("NFKD", text.replace("ᵀ", "⊤"))
    return _LEFT_OUT.sub("", decomposed.replace("−", "-"))


def normalise_tex(text: str) -> str:
    """Reduce TeX to its letters, digits and symbols, as ``normalise`` does with a quote."""
    text = re.sub(
        r"\\(?:cite[a-z]*|autoref|ref|label|footnote|cmark)\s*\{(?:[^{}]|\{[^{}]*\})*\}", " ", text
    )
    text = re.sub(
        r"\\(?:mathrm|operatorname|mathbf|mathcal|mathbb|text[a-z]*|emph|lstinline)(?![a-zA-Z])",
        " ",
        text,
    )
    text = re.sub(r"\\(?:begin|end)\{[a-z]*\}", " ", text)
    group = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
    text = re.sub(rf"\\frac\s*{group}\s*{group}", r"\1/\2", text)
    text = re.sub(r"\\([a-zA-Z]+)", lambda found: _SYMBOLS.get(found[1], ""), text)
    text = re.sub(r"\\(?:widetilde|tilde)", "", text)
    return normalise(text.replace("\\", "").replace("%", ""))


@cache
def source() -> list[str] | None:
    """Return the lines of the source, or None if it is not here."""
    text = read_source()
    return None if text is None else text.splitlines()
