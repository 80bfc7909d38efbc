"""torch's own layers over all their options, as T's of one U: double precision, valid positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import locum
from locum.errors import InputError
from locum.simulators.models import FORMS
from tests.simulators.random_modules import Chance

torch: Any = pytest.importorskip("torch")


@dataclass(frozen=True)
class Options:
    """What a torch layer may be, and how it is called."""

    heads: int
    width: int
    hidden: int
    norm_first: bool
    bias: bool
    activation: str
    batch_first: bool
    batch: int
    n: int
    m: int
    mask: str
    padded: bool
    form: str
    seed: int

    @property
    def d(self) -> int:
        return self.heads * self.width

    def layer(self, kind: Any) -> Any:
        made = kind(
            self.d, self.heads, self.hidden, dropout=0.0, activation=self.activation, bias=self.bias,
            batch_first=self.batch_first, norm_first=self.norm_first, dtype=torch.float64,
        )  # fmt: skip
        return randomised(made, self.seed)

    def inputs(self, rows: int, columns: int, seed: int) -> Any:
        """A batch in the module's order of axes; without one, a matrix."""
        array = torch.from_numpy(Chance(self.seed + seed)(max(self.batch, 1), rows, columns))
        if not self.batch:
            return array[0]
        return array if self.batch_first else array.swapaxes(0, 1).contiguous()

    def padding(self, rows: int) -> Any:
        """Which positions count, [batch, position] or [position]; the first always does."""
        if not self.padded:
            return None
        kept = np.random.default_rng(self.seed).random((max(self.batch, 1), rows)) < 0.6
        kept[:, 0] = True
        return kept if self.batch else kept[0]

    def seen(self, rows: int, columns: int) -> Any:
        """The mask as Locum says it."""
        if self.mask == "causal":
            return "causal"
        if self.mask == "none":
            return None
        kept = np.random.default_rng(self.seed + 1).random((rows, columns)) < 0.6
        kept[:, 0] = True
        return kept.astype(float)

    def hidden_from(self, seen: Any, rows: int) -> Any:
        """The same as torch says it: True where a key is not seen."""
        if seen is None:
            return None
        kept = np.tri(rows) if isinstance(seen, str) else seen
        return torch.from_numpy(kept == 0)

    def error(self, actual: Any, expected: Any, padding: Any) -> float:
        """The greatest difference at positions that count."""
        difference = (actual - expected).abs()
        if self.batch and not self.batch_first:
            difference = difference.swapaxes(0, 1)
        if padding is not None:
            difference = difference[torch.from_numpy(padding)]
        return float(difference.max())


OPTIONS = st.builds(
    Options,
    heads=st.integers(1, 3),
    width=st.integers(1, 3),
    hidden=st.integers(1, 5),
    norm_first=st.booleans(),
    bias=st.booleans(),
    activation=st.sampled_from(["relu", "gelu"]),
    batch_first=st.booleans(),
    batch=st.integers(0, 2),
    n=st.integers(1, 4),
    m=st.integers(1, 4),
    mask=st.sampled_from(["none", "causal", "matrix"]),
    padded=st.booleans(),
    form=st.sampled_from(FORMS),
    seed=st.integers(0, 1000),
)


def randomised(module: Any, seed: int) -> Any:
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        with torch.no_grad():
            drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(0.4 * drawn)
    return module


def inverted(padding: Any) -> Any:
    """torch's padding masks are True where a position does not count."""
    return None if padding is None else torch.from_numpy(~padding)


@settings(max_examples=settings().max_examples // 9)
@given(OPTIONS)
def test_random_encoder_layers(options: Options) -> None:
    module, X = options.layer(torch.nn.TransformerEncoderLayer), options.inputs(options.n, options.d, 1)
    seen, padding = options.seen(options.n, options.n), options.padding(options.n)
    expected = module(
        X, src_mask=options.hidden_from(seen, options.n), src_key_padding_mask=inverted(padding)
    ).detach()
    actual = locum.simulate(module, X, mask=seen, attention_mask=padding, form=options.form)
    assert options.error(actual, expected, padding) <= 1e-10


@settings(max_examples=settings().max_examples // 9)
@given(OPTIONS)
def test_random_decoder_layers(options: Options) -> None:
    module, X = options.layer(torch.nn.TransformerDecoderLayer), options.inputs(options.n, options.d, 1)
    M = options.inputs(options.m, options.d, 2)
    seen, padding = options.seen(options.n, options.n), options.padding(options.m)
    expected = module(
        X, M, tgt_mask=options.hidden_from(seen, options.n), memory_key_padding_mask=inverted(padding)
    ).detach()
    actual = locum.simulate(module, X, M, mask=seen, memory_attention_mask=padding, form=options.form)
    assert options.error(actual, expected, None) <= 1e-10


@settings(max_examples=settings().max_examples // 7)
@given(OPTIONS)
def test_random_attentions(options: Options) -> None:
    module = randomised(
        torch.nn.MultiheadAttention(
            options.d, options.heads, bias=options.bias, batch_first=options.batch_first,
            kdim=options.hidden, vdim=options.hidden, dtype=torch.float64,
        ),
        options.seed,
    )  # fmt: skip
    X, M = options.inputs(options.n, options.d, 1), options.inputs(options.m, options.hidden, 2)
    padding = options.padding(options.m)
    seen = None if options.mask == "causal" else options.seen(options.n, options.m)
    expected = module(
        X, M, M, need_weights=False, attn_mask=options.hidden_from(seen, options.n),
        key_padding_mask=inverted(padding),
    )[0].detach()  # fmt: skip
    actual = locum.simulate(
        module, X, M, memory_mask=seen, memory_attention_mask=padding, form=options.form
    )
    assert options.error(actual, expected, None) <= 1e-10


@pytest.mark.parametrize("last", ["norm", "without bias", "none"])
@pytest.mark.parametrize("batch_first", [True, False])
def test_an_encoder_of_several_layers(last: str, batch_first: bool) -> None:
    layer = torch.nn.TransformerEncoderLayer(
        4, 2, 5, dropout=0.0, activation="gelu", batch_first=batch_first, dtype=torch.float64
    )
    norm = None
    if last != "none":
        norm = torch.nn.LayerNorm(4, bias=last == "norm", dtype=torch.float64)
    module = randomised(torch.nn.TransformerEncoder(layer, 3, norm, enable_nested_tensor=False), seed=5)
    X = torch.from_numpy(Chance(1)(2, 3, 4))
    inputs = X if batch_first else X.swapaxes(0, 1)
    padding = np.array([[True, True, True], [True, True, False]])
    expected = module(inputs, src_key_padding_mask=inverted(padding)).detach()
    actual = locum.simulate(module, inputs, attention_mask=padding)
    if not batch_first:
        actual, expected = actual.swapaxes(0, 1), expected.swapaxes(0, 1)
    assert float((actual - expected)[torch.from_numpy(padding)].abs().max()) <= 1e-10


def test_arrays_in_arrays_out_and_a_t_of_ones_own() -> None:
    module = randomised(torch.nn.TransformerEncoderLayer(4, 2, 5, dropout=0.0, dtype=torch.float64), 1)
    X = Chance(2)(3, 4)
    actual = locum.simulate(module, X)
    assert isinstance(actual, np.ndarray)
    expected = module(torch.from_numpy(X)).detach().numpy()
    assert np.abs(actual - expected).max() <= 1e-12
    T = locum.from_torch(module, form="factored")
    assert (
        np.abs(locum.simulate(T, X.tolist(), mask="causal") - T.with_masks("causal")(X)).max() <= 1e-12
    )


@pytest.mark.parametrize("form", FORMS)
def test_left_padding_under_a_causal_mask(form: str) -> None:
    """Padded queries then see nothing: what they give is not used, and must not spoil the rest."""
    module = randomised(torch.nn.TransformerEncoderLayer(4, 2, 5, dropout=0.0, dtype=torch.float64), 3)
    X = torch.from_numpy(Chance(2)(4, 4))
    actual = locum.simulate(module, X, mask="causal", attention_mask=[0, 0, 1, 1], form=form)
    hidden = torch.triu(torch.ones(2, 2, dtype=torch.bool), 1)
    expected = module(X[2:], src_mask=hidden).detach()
    assert float((actual[2:] - expected).abs().max()) <= 1e-10


def encoder_layer(**options: Any) -> Any:
    return torch.nn.TransformerEncoderLayer(4, 2, 5, dtype=torch.float64, **options)


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    (torch.nn.Linear(4, 4), {}, "got torch.nn.modules.linear.Linear"),
    (torch.nn.MultiheadAttention(4, 2, add_zero_attn=True), {}, "add_zero_attn"),
    (torch.nn.MultiheadAttention(4, 2, add_bias_kv=True), {}, "add_bias_kv"),
    (torch.nn.MultiheadAttention(4, 2, kdim=2, vdim=3), {}, "kdim, vdim"),
    (encoder_layer(activation=torch.nn.ELU()), {}, "activation ELU is not simulated"),
    (encoder_layer(activation=torch.nn.GELU("tanh")), {}, "activation_relu_or_gelu"),
    (encoder_layer(), {"attention_mask": [1, 0]}, "the attention mask: expected 3 numbers"),
    (encoder_layer(), {"attention_mask": [0, 0, 0]}, "leaves no key"),
    (encoder_layer(), {"memory_attention_mask": [1]}, "there is none"),
    (encoder_layer(), {"form": "sparse"}, "form: expected one of factored, paper, got 'sparse'"),
    (encoder_layer(), {"layers": 2}, "belongs to checkpoints"),
    (
        torch.nn.TransformerEncoder(encoder_layer(batch_first=True), 1, torch.nn.RMSNorm(4)),
        {},
        "RMSNorm",
    ),
]


def test_gelu_by_tanh_where_torch_has_no_fast_path_for_it() -> None:
    module, X = encoder_layer(activation=torch.nn.GELU("tanh"), dropout=0.0), Chance(2)(3, 4)
    module.activation_relu_or_gelu = 0
    expected = module(torch.from_numpy(X)).detach().numpy()
    assert np.abs(locum.simulate(module, X) - expected).max() <= 1e-12


@pytest.mark.parametrize(("module", "options", "problem"), REFUSED)
def test_what_is_refused(module: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises((InputError, locum.GraphError), match=problem):
        locum.simulate(module, np.zeros((3, 4)), **options)


def test_wrong_inputs_are_refused() -> None:
    with pytest.raises(InputError, match="X: expected 3×4, got 3×5"):
        locum.simulate(encoder_layer(), np.zeros((3, 5)))
    with pytest.raises(InputError, match="two axes, or three"):
        locum.simulate(encoder_layer(), np.zeros(3))
