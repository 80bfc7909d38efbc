"""Files of matrices: what a file claims is checked before its numbers are read."""

from __future__ import annotations

import contextlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib import format as npy

from locum.errors import InputError
from locum.interface.cli.archives import known_arrays
from locum.interface.cli.matrices import read_array, read_arrays


def header(shape: tuple[int, ...], dtype: str = "<f8", version: int = 1) -> bytes:
    """The beginning of a .npy file of this shape."""
    buffer = io.BytesIO()
    write = npy.write_array_header_1_0 if version == 1 else npy.write_array_header_2_0
    write(buffer, {"descr": dtype, "fortran_order": False, "shape": shape})
    return buffer.getvalue()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f8", ">f4", "<i2", "?", "<U3"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (4,), (2, 3)])
def test_arrays_come_back(shape: tuple[int, ...], dtype: str, order: Any, tmp_path: Path) -> None:
    array = np.ones(shape, dtype, order)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", one=array, two=array)
    np.savez_compressed(tmp_path / "b.npz", one=array)
    for back in (
        read_array(tmp_path / "a.npy"),
        read_array(tmp_path / "b.npz"),
        read_arrays(tmp_path / "a.npz")["two"],
    ):
        assert back.dtype == array.dtype
        assert back.shape == shape
        assert np.array_equal(back, array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header((10**22, 2)), "claims the shape 10000000000000000000000 × 2, but has only 0 bytes"),
        (header((10**12,)), "claims the shape 1000000000000, but has only"),
        (header((10**12,), version=2), "claims the shape 1000000000000, but has only"),
        (header((3,)) + bytes(23), "claims the shape 3, but has only 23 bytes"),
        (header((-1, 2)) + bytes(64), "claims the shape -1 × 2"),
        (header((2,), "O") + bytes(16), "got Python objects"),
        (header((2,))[:20], "is not an array"),
        (b"\x93NUMPY\x01\x00\xff\x7f" + b"(" * 0x7FFF, "is not an array"),
        (b"\x93NUMPY\x09\x00\x10\x00" + b" " * 16, "is not an array"),
        (b"", "is not an array"),
    ],
)
def test_what_a_header_claims(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_array(tmp_path / "a.npy")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("X.npy", content)
    with pytest.raises(InputError, match=f"X in .*{message}"):
        read_array(tmp_path / "a.npz")


@given(
    suffix=st.sampled_from([".npy", ".npz"]),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_damaged_files_are_refused_or_read(
    suffix: str, edits: list[tuple[float, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("damaged") / f"a{suffix}"
    if suffix == ".npy":
        np.save(path, np.arange(6.0).reshape(2, 3))
    else:
        np.savez_compressed(path, X=np.arange(6.0).reshape(2, 3))
    content = bytearray(path.read_bytes())
    for where, byte in edits:
        content[min(int(where * len(content)), len(content) - 1)] = byte
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        assert isinstance(read_array(path), np.ndarray)


def test_pipes_and_folders_are_not_read(tmp_path: Path) -> None:
    for suffix in (".npy", ".npz", ".safetensors"):
        (tmp_path / f"folder{suffix}").mkdir()
        with pytest.raises(InputError, match="expected a regular file, got a folder"):
            read_array(tmp_path / f"folder{suffix}")


def test_names_and_sizes_are_checked_before_anything_is_inflated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def inflate(*arguments: Any) -> Any:
        raise AssertionError("a member was opened")

    np.savez(tmp_path / "few.npz", X=np.eye(2), strange=np.eye(2))
    np.savez_compressed(tmp_path / "large.npz", X=np.eye(2))
    monkeypatch.setattr(zipfile.ZipFile, "open", inflate)
    with pytest.raises(InputError, match=r"expected arrays named X, .*, got 'strange'"):
        known_arrays(read_arrays(tmp_path / "few.npz"), "few.npz")
    # An archive that says of a member, as one that inflates to gigabytes does, that it is large.
    content = bytearray((tmp_path / "large.npz").read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = (3 * 2**30).to_bytes(4, "little")
    (tmp_path / "large.npz").write_bytes(content)
    with pytest.raises(InputError, match="got 3,221,225,472 bytes"):
        read_arrays(tmp_path / "large.npz")
