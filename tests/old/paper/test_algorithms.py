"""Algorithms 1 to 5 as printed: the verdicts follow from running them, and change if a line changes."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest

from locum.paper import algorithms
from locum.paper.algorithms import prop
from locum.paper.paper_report import Row, examine
from locum.paper.statements import STATEMENTS

ALGORITHMS = ["algo:trans", "algo:softmax", "algo:matmul", "algo:maxmin", "algo:matinverse"]

Mutate = Callable[[str, str, str], None]


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch) -> Mutate:
    """Replace a piece of the text of a transcription."""

    def change(name: str, old: str, new: str) -> None:
        source = inspect.getsource(getattr(algorithms, name))
        assert source.count(old) == 1, (name, old)
        namespace = dict(vars(algorithms))
        exec(source.replace(old, new), namespace)
        monkeypatch.setattr(algorithms, name, namespace[name])

    return change


def judge(key: str) -> Row:
    return examine(STATEMENTS[key])


def results(row: Row, about: str) -> list[str]:
    return [each.result for each in row.evidence if each.about == about]


def test_verdicts_as_printed() -> None:
    rows = {key: judge(key) for key in ALGORITHMS}
    assert {key: row.status for key, row in rows.items()} == {
        "algo:trans": "right",
        "algo:softmax": "wrong",
        "algo:matmul": "wrong",
        "algo:maxmin": "right",
        "algo:matinverse": "wording",
    }
    assert all(row.holds for row in rows.values())
    assert "exactly where r = c;" in results(rows["algo:softmax"], "printed")[0]
    assert "exactly where k = c or r = 1;" in results(rows["algo:matmul"], "printed")[0]
    assert "n is not defined" in results(rows["algo:matinverse"], "printed")[0]
    assert results(rows["algo:matinverse"], "context") == [
        "equal at orders 2, 3; different at orders 4, 5"
    ]
    assert [row.errata for row in rows.values()] == [
        (), ("E7",), ("E6", "E39"), (), ("E24",),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "name", "old", "new"),
    [
        ("algo:trans", "transposition_matrix", "r * j + i for", "c * j + i for"),
        ("algo:maxmin", "maxmin_matrix", "sequence[i] < sequence", "sequence[i] > sequence"),
        ("algo:maxmin", "maxmin_matrix", "R[i, i + 1] = R[i + 1, i] =", "R[i, i + 1] ="),
    ],
)
def test_a_wrong_transcription_of_a_right_algorithm_is_wrong(
    mutate: Mutate, key: str, name: str, old: str, new: str
) -> None:
    assert judge(key).status == "right"
    mutate(name, old, new)
    row = judge(key)
    assert row.status == "wrong"
    assert not row.holds  # no erratum explains it


@pytest.mark.parametrize(
    ("key", "name", "old", "new", "erratum"),
    [
        ("algo:matmul", "algorithm_3", "(l - 1) * k + (m", "(l - 1) * c + (m", "E6"),
        ("algo:matinverse", "cofactor_matrices", "if n is None:", "n = r\n        if False:", "E24"),
    ],
)
def test_a_corrected_line_takes_the_erratum_away(
    mutate: Mutate, key: str, name: str, old: str, new: str, erratum: str
) -> None:
    assert erratum in judge(key).errata
    mutate(name, old, new)
    row = judge(key)
    assert row.status in ("right", "wording")  # E39, an erratum of notation, is left in Algorithm 3
    assert erratum not in row.errata


def test_corrected_blocks_take_the_erratum_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithms, "softmax_matrices", algorithms.softmax_matrices_corrected)
    row = judge("algo:softmax")
    assert (row.status, row.errata) == ("right", ())


@pytest.mark.parametrize(
    ("key", "name", "old", "new"),
    [
        ("algo:softmax", "softmax_matrices_corrected", "np.ones((c, c))", "np.ones((c, c)) / 2"),
        ("algo:matmul", "algorithm_3_corrected", "* c + (m", "* r + (m"),
        ("algo:matinverse", "algorithm_5", "P * Q - R * S", "P * Q + R * S"),
    ],
)
def test_a_wrong_correction_does_not_hold(
    mutate: Mutate, key: str, name: str, old: str, new: str
) -> None:
    mutate(name, old, new)
    row = judge(key)
    assert row.status == "fails"
    assert not row.holds


def test_another_condition_is_not_claimed_to_be_exact(mutate: Mutate) -> None:
    mutate("algorithm_3", "(l - 1) * k + (m", "(l - 1) * r + (m")
    assert "exactly" not in results(judge("algo:matmul"), "printed")[0]


def test_shapes_of_results() -> None:
    A, B = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    joined = np.concatenate([prop(A), prop(B)])
    product = algorithms.algorithm_3_corrected(joined, 2, 3, 4)
    assert product.tolist() == [*prop(A @ B), *[0.0] * (len(joined) - 8)]
    assert algorithms.algorithm_1(prop(A), 2, 3).tolist() == prop(A.T).tolist()
    cofactors, determinant = algorithms.algorithm_5_corrected(prop(np.diag([1.0, 2.0, 3.0])), 3)
    assert cofactors.tolist() == prop(np.diag([6.0, 3.0, 2.0])).tolist()
    assert determinant.tolist() == [6.0] * 9
    with pytest.raises(NameError, match="line 3: n is not defined"):
        algorithms.algorithm_5(prop(np.eye(3)), 3)
