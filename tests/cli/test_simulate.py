"""``locum simulate``: the figure, random T's, the user's files, and what is refused."""

from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from locum.errors import GraphError
from locum.simulators import Attention, Encoder, LinearAttention, MultiHeadAttention, Order
from tests.cli.conftest import Run
from tests.simulators.random_modules import Chance, distance


def json_of(run: Run, *arguments: object) -> Any:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    assert out.count("\n") == 1
    return json.loads(out)


#: Every number that the paper's Figure 2 prints.
FIGURE = {
    "XT": "0.8, 0.1, 0.6, 0.2, 0.9, 0.3, 0.5, 0.4, 0.7",
    "Y1": "0.51, 0.66, 0.81, 0.65, 0.79, 0.93, 0.67, 0.83, 0.99",
    "Y2": "0.945, 0.969, 1.071, 1.143, 1.148, 1.278, 1.197, 1.21, 1.344",
    "Y3": "0.317, 0.324, 0.359, 0.318, 0.319, 0.363, 0.315, 0.319, 0.365",
    "Y4": "0.53, 0.72, 0.8, 1.11, 0.42, 1.09, 0.71, 0.65, 0.93",
    "Y": "0.783, 0.598, 0.941, 0.780, 0.599, 0.940, 0.781, 0.599, 0.940",
}


def test_figure_2_has_every_printed_digit(simulate: Run) -> None:
    data = json_of(simulate)
    steps = {step["paper"]: step for step in data["steps"]}
    for name, printed in FIGURE.items():
        expected = [float(number) for number in printed.split(", ")]
        assert np.round(steps[name]["matrix"], 3).ravel().tolist() == expected
        assert steps[name]["digits_agree"]
    assert steps["Y3"]["error"] < 1e-15
    assert steps["Y"]["error"] < 1e-15
    assert data["layers"] == 7
    assert data["figure"] == {"reproduced": True}


def test_figure_2_by_the_base_of_its_exponential(simulate: Run) -> None:
    steps = {step["paper"]: step for step in json_of(simulate, "--base", "2.718")["steps"]}
    for name, printed in (("Y3", "3.376358e-06"), ("Y", "3.040329e-07")):
        assert f"{steps[name]['error']:.6e}" == printed == f"{steps[name]['figure_error']:.6e}"
    listing = json_of(simulate, "--base", "2.73")
    steps = {step["paper"]: step for step in listing["steps"]}
    assert f"{steps['Y3']['error']:.6e}" == "1.400885e-04"
    assert listing["figure"] == {"reproduced": False}
    assert not steps["Y3"]["digits_agree"]


def test_figure_2_as_text(simulate: Run) -> None:
    code, out, _ = simulate("--base", "2.718")
    assert code == 0
    assert out.count("all equal") == 6
    assert out.count("3.376358e-06") == out.count("3.040329e-07") - 1 == 2
    assert "7 layers, heads [10, 12, 6, 9, 3, 3, 9]" in out
    assert "0.945 0.969 1.071" in out
    code, out, _ = simulate("--base", "e", "--recipe", "fetch")
    assert "5 layers" in out


@pytest.mark.parametrize(
    "options",
    [
        ("--order", "4,3,2"),
        ("--order", "5,2,2", "--recipe", "tiled"),
        ("--order", "3,3,3", "--heads", "2", "--ffn", "4,3", "--norm", "post"),
        ("--order", "3,3,3", "--mask", "causal", "--seed", "5"),
        ("--order", "3,3,3", "--recipe", "inverse"),
        ("--order", "2,2,1", "--on", "4,3,3"),
        *(
            ("--order", "4,3,2", "--kind", kind)
            for kind in ("factored", "linear", "linformer", "performer", "sumformer")
        ),
    ],
)
def test_random_modules(simulate: Run, options: tuple[str, ...]) -> None:
    data = json_of(simulate, *options)
    assert data["error"] <= 1e-12
    assert data["steps"][-1]["name"] == "output"
    assert data["result"] == data["steps"][-1]["matrix"]
    assert data == json_of(simulate, *options)


def test_matrices_of_ones_own(simulate: Run, tmp_path: Path) -> None:
    chance = Chance(0)
    X, A, V = chance(4, 3), chance(3, 3), chance(3, 2)
    files = []
    for name, array in (("x", X), ("a", A), ("v", V)):
        np.save(tmp_path / f"{name}.npy", array)
        files += [f"--{name}", tmp_path / f"{name}.npy"]
    expected = Attention(A, V)(X)
    assert distance(json_of(simulate, *files)["result"], expected) <= 1e-13
    np.savez(tmp_path / "all.npz", X=X, A=A, V=V)
    assert distance(json_of(simulate, tmp_path / "all.npz")["result"], expected) <= 1e-13
    assert distance(json_of(simulate, "--x", tmp_path / "all.npz")["result"], expected) <= 1e-13
    from safetensors.numpy import save_file

    save_file({"x": X, "a": A, "v": V}, tmp_path / "all.safetensors")
    assert distance(json_of(simulate, tmp_path / "all.safetensors")["result"], expected) <= 1e-13
    larger = json_of(simulate, tmp_path / "all.npz", "--on", "5,4,3")
    assert larger["order"] == [5, 4, 3]
    assert distance(larger["result"], expected) <= 1e-13


def test_too_many_heads_are_rejected_before_anything_is_made(simulate: Run) -> None:
    code, _, err = simulate("--order", "2,2,2", "--heads", "100000000")
    assert code == 2
    assert "--heads: expected at most 128" in err
    with pytest.raises(GraphError, match="heads: expected an integer from 1 to 10,000"):
        Order.of(2, 2, 2, heads=100_000_000)


def test_heads_and_feed_forward_from_a_file(simulate: Run, tmp_path: Path) -> None:
    chance = Chance(1)
    A, V = chance(2, 3, 3), chance(2, 3, 2)
    parts = {
        "W_O": chance(4, 3),
        "b_O": chance(3),
        "W1": chance(3, 4),
        "W2": chance(4, 3),
        "b1": chance(4),
    }
    X = chance(2, 3)
    everything: dict[str, Any] = {"X": X, "A": A, "V": V, **parts}
    np.savez(tmp_path / "layer.npz", **everything)
    heads = [Attention(a, v) for a, v in zip(A, V, strict=True)]
    attention = MultiHeadAttention(heads, parts["W_O"], parts["b_O"])
    T = Encoder(attention, parts["W1"], parts["W2"], parts["b1"], norm="pre")
    data = json_of(simulate, tmp_path / "layer.npz", "--norm", "pre")
    assert distance(data["result"], T(X)) <= 1e-12


def test_saving(simulate: Run, tmp_path: Path) -> None:
    path = tmp_path / "out.npz"
    code, out, _ = simulate("--order", "3,2,2", "--heads", "2", "-o", path)
    assert code == 0
    assert f"Saved in {path}" in out
    with np.load(path) as saved:
        heads = [Attention(a, v) for a, v in zip(saved["A"], saved["V"], strict=True)]
        assert distance(saved["result"], MultiHeadAttention(heads)(saved["X"])) <= 1e-13
        assert distance(saved["result"], saved["direct"]) <= 1e-13
        assert saved["step softmax[1]"].shape == (3, 3)
    assert [file.name for file in tmp_path.iterdir()] == ["out.npz"]
    # What was saved can be simulated again.
    assert json_of(simulate, path)["error"] <= 1e-13


@pytest.mark.parametrize(
    "options",
    [
        ("--order", "4,3,3", "--heads", "2", "--ffn", "5,3"),
        ("--order", "4,3,3", "--heads", "2", "--ffn", "5,3", "--norm", "post", "--mask", "causal"),
        ("--order", "4,3,3", "--norm", "pre", "--ffn", "2,3"),
        ("--order", "4,3,2", "--mask", "causal"),
        ("--order", "3,2,2", "--on", "4,3,3", "--heads", "2"),
        ("--order", "4,3,2", "--heads", "2", "--kind", "linear"),
        *(("--order", "4,3,2", "--kind", kind) for kind in ("linformer", "performer", "sumformer")),
    ],
)
def test_what_is_saved_is_read_as_the_same_t(
    simulate: Run, tmp_path: Path, options: tuple[str, ...]
) -> None:
    first, second = tmp_path / "first.npz", tmp_path / "second.npz"
    assert simulate(*options, "-o", first)[0] == 0
    data = json_of(simulate, first, "-o", second)
    with np.load(first) as saved, np.load(second) as again:
        assert distance(data["result"], saved["direct"]) <= 1e-12
        parts = {name for name in saved.files if not name.startswith("step ")}
        for name in parts - {"result"}:
            assert np.array_equal(saved[name], again[name]), name
        assert parts == {name for name in again.files if not name.startswith("step ")}


def test_nothing_of_a_file_is_left_out(simulate: Run, tmp_path: Path) -> None:
    chance = Chance(2)
    X, A, V = chance(3, 2), chance(2, 2), chance(2, 2)
    gain, shift, bias = chance(2), chance(2), chance(2)
    path = tmp_path / "file.npz"

    def result(*options: object, **arrays: Any) -> Any:
        np.savez(path, X=X, A=A, V=V, **arrays)
        return json_of(simulate, path, *options)["result"]

    attention = Attention(A, V)
    biased = MultiHeadAttention([attention], None, bias)
    assert distance(result(b_O=bias), attention(X) + bias) <= 1e-12
    normed = Encoder(attention, norm="post", norm1=(gain, shift))
    assert distance(result("--norm", "post", gain1=gain, bias1=shift), normed(X)) <= 1e-12
    both = Encoder(biased, norm="post", norm1=(gain, np.zeros(2)), epsilon=0.5)
    assert distance(result(norm="post", gain1=gain, b_O=bias, epsilon=0.5), both(X)) <= 1e-12
    mask = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1]])
    masked = Attention(A, V, mask=mask, pooling="average")
    assert distance(result(mask=mask, pooling="average"), masked(X)) <= 1e-12
    linear = LinearAttention(A, A, V)
    np.savez(path, X=X, W_Q=A, W_K=A, V=V)
    assert distance(json_of(simulate, path, "--kind", "linear")["result"], linear(X)) <= 1e-12


def test_a_larger_u_for_heads_and_a_feed_forward(simulate: Run) -> None:
    data = json_of(simulate, "--order", "2,2,1", "--heads", "2", "--ffn", "3,2", "--on", "4,3,2")
    assert data["number_of_heads"] == 2
    assert data["error"] <= 1e-12


def test_warnings_are_lines(simulate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from locum.interface.cli import simulations

    run = simulations.Simulation.run

    def warned(*arguments: Any) -> None:
        warnings.warn("run by dense execution: so it is", UserWarning, stacklevel=2)
        run(*arguments)

    monkeypatch.setattr(simulations.Simulation, "run", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        code, out, err = simulate("--order", "2,2,2", "--json")
    assert (code, err) == (0, "locum: run by dense execution: so it is\n")
    assert json.loads(out)["error"] <= 1e-12


def test_memory_that_does_not_suffice(simulate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from locum.interface.cli import simulations

    def full(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(simulations.Simulation, "run", full)
    code, out, err = simulate("--order", "2,2,2")
    assert (code, out) == (2, "")
    assert "does not fit into memory" in err


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of matrices, good and bad."""
    folder = tmp_path / "files"
    folder.mkdir()
    good, nan, infinite = (
        np.eye(2),
        np.array([[1.0, np.nan], [0, 1]]),
        np.array([[1.0, 0], [np.inf, 1]]),
    )
    arrays = {
        "good": good,
        "nan": nan,
        "infinite": infinite,
        "tall": np.ones((3, 2)),
        "flat": np.ones(2),
        "text": np.array([["a", "b"], ["c", "d"]]),
        "complex": good * 1j,
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "good.npz", X=good, A=good, V=good)
    np.savez(folder / "none.npz", X=np.ones((0, 2)), A=good, V=good)
    np.savez(folder / "few.npz", X=good, A=good)
    np.savez(folder / "more.npz", X=good, A=good, V=good, biases=good)
    np.savez(folder / "gain.npz", X=good, A=good, V=good, gain1=np.ones(2))
    np.savez(folder / "omega.npz", X=good, A=good, V=good, omega=good)
    np.savez(folder / "causal.npz", X=good, A=good, V=good, mask="causal", norm="pre")
    np.savez(folder / "norms.npz", X=good, A=good, V=good, norm=good)
    np.savez(folder / "cubic.npz", X=good, A=good, V=good, kind="cubic")
    np.savez(folder / "singular.npz", X=good, A=np.ones((2, 2)), V=good)
    np.save(folder / "objects.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    (folder / "pickled.npy").write_bytes(pickle.dumps([1, 2]))
    (folder / "words.npy").write_text("not an array")
    (folder / "words.npz").write_text("not an archive")
    (folder / "words.safetensors").write_text("not tensors")
    (folder / "words.csv").write_text("1,2")
    return folder


BAD = [
    (
        ("--x", "good.npy", "--a", "tall.npy", "--v", "good.npy"),
        "A must be square where X attends to itself",
    ),
    (("--x", "tall.npy", "--a", "good.npy", "--v", "tall.npy"), "V: expected 2 rows, got 3×2"),
    (("--x", "good.npy", "--a", "flat.npy", "--v", "good.npy"), "A: expected a matrix"),
    (("--x", "flat.npy", "--a", "good.npy", "--v", "good.npy"), "X: expected a matrix"),
    (("--x", "good.npy", "--a", "nan.npy", "--v", "good.npy"), "A has nan at [0, 1]"),
    (("--x", "infinite.npy", "--a", "good.npy", "--v", "good.npy"), "X has inf at [1, 0]"),
    (("--x", "good.npy", "--a", "good.npy", "--v", "text.npy"), "V: expected real numbers"),
    (("--x", "good.npy", "--a", "good.npy", "--v", "complex.npy"), "V: expected real numbers"),
    (("--x", "good.npy", "--a", "good.npy", "--v", "missing.npy"), "No such file"),
    (("--x", "good.npy", "--a", "good.npy", "--v", "words.npy"), "is not an array in the .npy format"),
    (
        ("--x", "good.npy", "--a", "good.npy", "--v", "objects.npy"),
        "expected an array of numbers",
    ),
    (
        ("--x", "good.npy", "--a", "good.npy", "--v", "pickled.npy"),
        "is not an array in the .npy format",
    ),
    (("--x", "good.npy", "--a", "good.npy"), "there is no V; try --x, --a, --v"),
    (("few.npz",), "few.npz: a T of kind softmax needs X, A and V, but there is no V"),
    (("more.npz",), "expected arrays named X, A, V"),
    (("gain.npz",), "for all 0 norms or for none, got them for 1"),
    (("omega.npz",), "a T of kind softmax has no omega: leave it out of the file"),
    (("norms.npz",), "norm: expected one word, got float64"),
    (("causal.npz", "--norm", "post"), "--norm post, but the file has another norm"),
    (("good.npz", "--kind", "linear"), "there is no W_Q and no W_K"),
    (("cubic.npz",), "kind: expected one of softmax, factored, linear"),
    (
        ("good.npz", "--ffn", "5,3", "--heads", "7", "--seed", "4"),
        "--heads, --ffn, --seed: expected only with --order",
    ),
    (("none.npz",), "X: expected one entry or more, got the shape 0×2"),
    (("words.npz",), "is not a .npz file"),
    (("words.safetensors",), "is not a .safetensors file"),
    (("words.csv",), "expected a .npy, .npz or .safetensors file, got .csv"),
    (("singular.npz", "--recipe", "inverse"), "expected non-singular A and V"),
    (("singular.npz", "--on", "1,2,2"), "T is larger than U: its n is 2"),
    (("singular.npz", "--order", "2,2,2"), "or files, got both"),
    (("--recipe", "inverse"), "expected non-singular A and V"),
    (("--order", "2,2,1", "--recipe", "inverse"), "with d = d_v"),
    (("--order", "2,2"), "--order: expected 3 integers ≥ 1"),
    (("--order", "2,2,zero"), "--order: expected 3 integers ≥ 1"),
    (("--order", "2,2,2", "--ffn", "3"), "--ffn: expected 2 integers ≥ 1"),
    (("--order", "2,3,2", "--ffn", "2,2"), "erratum E19"),
    (("--order", "2,2,2", "--heads", "0"), "heads: expected an integer ≥ 1"),
    (("--heads", "2"), "--heads: expected a T; try --order"),
    (("--order", "40000,2,2"), "too long for the executor"),
    (("--order", "9999999,9999,999"), "too long for the executor"),
    (("--order", "2,2,2", "--on", "9999999,9999,999"), "too long for the executor"),
    *(
        (
            ("--order", "3,3,3", "--kind", kind, "--base", "3"),
            f"softmax attention, got {kind}",
        )
        for kind in ("linear", "performer", "sumformer")
    ),
    (("--base", "minus"), "--base: expected a positive number or e, got 'minus'"),
    (("--order", "2,2,2", "-o", "no/such/folder/out.npz"), "there is no folder"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input(
    simulate: Run, files: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(files)
    before = sorted(path.name for path in files.iterdir())
    saved = () if "-o" in arguments else ("-o", "out.npz")
    code, out, err = simulate(*arguments, *saved)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in files.iterdir()) == before


@pytest.mark.parametrize("option", ["--kind", "--norm", "--mask", "--recipe", "--executor"])
def test_values_of_enumerations(simulate: Run, option: str) -> None:
    code, out, err = simulate("--order", "2,2,2", option, "other")
    assert (code, out) == (2, "")
    assert f"Invalid value for '{option}': 'other' is not" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--certify", "--on", "3,3,3"), "--certify: expected no --on with it"),
        (("--certify", "-o", "out.npz"), "--certify: expected no --output with it"),
        (("--dtype", "float32"), "--dtype: expected --certify with it"),
    ],
)
def test_options_of_certify(simulate: Run, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = simulate("--order", "2,2,2", *arguments)
    assert (code, out) == (2, "")
    assert words in err


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_certify_a_file(simulate: Run, tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "t.npz"
    data = json_of(simulate, "--order", "3,2,2", "--heads", "2", "-o", path)
    certified = json_of(simulate, path, "--certify", "--dtype", dtype)
    assert certified["dtype"] == dtype
    slack = certified["certified_error"] + (0 if dtype == "float64" else 1e-5)
    result, lower, upper = (
        np.array(m) for m in (data["result"], certified["lower"], certified["upper"])
    )
    assert (lower - slack <= result).all()
    assert (result <= upper + slack).all()
