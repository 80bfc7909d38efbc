"""Files are read with a limit, and written completely or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from locum import files
from locum.errors import InputError, LocumError

# Reading -----------------------------------------------------------------------------------------


def test_reading(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfx = 1;")
    assert files.read_text(tmp_path / "a.txt", 10) == "x = 1;"
    assert files.read_bytes(tmp_path / "a.txt", 9) == b"\xef\xbb\xbfx = 1;"
    (tmp_path / "link").symlink_to(tmp_path / "a.txt")
    assert files.read_text(tmp_path / "link", 10) == "x = 1;"
    (tmp_path / "a.json").write_text('{"a": [1, 2.5]}')
    assert files.read_json(tmp_path / "a.json", 100) == {"a": [1, 2.5]}


def refusals(folder: Path) -> dict[str, tuple[Any, str]]:
    """Paths that no reader takes, and what is said of them."""
    (folder / "long").write_bytes(b"x" * 101)
    with open(folder / "sparse", "wb") as file:
        file.truncate(3 * 2**30)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "binary").write_bytes(b"ab\xff")
    return {
        "missing": (folder / "none", "No such file"),
        "a folder": (folder, "Is a directory"),
        "a device": ("/dev/zero", "it has more than 100 bytes"),
        "too long": (folder / "long", "it has more than 100 bytes"),
        "three gigabytes": (folder / "sparse", "it has more than 100 bytes"),
        "a link to itself": (folder / "loop", "cannot read"),
        "a NUL": ("a\0b", "null byte"),
        "a long name": (folder / ("x" * 300), "name too long"),
        "not text": (folder / "binary", "byte 2 is not UTF-8"),
    }


def test_what_is_not_read(tmp_path: Path) -> None:
    for path, message in refusals(tmp_path).values():
        with pytest.raises(InputError, match=message):
            files.read_text(path, 100)


def test_a_file_whose_size_is_not_known() -> None:
    """The files of /proc are of size 0, whatever they hold."""
    with pytest.raises(InputError, match="more than 10 bytes"):
        files.read_bytes("/proc/self/status", 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("NaN", "NaN is not a JSON number"),
        ("[1e999]", "1e999 is not a JSON number"),
        ("9" * 5000, "not JSON"),
        ('{"a": 1, "a": 2}', "the same name twice"),
    ],
)
def test_what_is_not_json(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=message) as raised:
        files.read_json(tmp_path / "a.json", 10**6)
    assert "a.json" in str(raised.value)


# Writing files -----------------------------------------------------------------------------------


def test_writing_a_file(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    files.write_file(path, "Ünicode")
    assert path.read_bytes() == "Ünicode".encode()
    (tmp_path / "link").symlink_to(path)
    files.write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert path.read_bytes() == b"new"
    assert {entry.name for entry in tmp_path.iterdir()} == {"page.html", "link"}


def test_permissions(tmp_path: Path) -> None:
    """A new file has the usual permissions, and a private one stays private."""
    plain, private = tmp_path / "plain", tmp_path / "private"
    private.touch(mode=0o600)
    for path in (plain, private):
        files.write_file(path, b"")
    (tmp_path / "other").touch()
    assert plain.stat().st_mode == (tmp_path / "other").stat().st_mode
    assert stat.S_IMODE(private.stat().st_mode) == 0o600


def test_what_is_not_written(tmp_path: Path) -> None:
    for path, message in (
        (tmp_path / "no" / "file", "there is no folder"),
        (tmp_path, "not a regular file"),
        ("/dev/null", "not a regular file"),
        ("a\0b", "null byte"),
    ):
        with pytest.raises(InputError, match=message):
            files.write_file(path, b"")
    with pytest.raises(InputError, match="unpaired surrogate"):
        files.write_file(tmp_path / "text", "\ud800")
    assert not list(tmp_path.iterdir())


def test_a_target_that_is_also_read(tmp_path: Path) -> None:
    program = tmp_path / "s.rasp"
    program.write_text("tokens;")
    (tmp_path / "link").symlink_to(program)
    for target in (program, tmp_path / "link", tmp_path / "." / "s.rasp"):
        with pytest.raises(InputError, match="the file is also an input; try another name"):
            files.check_target(target, program)
    files.check_target(tmp_path / "s.svg", program, None)


FULL = """
import resource, signal, sys
from pathlib import Path
from locum import files
from locum.errors import LocumError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # as a full disk: writing fails on the way
try:
    if sys.argv[2] == "file":
        files.write_file(Path(sys.argv[1]) / "page.html", b"x" * 10_000)
    else:
        files.write_folder(Path(sys.argv[1]) / "model", {"a": b"x", "b": b"x" * 10_000})
except LocumError as error:
    print(error)
"""


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_full_disk_leaves_nothing(what: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path, what], capture_output=True, text=True, check=True
    )
    assert "cannot write" in done.stdout
    assert not list(tmp_path.iterdir())


# Writing folders ---------------------------------------------------------------------------------


def test_writing_a_folder(tmp_path: Path) -> None:
    place = tmp_path / "model"
    files.write_folder(place, {"a": b"1", "b": "2"})
    files.write_folder(place, {"c": b"3"})
    assert [(path.name, path.read_bytes()) for path in place.iterdir()] == [("c", b"3")]
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    (tmp_path / "file").write_text("keep")
    with pytest.raises(InputError, match="is not a folder"):
        files.write_folder(tmp_path / "file", {})
    assert (tmp_path / "file").read_text() == "keep"


def test_the_current_folder_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = tmp_path.stat().st_ino
    with pytest.raises(InputError, match="it is the current folder"):
        files.write_folder(".", {"a": b""})
    assert (tmp_path.stat().st_ino, list(tmp_path.iterdir())) == (before, [])


def test_an_interrupted_writer_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "model"
    files.write_folder(place, {"a": b"old"})
    rename, calls = os.rename, 0

    def failing(source: Any, target: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(os, "rename", failing)
    with pytest.raises(LocumError, match="No space left"):
        files.write_folder(place, {"a": b"new"})
    assert (place / "a").read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_json_of_bytes() -> None:
    assert files.parse_json(b"\xef\xbb\xbf[1]") == [1]
    with pytest.raises(InputError, match="byte 1 is not UTF-8"):
        files.parse_json(b'"\xff"')
