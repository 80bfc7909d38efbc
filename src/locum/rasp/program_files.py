"""Save programs to files and load them, as RASP text (suffix ``.rasp``) or as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import locum.graph as graph
from locum.errors import InputError
from locum.files import read_text, write_file
from locum.graph.node import node_of
from locum.rasp.handles import Handle, Selector, SOp, wrap
from locum.rasp.python import to_rasp

#: Maximum size of a program file in bytes.
LARGEST_FILE = 2**26


def save_program(program: Handle, path: str | Path) -> None:
    """Write an s-op or selector to a file atomically.

    The suffix ``.rasp`` selects RASP text. Files with any other suffix contain JSON.

    >>> import tempfile
    >>> from locum.rasp.python import indices
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_program(indices + 1, f"{folder}/next.rasp")
    ...     print(Path(f"{folder}/next.rasp").read_text().strip())
    indices + 1;
    """
    is_text = Path(path).suffix == ".rasp"
    write_file(path, to_rasp(program) + "\n" if is_text else graph.dumps(node_of(program)))


def load_program(path: str | Path) -> Any:
    """Read an s-op or selector from a file.

    For JSON, the result is the interned object of the program. A file with the suffix ``.rasp`` is run
    as a script, and the result is the last value that the script shows. If the script shows no value,
    the result is the value of the name in its last assignment outside of loops.

    >>> import tempfile
    >>> from locum.rasp.python import indices
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_program(indices + 1, f"{folder}/next.json")
    ...     load_program(f"{folder}/next.json") is indices + 1
    True
    """
    text = read_text(path, LARGEST_FILE)
    if Path(path).suffix != ".rasp":
        return wrap(graph.loads(text))
    from locum.rasp import RaspError, Session

    session = Session(folders=(Path.cwd(), Path(path).parent))
    try:
        shown = [value for _, value in session.script(text)]
    except RaspError as error:
        raise InputError(f"{path}, {error.pretty()}") from None
    if not shown and session.last_assigned is not None:
        shown = [session.get(session.last_assigned)]
    if not shown or not isinstance(shown[-1], (SOp, Selector)):
        raise InputError(
            f"{path}: expected a program whose last statement is an s-op or a selector, got "
            f"{'no value' if not shown else repr(shown[-1])}; try to end the file with its name"
        )
    return shown[-1]
