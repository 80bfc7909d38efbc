"""Decoders write text on U: greedy text is the library's own; sampling, caches, the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import locum
from locum.display.generation_page import generation_page
from locum.errors import GraphError, InputError
from locum.simulators.models.families.running import Model
from locum.simulators.models.families.writing import Writer
from locum.simulators.simulator import Simulator
from tests.simulators.families import CASES, Case, built, gpt2

torch: Any = pytest.importorskip("torch")

#: A case of each kind of decoder: learned and rotary positions, shared keys, windows.
WRITERS = [CASES[family][0] for family in ("gpt2", "opt", "gpt_neox", "qwen2", "mistral")]
GPT2 = Case("GPT2LMHeadModel", gpt2(n_layer=1, n_positions=40))


@pytest.mark.parametrize("case", WRITERS, ids=lambda case: case.kind)
def test_greedy_text_is_the_librarys(case: Case) -> None:
    model, prompt = built(case, torch.float64), torch.tensor([[3, 5, 7]])
    model.generation_config.eos_token_id = model.config.eos_token_id = None
    expected = model.generate(prompt, max_new_tokens=7, do_sample=False)[0, 3:]
    assert locum.generate(model, prompt, 7).ids == expected.tolist()


@pytest.mark.parametrize("cached", [True, False])
def test_a_window_of_one_key_writes_no_text(cached: bool) -> None:
    """The library keeps all keys in its cache then: its text depends on whether it has one."""
    config = CASES["mistral"][0].config | {"sliding_window": 1}
    model = built(Case("MistralForCausalLM", config), torch.float64)
    expected = model(torch.tensor([[3, 5, 7]])).logits
    assert torch.allclose(locum.simulate(model, [[3, 5, 7]]).logits, expected, atol=1e-10)
    model.generation_config.use_cache = cached
    with pytest.raises(InputError, match="expected a sliding_window of 2 or more to write text, got 1"):
        locum.generate(model, [[3, 5, 7]], 7)


@pytest.mark.parametrize("case", WRITERS, ids=lambda case: case.kind)
def test_texts_of_a_padded_batch_are_the_librarys(case: Case) -> None:
    """Each has positions of its own, and ends where the library writes padding for it."""
    model, pad = built(case, torch.float64), 2
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = 4, pad
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    ids = torch.tensor([[3, 5, 7, 9], [4, 6, 8, 3]]).masked_fill(mask == 0, pad)
    inputs = {"input_ids": ids, "attention_mask": mask}
    expected = model.generate(**inputs, max_new_tokens=6, do_sample=False)[:, 4:].tolist()
    result = [one.ids for one in locum.generate(model, inputs, 6)]
    assert [one + [pad] * (len(expected[0]) - len(one)) for one in result] == expected
    assert [one.ids for one in locum.generate(model, [[7, 9], [4, 6, 8, 3]], 6)] == result


@pytest.mark.parametrize("family", ["llama", "t5"])
def test_several_texts_are_one_run_of_u(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many runs as one text costs, and each text is what it is alone."""
    model, runs = Model(built(CASES[family][0], torch.float64)), list[int]()
    alone = locum.generate(model, [5, 3, 9], 4).ids
    original = Simulator.run_parts

    def counted(U: Simulator, value: Any, parts: Any, *inputs: Any) -> Any:
        runs.append(len(parts))
        return original(U, value, parts, *inputs)

    monkeypatch.setattr(Simulator, "run_parts", counted)
    assert locum.generate(model, [5, 3, 9], 4).ids == alone
    one = len(runs)
    prompts = [[4, 6], [5, 3, 9], [8], [7, 7, 7, 3], [3, 5]]  # four of them, then one
    actual = [result.ids for result in locum.generate(model, prompts, 4)]
    assert len(runs) == 3 * one
    monkeypatch.undo()
    assert actual == [locum.generate(model, prompt, 4).ids for prompt in prompts]


def test_texts_of_several_lengths_may_be_tensors() -> None:
    model = Model(built(GPT2, torch.float64))
    lists = [one.ids for one in locum.generate(model, [[3, 4], [5]], 2)]
    for made in (torch.tensor, np.array):
        assert [one.ids for one in locum.generate(model, [made([3, 4]), made([5])], 2)] == lists


def test_attention_and_draws_of_several_texts() -> None:
    model = Model(built(GPT2, torch.float64))
    prompts = [[3, 4], [5, 6, 7]]
    both = locum.generate(model, prompts, 2, attentions=True)
    for prompt, result in zip(prompts, both, strict=True):
        single = locum.generate(model, prompt, 2, attentions=True)
        for weights, expected in zip(result.attentions, single.attentions, strict=True):
            assert np.abs(weights - expected).max() < 1e-12
    drawn = [one.ids for one in locum.generate(model, [[3, 4]] * 4, 6, do_sample=True, seed=1)]
    assert drawn[0] == locum.generate(model, [3, 4], 6, do_sample=True, seed=1).ids
    assert len(set(map(tuple, drawn))) > 1


@pytest.mark.parametrize("family", ["t5", "bart"])
@pytest.mark.parametrize("forced", [None, 6])
def test_an_encoder_and_a_decoder_write_what_the_librarys_do(family: str, forced: int | None) -> None:
    model, pad = built(CASES[family][0], torch.float64), 2
    model.generation_config.eos_token_id = None
    model.generation_config.forced_bos_token_id = forced
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    ids = torch.tensor([[7, 9, 3, 5], [4, 6, 8, 3]]).masked_fill(mask == 0, pad)
    inputs = {"input_ids": ids, "attention_mask": mask}
    expected = model.generate(**inputs, max_new_tokens=9, do_sample=False)[:, 1:].tolist()
    result = locum.generate(model, inputs, 9)
    assert [one.ids for one in result] == expected
    assert result[0].prompt == [7, 9]
    # The keys and values of the memory are computed once, and not for every token.
    blocks = result[0].simulator.layout.blocks
    assert {"cross keys", "cross values"} <= set(blocks)
    assert not {"M", "cross W_K", "cross V"} & set(blocks)
    with pytest.raises(InputError, match="padding on the right"):
        locum.generate(model, inputs | {"attention_mask": mask.flip(1)}, 9)
    with pytest.raises(InputError, match="attentions are kept of decoders alone"):
        locum.generate(model, [7, 9], attentions=True)


def test_the_end_of_a_text_is_that_of_the_generation_config(tmp_path: Path) -> None:
    """Where there is such a file, the library reads nothing of it from config.json."""
    model = built(GPT2, torch.float64)
    end = locum.generate(model, [3, 4], 6).ids[1]
    model.config.eos_token_id, model.generation_config.eos_token_id = end, None
    model.save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["eos_token_id"] == end
    for ended in (False, True):
        loaded = type(model).from_pretrained(tmp_path, dtype=torch.float64).eval()
        expected = loaded.generate(torch.tensor([[3, 4]]), max_new_tokens=6, do_sample=False)[0, 2:]
        result = locum.generate(tmp_path, [3, 4], 6, dtype="float64").ids
        assert result == expected.tolist()
        assert (len(result) < 6) == ended
        (tmp_path / "generation_config.json").unlink(missing_ok=True)


def test_logits_over_several_sizes_of_the_cache() -> None:
    """From one row to beyond two caches: every row as if all were run at once."""
    model = Model(built(GPT2, torch.float64))
    ids = np.random.default_rng(0).integers(3, 23, size=20).tolist()
    writer = Writer(model)
    result = [writer.feed([ids[:5]])[0], *(writer.feed([[one]])[0] for one in ids[5:])]
    expected: Any = model.run([ids]).logits
    assert float((torch.stack(result) - expected[0, 4:]).abs().max()) < 1e-12
    assert writer.size == 32


def test_one_program_serves_every_new_token() -> None:
    model = Model(built(GPT2, torch.float64))
    writer = Writer(model)
    writer.feed([[3, 4]])
    programs = set()
    for one in (5, 6, 7):
        writer.feed([[one]])
        assert writer.simulator is not None
        programs.add(writer.simulator.hash)
    assert len(programs) == 1


def test_the_end_of_the_text_ends_it() -> None:
    model = built(GPT2, torch.float64)
    free = locum.generate(model, [3, 4], 6).ids
    model.generation_config.eos_token_id = free[2]
    first = free.index(free[2])
    assert locum.generate(model, [3, 4], 6).ids == free[: first + 1]


def test_sampling() -> None:
    model = Model(built(GPT2, torch.float64))
    greedy = locum.generate(model, [3, 4], 4).ids
    draws = [locum.generate(model, [3, 4], 4, do_sample=True, seed=seed).ids for seed in range(3)]
    assert draws[0] == locum.generate(model, [3, 4], 4, do_sample=True, seed=0).ids
    assert len({tuple(ids) for ids in draws}) > 1
    assert locum.generate(model, [3, 4], 4, do_sample=True, top_k=1).ids == greedy
    assert locum.generate(model, [3, 4], 4, do_sample=True, top_p=1e-9).ids == greedy
    assert locum.generate(model, [3, 4], 4, do_sample=True, temperature=1e-6).ids == greedy


@pytest.mark.parametrize(
    ("name", "value"), [("top_k", 1), ("temperature", 0.5), ("top_p", 0.5), ("min_p", 0.5)]
)
def test_settings_of_sampling_are_not_passed_over(name: str, value: float) -> None:
    model = built(GPT2, torch.float64)
    greedy = locum.generate(model, [3, 4], 4).ids
    setattr(model.generation_config, name, value)
    with pytest.raises(locum.InputError, match=f"{name} = {value} of the generation config"):
        locum.generate(model, [3, 4], 4, do_sample=True)
    assert locum.generate(model, [3, 4], 4).ids == greedy
    if name != "min_p":
        inputs: dict[str, Any] = {name: value}
        assert len(locum.generate(model, [3, 4], 4, do_sample=True, **inputs).ids) == 4


def test_attention_of_each_token_and_its_page() -> None:
    generation = locum.generate(built(GPT2, torch.float64), [3, 4], 3, attentions=True)
    assert [weights.shape for weights in generation.attentions] == [(1, 2, 2), (1, 2, 3), (1, 2, 4)]
    assert all(np.allclose(weights.sum(axis=2), 1) for weights in generation.attentions)
    page = generation_page(generation)
    assert "__DATA__" not in page
    assert f'"given": {len(generation.prompt)}' in page


REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    ([3] * 30, {"max_new_tokens": 12}, "up to 40 tokens"),
    ("text", {}, "no tokenizer"),
    ([], {}, r"token ids \[text, position\], got the shape"),
    ([[], [3]], {}, "got the shape"),
    ([[[3]]], {}, "got lists of lists"),
    ({"input_ids": [[3, 4]], "attention_mask": [[1, 0]]}, {}, "padding on the left"),
    ({"input_ids": [[3, 4]], "labels": [[1, 0]]}, {}, "got input_ids, labels"),
    ([3], {"max_new_tokens": 0}, "max_new_tokens"),
    ([3], {"top_k": 3}, "do_sample=True"),
    ([3], {"do_sample": True, "top_p": 2.0}, "probability"),
    ([3], {"do_sample": True, "temperature": 0.0}, "temperature"),
    ([3], {"do_sample": True, "seed": -1}, "seed: expected an integer, 0 or more, got -1"),
    ([3], {"do_sample": True, "seed": 1.5}, "seed"),
    ([3], {"do_sample": "yes"}, "do_sample: expected True or False"),
]


@pytest.mark.parametrize(("text", "options", "problem"), REFUSED)
def test_what_is_refused(text: Any, options: dict[str, Any], problem: str) -> None:
    with pytest.raises((InputError, GraphError), match=problem):
        locum.generate(built(GPT2, torch.float64), text, **options)


@pytest.mark.parametrize(
    ("name", "value"),
    [("encoder_repetition_penalty", 2.0), ("stop_strings", ["a"]), ("max_time", 1.0), ("own", 3)],
)
def test_other_settings_are_refused(name: str, value: Any) -> None:
    model = built(GPT2, torch.float64)
    setattr(model.generation_config, name, value)
    with pytest.raises(InputError, match=name):
        locum.generate(model, [3])


def test_a_prompt_with_padding_is_refused() -> None:
    """The library leaves out what its pad_token_id says, if no mask comes with the ids."""
    model = built(GPT2, torch.float64)
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = None, 5
    assert len(locum.generate(model, [3, 4], 2).ids) == 2
    with pytest.raises(InputError, match="token 5, which is padding"):
        locum.generate(model, [5, 3, 4], 2)
    model.generation_config.eos_token_id = 5
    assert locum.generate(model, [5, 3, 4], 2).ids


def test_settings_that_would_change_the_text_are_refused() -> None:
    model = built(GPT2, torch.float64)
    model.generation_config.repetition_penalty = 1.5
    with pytest.raises(InputError, match=r"repetition_penalty = 1\.5"):
        locum.generate(model, [3])
    with pytest.raises(InputError, match="without an unembedding"):
        locum.generate(built(CASES["gpt2"][1], torch.float64), [3])
    with pytest.raises(InputError, match="expected a decoder"):
        locum.generate(built(CASES["bert"][0], torch.float64), [3])
