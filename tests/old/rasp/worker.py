"""The process of a :class:`tests.old.rasp.limited.Worker`: texts in, exit codes and outputs out."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from locum.interface.cli import main
from locum.rasp import Session
from tests.old.rasp.limited import COMMANDS, SECONDS


class OverTimeError(BaseException):
    """A text that takes longer than it may; nothing in the program catches this."""


def stop(*_: object) -> NoReturn:
    raise OverTimeError


def answer(face: str, text: str, folder: Path) -> dict[str, Any]:
    path = folder / "program.rasp"
    path.write_text(text, encoding="utf-8", newline="", errors="surrogatepass")
    out, error = io.StringIO(), io.StringIO()
    sys.stdin = io.StringIO(text)
    gc.collect()  # what the text before left is not this one's
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            signal.setitimer(signal.ITIMER_PROF, SECONDS, 0.1)
            code = session(text) if face == "session" else command(face, path)
        except OverTimeError:
            code = -1
            error.write(f"over time\n{''.join(traceback.format_stack()[-3:])}")
        except BaseException:
            code = -2
            error.write(traceback.format_exc())
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    out_text = out.getvalue()
    return {"code": code, "out": out_text[-2_000:], "error": error.getvalue()}


def session(text: str) -> int:
    for result in Session().execute(text):
        if result.kind == "error":
            assert result.message, "an error without a message"
            assert result.category, "an error without a category"
            assert result.line is not None, "an error without a line"
        sys.stdout.write(f"{result.printed[:200]}\n")
    return 0


def command(face: str, path: Path) -> int:
    return main.run([part.format(path=path) for part in COMMANDS[face]])


if __name__ == "__main__":
    signal.signal(signal.SIGPROF, stop)
    folder = Path(os.environ["WORKER_FOLDER"])
    os.chdir(folder)
    Session()  # loads the grammar
    pipe = os.fdopen(os.dup(1), "w")
    for line in sys.__stdin__ or ():
        face, text = json.loads(line)
        pipe.write(json.dumps(answer(face, text, folder)) + "\n")
        pipe.flush()
