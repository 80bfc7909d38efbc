"""Models of the transformers library on U: results, gradients, training, checkpointing, autocast.

``make test`` runs all models in the fast executor and a sample in the others. ``make fuzz`` runs all
models in all executors.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings

import locum

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")

from torch import nn  # noqa: E402
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from tests.torch.comparing import compile_on_u  # noqa: E402
from tests.torch.tiny_models import make_inputs, make_model  # noqa: E402

EVERYTHING = settings().max_examples >= 20_000
MODELS = ("bert", "gpt2", "llama", "vit", "t5")
CASES = [(kind, "fast", host) for kind in MODELS for host in ("allowed", "forbidden")]
OTHERS = [
    (kind, executor, host)
    for kind in MODELS
    for executor in ("dense", "heads")
    for host in ("allowed", "forbidden")
]
SAMPLED = [("vit", "dense", "allowed"), ("gpt2", "heads", "forbidden")]
#: Float32 inside of a float64 model: RMSNorm of Llama and T5, and the rotary table of Llama.
TOLERANCES = {"llama": 2e-6, "t5": 2e-6}


def weigh(result: Any) -> Any:
    """Return a number that depends on all entries of all results."""
    parts = [part for part in result.values() if isinstance(part, torch.Tensor)]
    return sum(
        (part.double() * torch.linspace(-1, 2, part.numel()).view_as(part)).sum() for part in parts
    )


def gradients(function: Callable[..., Any], model: Any, loss: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the results of a model and the gradients of its parameters; None where it has none."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(3)
    result = function()
    loss(result).backward()
    found = {name: part.detach() for name, part in result.items() if isinstance(part, torch.Tensor)}
    return found | {name: parameter.grad for name, parameter in model.named_parameters()}


def check_model(kind: str, executor: str, host: str, training: bool = False, **sizes: int) -> None:
    """Compare results and all gradients with eager execution, and the share of U with 100 %."""
    model = make_model(kind).double().train(training)
    inputs = make_inputs(kind, dtype=torch.float64, **sizes)

    expected = gradients(lambda: model(**inputs), model, weigh)
    compiled = compile_on_u(model, executor=executor, host=host)
    found = gradients(lambda: compiled(**inputs), model, weigh)
    limit = TOLERANCES.get(kind, 1e-12)
    torch.testing.assert_close(found, expected, rtol=limit, atol=limit)
    report = locum.torch.report(compiled)
    assert report.share == 1
    assert report.runs_by_kind == {"inference": 0, "forward": 1, "backward": 1}
    if host == "forbidden":
        on_host = {name for module in report.on_host.values() for name in module}
        assert on_host <= {"aten.native_dropout.default"}


@pytest.mark.parametrize(("kind", "executor", "host"), CASES)
def test_results_and_gradients_equal_eager(kind: str, executor: str, host: str) -> None:
    check_model(kind, executor, host)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "executor", "host"), OTHERS if EVERYTHING else SAMPLED)
def test_corpus_of_models_in_other_executors(kind: str, executor: str, host: str) -> None:
    check_model(kind, executor, host)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*MODELS, "bart"] if EVERYTHING else ["gpt2"])
def test_corpus_of_models_with_dropout(kind: str) -> None:
    """No size divides another one here."""
    check_model(kind, "fast", "allowed", training=True, batch=2, length=5)


@pytest.mark.slow
def test_parameters_without_influence_have_the_gradients_of_aot_eager() -> None:
    """AOT autograd returns zeros where eager execution returns None."""
    model, inputs = make_model("bert").double(), make_inputs("bert")
    found = []
    for function in (torch.compile(model, backend="aot_eager"), compile_on_u(model)):
        torch._dynamo.reset()
        of_states = gradients(
            lambda function=function: function(**inputs), model, lambda y: y.last_hidden_state.sum()
        )
        found.append(of_states)
    torch.testing.assert_close(found[1], found[0], rtol=1e-12, atol=1e-12)
    assert not found[1]["pooler.dense.weight"].any()


# Training ---------------------------------------------------------------------------------------------


def train(
    kind: str, model: Any, function: Callable[..., Any], steps: int, rate: float
) -> dict[str, Any]:
    """Run steps of AdamW with the random numbers of one seed; return the weights."""
    torch.manual_seed(7)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    generator = torch.Generator().manual_seed(5)
    for _ in range(steps):
        ids = torch.randint(3, 12, (2, 4), generator=generator)
        optimiser.zero_grad()
        weigh(function(**make_inputs(kind) | {"input_ids": ids})).square().backward()
        optimiser.step()
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def check_training(
    kind: str,
    steps: int,
    rate: float,
    around: Callable[[Any], Callable[..., Any]] = lambda model: model,
    prepare: Callable[[Any], None] = lambda model: None,
    limit: float = 1e-9,
) -> Any:
    """Train a model eagerly and on U; compare the weights. Return the report of U."""
    model = make_model(kind).double().train()
    prepare(model)
    other = copy.deepcopy(model)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    expected = train(kind, model, around(model), steps, rate)
    compiled = compile_on_u(around(other))
    found = train(kind, other, compiled, steps, rate)
    torch.testing.assert_close(found, expected, rtol=0, atol=limit)
    assert max((expected[name] - before[name]).abs().max() for name in before) > steps * rate / 2
    report = locum.torch.report(compiled)
    assert report.runs_by_kind == {"inference": 0, "forward": steps, "backward": steps}
    assert report.share == 1
    return report


#: The library normalises Llama's states in float32, where the order of a sum changes the result.
LLAMA = 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_100_steps_of_adamw_with_dropout_equal_eager(kind: str) -> None:
    report = check_training(kind, 100, 1e-3, limit=LLAMA if kind == "llama" else 1e-9)
    operations = {name for module in report.on_host.values() for name in module}
    assert "aten.native_dropout.default" in operations


@pytest.mark.slow
def test_llama_with_norms_in_float64_equals_eager(monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    def normalise(self: Any, states: Any) -> Any:
        mean = states.pow(2).mean(-1, keepdim=True)
        return self.weight * (states * torch.rsqrt(mean + self.variance_epsilon))

    monkeypatch.setattr(LlamaRMSNorm, "forward", normalise)
    check_training("llama", 20, 1e-3, limit=1e-12)


def enable_checkpointing(model: Any) -> None:
    """Call the method of the library, under its name of transformers 5 or of earlier releases."""
    enable = getattr(model, "activation_checkpointing_enable", None)
    (enable or model.gradient_checkpointing_enable)()


def test_checkpointing_of_the_library() -> None:
    report = check_training("llama", 4, 1e-3, prepare=enable_checkpointing, limit=LLAMA)
    assert any("run_with_rng_state" in module for module in report.on_host.values())


def test_checkpointing_without_dropout() -> None:
    """Attention without dropout is wrapped with the state of the generator, and draws nothing."""

    def prepare(model: Any) -> None:
        enable_checkpointing(model)
        model.config.attention_dropout = 0.0
        for module in model.modules():
            if hasattr(module, "attention_dropout"):
                module.attention_dropout = 0.0

    check_training("llama", 2, 1e-3, prepare=prepare)


@pytest.mark.slow
def test_checkpointing_of_a_model() -> None:
    def around(model: Any) -> Callable[..., Any]:
        return lambda **inputs: checkpoint(model, use_reentrant=False, **inputs)

    report = check_training("bert", 4, 1e-3, around)
    assert any("run_with_rng_state" in module for module in report.on_host.values())


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS if EVERYTHING else ["bert", "llama"])
def test_corpus_of_models_under_autocast(kind: str) -> None:
    """Results and gradients have eager's types, and errors of eager's size."""
    model = make_model(kind)

    def run(module: Any, function: Callable[..., Any], dtype: Any, enabled: bool) -> dict[str, Any]:
        inputs = make_inputs(kind, batch=2, length=4, dtype=dtype)

        def call() -> Any:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                return function(**inputs)

        return gradients(call, module, weigh)

    expected = run(model, model, torch.float32, enabled=True)
    found = run(model, compile_on_u(model), torch.float32, enabled=True)
    exact_model = copy.deepcopy(model).double()
    exact = run(exact_model, exact_model, torch.float64, enabled=False)
    assert {n: t.dtype for n, t in found.items()} == {n: t.dtype for n, t in expected.items()}
    errors = []
    for each in (found, expected):
        parts = [(each[name].double() - exact[name]).flatten() for name in exact]
        errors.append(torch.cat(parts).norm())
    assert 0 < errors[0] < 1.1 * errors[1]


MODULES: dict[str, tuple[Any, tuple[int, ...]]] = {
    "layer norm": (nn.LayerNorm(4), (2, 3, 4)),
    "mlp": (nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)), (2, 3)),
    "convolution": (nn.Conv2d(2, 3, 2, stride=2, padding=1), (1, 2, 3, 3)),
    "attention": (nn.MultiheadAttention(4, 2, batch_first=True), (1, 3, 4)),
}


@pytest.mark.parametrize("name", MODULES)
def test_gradcheck_of_modules(name: str) -> None:
    module, shape = MODULES[name]
    module = copy.deepcopy(module).double()
    inputs = (torch.randn(shape, dtype=torch.float64),) * (3 if name == "attention" else 1)
    inputs = tuple(part.clone().requires_grad_() for part in inputs)
    names = [key for key, _ in module.named_parameters()]

    def function(*values: Any) -> Any:
        parameters = dict(zip(names, values[len(inputs) :], strict=True))
        result = torch.func.functional_call(module, parameters, values[: len(inputs)])
        return result[0] if isinstance(result, tuple) else result

    compiled = compile_on_u(function)
    given = (*inputs, *(parameter.detach().requires_grad_() for parameter in module.parameters()))
    assert torch.autograd.gradcheck(compiled, given, fast_mode=not EVERYTHING)
    assert locum.torch.report(compiled).runs_by_kind["backward"] > 0


def test_gradcheck_of_attention_with_a_mask() -> None:
    mask = torch.tensor([[True, False, False], [True, True, False]])
    compiled = compile_on_u(lambda q, k, v: scaled_dot_product_attention(q, k, v, attn_mask=mask))
    sizes = [(1, 2, 2, 2), (1, 2, 3, 2), (1, 2, 3, 2)]
    given = [torch.randn(size, dtype=torch.float64, requires_grad=True) for size in sizes]
    assert torch.autograd.gradcheck(compiled, given)
    assert locum.torch.report(compiled).share == 1
