"""``locum simulate``: the figure, random T's, and what is rejected."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest

from locum.errors import GraphError
from locum.simulators import Order
from tests.old.interface.conftest import Run


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


def test_too_many_heads_are_rejected_before_anything_is_made(simulate: Run) -> None:
    code, _, err = simulate("--order", "2,2,2", "--heads", "100000000")
    assert code == 2
    assert "--heads: expected at most 128" in err
    with pytest.raises(GraphError, match="heads: expected an integer from 1 to 10,000"):
        Order.of(2, 2, 2, heads=100_000_000)


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


BAD = [
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
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(arguments) for arguments, _ in BAD])
def test_bad_input(simulate: Run, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = simulate(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", ["--kind", "--norm", "--mask", "--recipe", "--executor"])
def test_values_of_enumerations(simulate: Run, option: str) -> None:
    code, out, err = simulate("--order", "2,2,2", option, "other")
    assert (code, out) == (2, "")
    assert f"Invalid value for '{option}': 'other' is not" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--certify", "--on", "3,3,3"), "--certify: expected no --on with it"),
        (("--certify", "--executor", "fast"), "--certify: expected no --executor with it"),
        (("--dtype", "float32"), "--dtype: expected --certify with it"),
    ],
)
def test_options_of_certify(simulate: Run, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = simulate("--order", "2,2,2", *arguments)
    assert (code, out) == (2, "")
    assert words in err


@pytest.mark.parametrize("options", [(), ("--order", "3,2,2", "--heads", "2")])
def test_certify_in_float32(simulate: Run, options: tuple[str, ...]) -> None:
    """T and X are rounded to float32, and the result encloses T(X) up to this rounding."""
    result = np.array(json_of(simulate, *options)["result"])
    certified = json_of(simulate, *options, "--certify", "--dtype", "float32")
    assert certified["dtype"] == "float32"
    slack = certified["certified_error"] + 1e-5
    assert (np.array(certified["lower"]) - slack <= result).all()
    assert (result <= np.array(certified["upper"]) + slack).all()
