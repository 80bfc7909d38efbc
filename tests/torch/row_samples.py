"""A small sample for each row of the table: a function and tensors whose graph has the row's overload.

``row_samples.txt`` names samples of PyTorch's ``op_db``: overload, entry, dtype, number of the sample,
and ``gradients`` if the overload is in the backward graph. ``FUNCTIONS`` has functions for overloads
that no entry reaches. ``python -m tests.torch.row_samples`` chooses samples for rows that have none.
"""

from __future__ import annotations

import itertools
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache, wraps
from pathlib import Path
from typing import Any

import torch
import transformers.integrations.moe  # noqa: F401  (registers operations)
from torch.utils import _pytree as pytree

from locum.constructions.tensor import Tensor
from locum.errors import LocumError
from locum.rasp.python import where
from locum.torch.numbers import rounded
from locum.torch.table import TABLE, Row
from tests.torch.captured_function import CapturedFunction, CaptureError, TooLargeError, run
from tests.torch.opinfo import DTYPES, EXECUTORS, LARGEST, OPS, difference, find_samples, lay_out

FILE = Path(__file__).with_name("row_samples.txt")
ROWS: dict[str, Row] = {row.name: row for row in TABLE.values()}
_aten = torch.ops.aten


@dataclass(frozen=True)
class RowSample:
    """A function whose graph has an overload."""

    function: Any
    tensors: list[torch.Tensor]
    gradients: bool = False
    #: Gives the expected results, for overloads that PyTorch has for GPUs only.
    reference: Any = None


X = torch.tensor([[1.5, -2.0, 3.0], [4.0, 5.25, -6.0]])
N = torch.tensor([5, -3, 7])
HALF = X.bfloat16()
IMAGE = torch.linspace(-1, 2, 12).reshape(2, 3, 2)
ONES = torch.ones(3)
QUERY, KEY, VALUE = (torch.linspace(-1, x, 64).sin().reshape(1, 2, 4, 8) for x in (1, 2, 3))
BIAS = torch.linspace(-1, 1, 32).reshape(1, 2, 4, 4)
SEED = torch.zeros((), dtype=torch.int64)


def _multiply(x: torch.Tensor, y: torch.Tensor, c: Any = 0.0) -> Any:
    return x.float() @ y.float() + c


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: Any = 0.0) -> Any:
    """Return attention and log Σ exp of its scores by their definition."""
    scores = q @ k.mT / math.sqrt(q.shape[-1]) + bias
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


def attend_backward(grad: torch.Tensor, *inputs: torch.Tensor) -> Any:
    """Return the gradients of the inputs of attention."""
    return torch.func.vjp(lambda *x: attend(*x)[0], *inputs)[1](grad)


ATTENTION = [QUERY, KEY, VALUE, BIAS]
#: Gradient of the result, inputs, result and log Σ exp, without and with a bias.
PLAIN = [torch.linspace(-1, 1, 64).reshape(1, 2, 4, 8), *ATTENTION[:3], *attend(*ATTENTION[:3])]
BIASED = [*PLAIN[:1], *ATTENTION, *attend(*ATTENTION)]
#: Samples of overloads that no entry of op_db reaches.
FUNCTIONS: dict[str, RowSample] = {
    f"aten.{name}": sample
    for name, sample in {
        "__lshift__.Scalar": RowSample(lambda x: x << 2, [N]),
        "__lshift__.Tensor": RowSample(lambda x: x << x, [N]),
        "__rshift__.Scalar": RowSample(lambda x: x >> 1, [N]),
        "__rshift__.Tensor": RowSample(lambda x: x >> x, [N]),
        "bitwise_left_shift.Tensor_Scalar": RowSample(lambda x: torch.bitwise_left_shift(x, 2), [N]),
        "bitwise_right_shift.Tensor_Scalar": RowSample(lambda x: torch.bitwise_right_shift(x, 1), [N]),
        "bitwise_and.Scalar": RowSample(lambda x: x & 3, [N]),
        "bitwise_or.Scalar": RowSample(lambda x: x | 3, [N]),
        "bitwise_xor.Scalar": RowSample(lambda x: x ^ 3, [N]),
        "copysign.Scalar": RowSample(lambda x: torch.copysign(x, -2.0), [X]),
        "div.Scalar_mode": RowSample(
            lambda x: _aten.div.Scalar_mode(x, 2.0, rounding_mode="floor"), [X]
        ),
        "fmod.Scalar": RowSample(lambda x: torch.fmod(x, 2.0), [X]),
        "remainder.Scalar_Tensor": RowSample(lambda x: 7.0 % x, [X]),
        "detach_copy.default": RowSample(torch.detach_copy, [X]),
        "select_copy.int": RowSample(lambda x: torch.select_copy(x, 0, 1), [X]),
        "slice_copy.Tensor": RowSample(lambda x: torch.slice_copy(x, 1, 1, 3), [X]),
        "split_copy.Tensor": RowSample(lambda x: torch.split_copy(x, 2, 1), [X]),
        "squeeze_copy.dims": RowSample(lambda x: torch.squeeze_copy(x[None], (0,)), [X]),
        "_reshape_alias.default": RowSample(
            lambda x: _aten._reshape_alias(x + 1, [3, 2], [2, 1]).clone(), [X]
        ),
        "_index_put_impl.default": RowSample(
            lambda x, i: _aten._index_put_impl(x, [i], x[:2], True), [X, torch.tensor([1, 0])]
        ),
        "_batch_norm_no_update.default": RowSample(
            lambda x, w: _aten._batch_norm_no_update(x, w, w, w, w, 0.1, 1e-5)[:3], [IMAGE, ONES]
        ),
        "_native_batch_norm_legit.no_stats": RowSample(
            lambda x: torch.nn.functional.batch_norm(x, None, None, training=True), [IMAGE]
        ),
        "mm.dtype": RowSample(
            lambda x, y: _aten.mm(x, y, torch.float32), [HALF, HALF.T], reference=_multiply
        ),
        "bmm.dtype": RowSample(
            lambda x, y: _aten.bmm(x, y, torch.float32), [HALF[None], HALF.T[None]], reference=_multiply
        ),
        "addmm.dtype": RowSample(
            lambda x, y, c: _aten.addmm(c, x, y, torch.float32),
            [HALF, HALF.T, X[:, :2]],
            reference=_multiply,
        ),
        "_scaled_dot_product_flash_attention_for_cpu.default": RowSample(
            _aten._scaled_dot_product_flash_attention_for_cpu, ATTENTION[:3]
        ),
        "_scaled_dot_product_flash_attention_for_cpu_backward.default": RowSample(
            lambda *x: _aten._scaled_dot_product_flash_attention_for_cpu_backward(*x, 0.0, False), PLAIN
        ),
        "_scaled_dot_product_flash_attention.default": RowSample(
            lambda *x: _aten._scaled_dot_product_flash_attention(*x)[:2],
            ATTENTION[:3],
            reference=attend,
        ),
        "_scaled_dot_product_flash_attention_backward.default": RowSample(
            lambda *x: _aten._scaled_dot_product_flash_attention_backward(
                *x[:6], None, None, 4, 4, 0.0, False, x[6], x[6]
            ),
            [*PLAIN, SEED],
            reference=lambda *x: attend_backward(*x[:4]),
        ),
        "_scaled_dot_product_efficient_attention.default": RowSample(
            lambda *x: _aten._scaled_dot_product_efficient_attention(*x, False)[0],
            ATTENTION,
            reference=lambda *x: attend(*x)[0],
        ),
        "_scaled_dot_product_efficient_attention_backward.default": RowSample(
            lambda g, q, k, v, b, o, l, s: _aten._scaled_dot_product_efficient_attention_backward(
                g, q, k, v, b, o, l, s, s, 0.0, [True] * 4
            ),
            [*BIASED, SEED],
            reference=lambda *x: attend_backward(*x[:5]),
        ),
        "_scaled_dot_product_cudnn_attention.default": RowSample(
            lambda *x: _aten._scaled_dot_product_cudnn_attention(*x, True)[0],
            ATTENTION,
            reference=lambda *x: attend(*x)[0],
        ),
        "_scaled_dot_product_cudnn_attention_backward.default": RowSample(
            lambda g, q, k, v, b, o, l, s: _aten._scaled_dot_product_cudnn_attention_backward(
                g, q, k, v, o, l[..., None], s, s, b, None, None, 4, 4, 0.0, False
            ),
            [*BIASED, SEED],
            reference=lambda *x: attend_backward(*x[:5])[:3],
        ),
    }.items()
}
ENDS = torch.tensor([1, 1, 2], dtype=torch.int32)
FUNCTIONS["aten._grouped_mm.default"] = RowSample(
    lambda x, y, ends: _aten._grouped_mm(x, y, ends),
    [HALF.repeat(1, 3)[:, :8].contiguous(), torch.linspace(-1, 1, 192).view(3, 8, 8).bfloat16(), ENDS],
)
FUNCTIONS["transformers.grouped_mm_fallback.default"] = RowSample(
    lambda x, y, ends: torch.ops.transformers.grouped_mm_fallback(x, y, ends),
    [X, torch.linspace(-1, 1, 18).reshape(3, 3, 2), ENDS],
)
FUNCTIONS["transformers.grouped_mm_fallback_backward.default"] = RowSample(
    lambda x, y, ends: torch.ops.transformers.grouped_mm_fallback_backward(x, y, ends, x[:, :2]),
    [X, torch.linspace(-1, 1, 18).reshape(3, 3, 2), ENDS],
)
FUNCTIONS["prims.convert_element_type.default"] = RowSample(
    lambda x: torch.ops.prims.convert_element_type(x, torch.float64), [X]
)


@cache
def read_file() -> dict[str, list[str]]:
    """Return the words after each overload of the file."""
    lines = FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []
    return {overload: words for overload, *words in map(str.split, lines)}


def find_row_sample(overload: str) -> RowSample:
    """Return the sample of a row."""
    if overload in FUNCTIONS:
        return FUNCTIONS[overload]
    return read_sample(overload, read_file()[overload])


def read_sample(overload: str, words: list[str]) -> RowSample:
    """Return a sample of op_db. A view is copied, because a view of an input is no result of U."""
    name, dtype, number, *options = words
    gradients = bool(options)
    *_, sample = find_samples(name, dtype, gradients=gradients, limit=int(number) + 1)
    if ROWS[overload].kind != "views":
        return RowSample(sample.function, sample.tensors, gradients)
    return RowSample(copy_results(sample.function), sample.tensors, gradients)


def copy_results(function: Any) -> Any:
    """Return a function that copies the results of another."""
    return lambda *given: pytree.tree_map_only(torch.Tensor, torch.clone, function(*given))


def change(tensor: Tensor) -> Tensor:
    """Change all entries of a tensor of the program: 2 x + 1, or the negation."""
    x = tensor.sop
    changed = where(x, False, True) if tensor.dtype == "bool" else rounded(2 * x + 1, tensor.dtype)
    return replace(tensor, sop=changed)


@contextmanager
def change_construction(row: Row) -> Iterator[None]:
    """Change the results of a construction within the block."""

    @wraps(row.construct)
    def construct(*arguments: Any, **options: Any) -> Any:
        return pytree.tree_map_only(Tensor, change, row.construct(*arguments, **options))

    TABLE[row.overload] = replace(row, construct=construct)
    try:
        yield
    finally:
        TABLE[row.overload] = row


def check_sensitivity(overload: str, sample: RowSample) -> str:
    """Return how executors differ, if a construction is left as it is or changed; "" if they do not.

    With the construction in the table all executors give eager's results. With another construction all
    give the same other results.
    """
    row, captured = ROWS[overload], CapturedFunction(sample.function, "forbidden")
    captured.longest = LARGEST["heads"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function = sample.reference or sample.function
        expected = run(function, sample.tensors, gradients=sample.gradients)
        plain = _run_executors(captured, sample)
        if sample.reference:  # it has other strides
            expected = [lay_out(x, y) for x, y in zip(expected, plain["fast"], strict=True)]
        if overload not in captured.overloads:
            return "the overload is not in the graph"
        captured.programs.clear()
        with change_construction(row):
            changed = _run_executors(captured, sample)
    for executor in EXECUTORS:
        if "empty" not in overload and (problem := difference(expected, plain[executor])):
            return f"{executor} differs from eager execution: {problem}"
        if problem := difference(changed["fast"], changed[executor]):
            return f"{executor} differs from fast after the change: {problem}"
        if not difference(plain[executor], changed[executor]):
            return f"{executor} gives the same after the change"
    return ""


def _run_executors(captured: CapturedFunction, sample: RowSample) -> dict[str, list[Any]]:
    found = {}
    for executor in EXECUTORS:
        captured.executor = executor
        found[executor] = run(captured, sample.tensors, gradients=sample.gradients)
    return found


def choose_samples(missing: set[str]) -> Iterator[tuple[str, list[str]]]:
    """Iterate over rows and the first small sample of op_db that shows a change of the row."""
    for dtype, gradients, name in itertools.product(DTYPES, (False, True), OPS):
        for sample in find_samples(name, dtype, gradients=gradients, limit=6):
            if not missing:
                return
            if sample.size > LARGEST["heads"]:
                continue
            captured = CapturedFunction(sample.function)
            captured.executor = "eager"
            with suppress(Exception):
                run(captured, sample.tensors, gradients=gradients)
            nodes = itertools.chain(*(graph.graph.nodes for graph in captured.graphs))
            for overload in sorted(missing & {str(node.target) for node in nodes}):
                words = [name, dtype, str(sample.number), *["gradients"] * gradients]
                try:
                    problem = check_sensitivity(overload, read_sample(overload, words))
                except (LocumError, CaptureError, TooLargeError) as error:
                    problem = f"{type(error).__name__}: {error}"
                print(overload, *words, problem, file=sys.stderr, flush=True)
                if not problem:
                    missing = missing - {overload}
                    yield overload, words


def main() -> None:
    """Add samples to the file; print what was tried, and the rows that have no sample."""
    known = {name: words for name, words in read_file().items() if name in ROWS}
    for overload, words in choose_samples(ROWS.keys() - known.keys() - FUNCTIONS.keys()):
        known[overload] = words
        lines = [" ".join([name, *known[name]]) for name in ROWS if name in known]
        FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in sorted(ROWS.keys() - known.keys() - FUNCTIONS.keys()):
        print(f"{name}: no sample", file=sys.stderr)


if __name__ == "__main__":
    main()
