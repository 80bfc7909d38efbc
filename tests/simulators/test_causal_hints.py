"""``is_causal`` beside a mask of a stand-in, and masks in another type than the module's."""

from __future__ import annotations

from typing import Any

import pytest

import locum
from locum.errors import InputError
from tests.simulators.test_stand_ins import KINDS, OPTIONS, B, N, arguments, first, module, numbers

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, of its fast paths

later = torch.ones(N, N, dtype=torch.bool).triu(1)
CAUSAL = nn.Transformer.generate_square_subsequent_mask(N, dtype=torch.float64)
OTHERS = {
    "nothing hidden": torch.zeros(N, N, dtype=torch.float64),
    "numbers": numbers(N, N),
    "earlier keys": later.T,
    "all but one": CAUSAL.clone().index_put(
        (torch.tensor(0), torch.tensor(1)), torch.tensor(0.0).double()
    ),
    "of one head": torch.stack([CAUSAL] * (2 * B - 1) + [torch.zeros_like(CAUSAL)]),
}


def hinted(kind: str, mask: Any) -> dict[str, Any]:
    more = {"need_weights": False} if kind == "attention" else {}
    return {
        OPTIONS[kind]["mask"]: mask,
        "tgt_is_causal" if kind == "decoder" else "is_causal": True,
    } | more


@pytest.mark.parametrize("kind", KINDS)
def test_a_causal_mask_may_be_called_causal(kind: str) -> None:
    T = module(kind)
    by_U = locum.stand_in(T)
    for mask in (later, CAUSAL, torch.stack([CAUSAL] * (2 * B))):
        inputs = hinted(kind, mask)
        off = first(by_U(*arguments(kind), **inputs)) - first(T(*arguments(kind), **inputs))
        assert off.abs().max() < 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", OTHERS)
def test_another_mask_may_not(kind: str, other: str) -> None:
    """Torch's own modules leave such a mask out, or not: both cannot be right."""
    by_U = locum.stand_in(module(kind))
    with pytest.raises(InputError, match="is_causal says that the mask is the causal one"):
        by_U(*arguments(kind), **hinted(kind, OTHERS[other]))
    inputs = hinted(kind, OTHERS[other])
    hint = next(name for name in inputs if name.endswith("is_causal"))
    assert torch.isfinite(first(by_U(*arguments(kind), **inputs | {hint: False}))).all()


def test_masks_of_a_memory() -> None:
    T = module("decoder")
    by_U, (X, M) = locum.stand_in(T), arguments("decoder")
    mask = torch.ones(N, M.shape[1], dtype=torch.bool).triu(1)
    inputs = {"memory_mask": mask, "memory_is_causal": True}
    assert (by_U(X, M, **inputs) - T(X, M, **inputs)).abs().max() < 1e-12
    with pytest.raises(InputError, match="is_causal says"):
        by_U(X, M, memory_mask=~mask, memory_is_causal=True)
    with pytest.raises(InputError, match="expected a mask, got none"):
        by_U(X, M, memory_is_causal=True)


def test_while_torch_traces_another_mask_gives_nan() -> None:
    """There are no numbers to look at then: nothing is refused, and nothing wrong is given."""
    kind = "attention"
    by_U, inputs = locum.stand_in(module(kind)), arguments(kind)
    expected = first(by_U(*inputs, **hinted(kind, CAUSAL))).detach()
    compiled = torch.compile(by_U, fullgraph=True, backend="aot_eager")
    exported = torch.export.export(by_U, inputs, hinted(kind, CAUSAL)).module()

    def mapped(*rows: Any, **masks: Any) -> Any:
        name = OPTIONS[kind]["mask"]
        both = torch.stack([CAUSAL, masks.pop(name)])
        return torch.vmap(lambda mask: first(by_U(*rows, **masks, **{name: mask})))(both)[1]

    for run in (compiled, exported, mapped):
        assert (first(run(*inputs, **hinted(kind, CAUSAL))) - expected).abs().max() < 1e-12
        assert first(run(*inputs, **hinted(kind, OTHERS["numbers"]))).isnan().all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["mask", "padding"])
def test_masks_of_another_type_are_refused(kind: str, name: str) -> None:
    by_U = locum.stand_in(module(kind))
    inputs = {OPTIONS[kind][name]: numbers(*((N, N) if name == "mask" else (B, N))).float()}
    with pytest.raises(
        InputError, match=rf"the {name} of booleans, or in torch.float64.*torch.float32"
    ):
        by_U(*arguments(kind), **inputs)


def test_half_modules_take_masks_of_single_precision() -> None:
    """As torch's own do; it is what ``generate_square_subsequent_mask`` makes."""
    T = module("layer").bfloat16().eval()
    X, mask = arguments("layer")[0].bfloat16(), numbers(N, N).float()
    assert (locum.stand_in(T)(X, mask) - T(X, mask)).abs().max() < 0.05
