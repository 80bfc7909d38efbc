"""Names that Locum no longer has, each with its replacement."""

from __future__ import annotations

import sys

_SIMULATE = "locum.torch.simulate(model, ...)"
_COMPILE = 'torch.compile(model, backend="locum")'
_GENERATE = 'model.compile(backend="locum", fullgraph=True) and model.generate(...)'
REPLACEMENTS = {
    "EncoderModel": f"transformers.AutoModel.from_pretrained(folder) and {_SIMULATE}",
    "LanguageModel": _GENERATE,
    "ModelRun": _SIMULATE,
    "dumps": "locum.save_program(program, path)",
    "generate": _GENERATE,
    "loads": "locum.load_program(path)",
    "record": "locum.torch.record(...), or UniversalSimulator.explain(T, X)",
    "register_attention": _COMPILE,
    "simulate": f"{_SIMULATE}, or UniversalSimulator.of(T, n)(T, X)",
    "stand_in": _COMPILE,
}


def missing_name(package: str, name: str) -> AttributeError | ImportError:
    """Return the error for a name that a package does not have; for a removed name, with a hint.

    Python replaces an AttributeError by another message in ``from package import name``. The error is
    therefore an ImportError in that statement.
    """
    if name not in REPLACEMENTS:
        return AttributeError(f"module {package!r} has no attribute {name!r}")
    message = f"{package}.{name} was removed in 0.3; try {REPLACEMENTS[name]}"
    is_import = sys._getframe(2).f_code.co_name == "_handle_fromlist"
    return ImportError(message, name=name) if is_import else AttributeError(message)
