"""A forked child can build, hold and run programs, whatever other threads of the parent were doing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest

from tests.test_imports import MODULES

#: A thread holds every lock of the package; the child of a fork must find them free. The alarm ends a
#: child that waits for ever.
HELD = """
import gc, os, signal, threading
import numpy, locum, locum.execution.fast, locum.rasp.handles
from locum.graph import build
from locum.shared_state import Lock

locks = [thing for thing in gc.get_objects() if isinstance(thing, Lock)]
assert len(locks) >= 3, locks
held = threading.Event()

def hold():
    for lock in locks:
        lock.__enter__()
    held.set()
    threading.Event().wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if not child:
    signal.alarm(600)
    x = build("add", build("tokens", cast="asis"), build("constant", value=0.7312))
    assert locum.aggregate(locum.full, locum.indices + 4)([1.0, 2.0], executor="fast") == [4.5, 4.5]
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0)
"""
#: Families that nobody named travel between processes: a child does not give its parent's names again.
NAMED = """
import os
from locum.graph.node import fresh_name

first = fresh_name()
reader, writer = os.pipe()
if not os.fork():
    os.write(writer, fresh_name().encode())
    os._exit(0)
os.close(writer)
theirs = os.read(reader, 100).decode()
print(len({first.split(".")[0], theirs.split(".")[0]}))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize(("script", "answer"), [(HELD, "0"), (NAMED, "2")])
def test_a_forked_child(script: str, answer: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [answer]


def test_every_lock_of_the_package_survives_a_fork() -> None:
    """Only shared_state.py uses ``threading.Lock``. All other modules use ``shared_state.Lock``."""
    kinds = {"Lock", "RLock", "Condition"}
    for module, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        if not any(kind in text for kind in kinds):  # then no attribute has such a name
            continue
        names = {node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)}
        assert module == "shared_state" or not names & kinds, (
            f"{path} makes a lock that stays locked in a forked child: use locum.shared_state.Lock"
        )
