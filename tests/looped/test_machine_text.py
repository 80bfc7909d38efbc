"""SUBLEQ and FLEQ programs from text: what they mean, how they run, and where they are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from locum.errors import InputError
from locum.networks.looped.machine_text import (
    MachineTextError,
    SubleqProgram,
    read_fleq,
    read_subleq,
)
from locum.networks.looped.subleq import Command, State
from tests.cli.commands import command_line, json_of, refused
from tests.looped.test_looped import machines

EXAMPLES = Path(__file__).parents[2] / "examples"


@settings(max_examples=30)
@given(machines())
def test_numbers_mean_words_and_commands(case: tuple[int, list[int], list[Command]]) -> None:
    bits, memory, commands = case
    lines = [f"bits {bits}", f"memory {' '.join(map(str, memory))}"]
    program = read_subleq("\n".join([*lines, *(" ".join(map(str, each)) for each in commands)]))
    assert (program.bits, program.memory, program.commands) == (bits, tuple(memory), tuple(commands))
    assert program.lines == tuple(range(3, 3 + len(commands)))


def test_abbreviations_are_commands() -> None:
    program = read_subleq("a = 3\nb = 4\nback: add a b\ncopy a b\nclear a b\njump back\nhalt")
    a, b, zero = range(3)
    assert program.names == ("a", "b", "zero")
    assert program.commands == (
        (a, zero, 1), (zero, b, 2), (zero, zero, 3),
        (b, b, 4), (a, zero, 5), (zero, b, 6), (zero, zero, 7),
        (a, a, 8), (b, b, 9), (zero, zero, 0), (zero, zero, 10),
    )  # fmt: skip


def test_a_run_is_compared_with_python_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    program = read_subleq("a = 5\none = 1\nagain: one a done\njump again\ndone: halt\nshow a")
    run = program.run()
    assert (run.values, run.steps, run.halted, run.agrees) == ({"a": 0}, 9, True, True)
    assert [line for line, _ in run.trace] == [3, 4] * 4 + [3]
    assert not program.run(steps=4).halted
    wrong = [State((7, 1, 0), state.counter) for state in program.interpreted()]
    monkeypatch.setattr(SubleqProgram, "looped", lambda self, steps: wrong)
    assert not program.run().agrees
    assert program.run().error == 7.0


def test_fleq_computes_with_matrices() -> None:
    A, B = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.0, 1.0], [5.0, -2.0]])
    text = "A = 1 2; 3 4\nB = 0 1; 5 -2\nC = 0\nD = 0\nE = 0\n"
    run = read_fleq(text + "C = T A\nD = MUL A B\nE = SUB A B\nhalt\nshow C D E").run()
    assert run.halted
    assert run.agrees
    for name, expected in (("C", A.T), ("D", A.T @ B), ("E", B - A)):
        assert np.abs(np.array(run.values[name]) - expected).max() < 1e-6


def test_fleq_jumps_while_a_flag_is_at_most_0() -> None:
    text = (
        "n = -3\nminus = -1\nx = 0\nagain: x = SUB minus x\nn = SUB minus n if n <= 0 goto again\nhalt"
    )
    run = read_fleq(text).run()
    assert np.allclose(run.values["x"], [[4.0]], atol=1e-6)
    assert run.steps == 8
    changed = read_fleq(text).with_values({"n": [[0]]}).run()
    assert np.allclose(changed.values["x"], [[1.0]], atol=1e-6)


WRONG_SUBLEQ = [
    ("a = 1\na b\nhalt", 2, 3, "b is not defined; try a line such as b = 0"),
    ("a = 1\na a done\nhalt", 2, 5, "expected a label of the program (halt), got done"),
    ("a = 1\na = 2\nhalt", 2, 1, "a is defined twice"),
    ("a = 300\nhalt", 1, 5, "expected an integer from -128 to 127, got 300"),
    ("bits 17\nhalt", 1, 6, "expected an integer from 2 to 16, got 17"),
    ("a = 1\na a", 2, 1, "expected a jump or halt as the last command"),
    ("a = 1\n# note\nhalt", 2, 1, "expected a name, a number or a mark, got '#'; comments"),
    ("a = 1\nx: x: halt", 2, 4, "the label x is defined twice"),
    ("memory 1 2\n0 2 0\nhalt", 2, 3, "expected an integer from 0 to 1, got 2"),
    ("a = 1\ncopy a a\nhalt", 2, 8, "copy: expected two different words, got the same"),
    ("a = 1\nadd a\nhalt", 2, 5, "add: expected 2 operands, got 1"),
    ("a = 1\na a a a\nhalt", 2, 7, "expected a command (a b or a b target), name = integer"),
    ("a = 1\njump end\nend:", 2, 6, "expected a command after the label end, got none; try halt"),
    ("a = 1\n", 2, 1, "expected a command, got none; try halt"),
    ("a = 1\nshow c\nhalt", 2, 6, "show: c is not defined"),
    ("a = 1\nzero = 3\nadd a a\nhalt", 2, 1, "expected zero to be 0"),
]  # fmt: skip
WRONG_FLEQ = [
    ("A = 1 2; 3\nhalt", 1, 5, "expected as many rows as columns, got rows of 2, 1 numbers"),
    ("A = 1 2; 3 4\norder 3\nhalt", 1, 1, "expected a number or a 3 × 3 matrix, got 2 × 2"),
    ("A = 1\nA = MUL A", 2, 9, "MUL: expected 2 operands, got 1"),
    ("A = 1\nA = T A", 2, 1, "expected jump or halt as the last instruction"),
    ("A = 1\nzero = T A\nhalt", 2, 1, "expected a register other than zero, which is always 0"),
    ("A = 1\nA = T A if A < 0 goto x\nhalt", 2, 14, "expected a name, a number or a mark, got '<'"),
    ("A = 1\nA = T A if A goto x\nhalt", 2, 9, "expected if REGISTER <= 0 goto LABEL"),
    ("A = x\nhalt", 1, 5, "expected a number or ; between rows, got x"),
    ("bound 1e9\nhalt", 1, 7, "expected a number above 0, up to 1e5, got 1e9"),
    ("A = 1\nB A\nhalt", 2, 1, "expected name = matrix, name = T a"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "text", "line", "column", "problem"),
    [("SUBLEQ", *case) for case in WRONG_SUBLEQ] + [("FLEQ", *case) for case in WRONG_FLEQ],
)
def test_errors_have_line_and_column(
    kind: str, text: str, line: int, column: int, problem: str
) -> None:
    with pytest.raises(MachineTextError) as raised:
        (read_subleq if kind == "SUBLEQ" else read_fleq)(text)
    assert str(raised.value).startswith(f"{kind}, line {line}, column {column}: {problem}")
    assert (raised.value.line, raised.value.column) == (line, column)


def test_errors_of_a_run_have_their_line() -> None:
    with pytest.raises(MachineTextError, match=r"SUBLEQ, line 3, column 1: .* past its last command"):
        read_subleq("a = -1\nb = 5\na b 0").run()
    with pytest.raises(MachineTextError, match=r"FLEQ, line 2, .* below 1000 .* try a line such"):
        read_fleq("A = 100\nA = MUL A A\nhalt").run()
    assert read_fleq("bound 1e5\nA = 100\nA = MUL A A\nhalt").run().halted
    with pytest.raises(MachineTextError, match=r"FLEQ, line 2, .* an integer as entry"):
        read_fleq("A = 0.5\nA = T A if A <= 0 goto halt\nhalt").run()


def test_values_are_checked() -> None:
    with pytest.raises(InputError, match="a: expected an integer from -128 to 127, got 200; try bits"):
        read_subleq("a = 1\nhalt").with_values({"a": 200})
    with pytest.raises(InputError, match=r"expected a name of the program \(a, zero\), got 'b'"):
        read_subleq("a = 1\nhalt").with_values({"b": 2})
    with pytest.raises(InputError, match="expected a word other than zero, which starts at 0"):
        read_subleq("a = 1\nadd a a\nhalt").with_values({"zero": 2})
    with pytest.raises(InputError, match="A: expected a number or a 2 × 2 matrix, got"):
        read_fleq("A = 1 2; 3 4\nhalt").with_values({"A": [1, 2]})


def test_the_command_line_runs_files(tmp_path: Path) -> None:
    data = json_of("run", EXAMPLES / "multiply.subleq", "--input", '{"a": 3, "b": 2}')
    assert (data["values"], data["halted"], data["agrees"]) == ({"product": 6}, True, True)
    assert (data["layers"], data["heads"]) == (7, [1, 2, 0, 1, 0, 0, 0])
    inverse = json_of("run", EXAMPLES / "inverse.fleq")
    assert np.allclose(inverse["values"]["X"], [[0.6, -0.2], [-0.2, 0.4]], atol=1e-6)
    path = tmp_path / "wrong.subleq"
    path.write_text("a = 1\na b\nhalt\n")
    assert "wrong.subleq: SUBLEQ, line 2, column 3: b is not defined" in refused("run", path)
    for options in (["--plan"], ["--executor", "fast"], ["--input", "abc"], ["--name", "x"]):
        refused("run", EXAMPLES / "multiply.subleq", *options)
    message = refused("run", EXAMPLES / "multiply.subleq", "--alphabet", "ab")
    assert "--alphabet: expected a .crasp, .cr, .brasp, .ltl, .fo or .counter program" in message
    message = refused("run", EXAMPLES / "anbn.counter", "--input", "ab", "--steps", "5")
    assert "--steps: expected a .subleq or .fleq program" in message
    assert "try locum run" in refused(
        "compile", EXAMPLES / "multiply.subleq", "--length", "4", "--vocab", "a"
    )
    shown = command_line("run", EXAMPLES / "multiply.subleq", "--steps", "1", "--explain").stdout
    assert shown.splitlines()[0] == "step 1, line 8: product = 0"
    assert "Stopped without halting after 1 step of 7 layers." in shown


def test_a_difference_gives_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        SubleqProgram, "looped", lambda self, steps: [State((0,) * len(self.memory), 0)] * steps
    )
    assert command_line("run", EXAMPLES / "multiply.subleq").returncode == 1
