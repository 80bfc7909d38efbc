"""How many tokens are written where nobody says it: as many as by transformers' own ``generate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import locum
from locum.errors import InputError
from locum.simulators.models.families.running import Model
from tests.simulators.families import CASES, Case, bart, built, gpt2, llama

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # the library's, of lengths that nobody gave

WRITERS = {
    "gpt2": Case("GPT2LMHeadModel", gpt2(n_layer=1)),  # of 12 positions
    "llama": Case("LlamaForCausalLM", llama(num_hidden_layers=1, max_position_embeddings=15)),
    "t5": CASES["t5"][0],
    "bart": Case("BartForConditionalGeneration", bart()),
}
LENGTHS: list[dict[str, int]] = [
    {},
    {"max_length": 9},
    {"max_new_tokens": 3},
    {"max_new_tokens": 4, "max_length": 7},
]
PROMPT = [3, 5, 7, 9]


def writer(family: str, **settings: Any) -> Any:
    model = built(WRITERS[family], torch.float64)
    for name, value in ({"eos_token_id": None} | settings).items():
        setattr(model.generation_config, name, value)
    return model


def by_the_library(model: Any, prompts: list[list[int]], **options: Any) -> list[list[int]]:
    """What it writes for prompts of one length."""
    written = model.generate(torch.tensor(prompts), do_sample=False, **options)
    before = 1 if model.config.is_encoder_decoder else len(prompts[0])
    return [[int(one) for one in row] for row in written[:, before:]]


@pytest.mark.parametrize("family", WRITERS)
def test_lengths_are_those_of_the_generation_config(family: str) -> None:
    result = []
    for settings in LENGTHS:
        model = writer(family, **settings)
        result.append(locum.generate(model, PROMPT).ids)
        assert [result[-1]] == by_the_library(model, [PROMPT]), settings
    positions = {"gpt2": 12 - 4, "llama": 15 - 4, "t5": 20, "bart": 12 - 1}[family]
    encodes = family in ("t5", "bart")
    assert [len(ids) for ids in result] == [positions, 8 if encodes else 5, 3, 4]


@pytest.mark.parametrize("family", ["gpt2", "bart"])
def test_lengths_of_folders(family: str, tmp_path: Path) -> None:
    """From generation_config.json; where there is none, from config.json."""
    model = writer(family, max_length=7)
    model.save_pretrained(tmp_path)
    for own in (True, False):
        if not own:
            (tmp_path / "generation_config.json").unlink()
            path = tmp_path / "config.json"
            more: dict[str, Any] = {"max_length": 6, "eos_token_id": None, "bos_token_id": 8}
            if family == "bart":  # as older ones have it
                more["force_bos_token_to_be_generated"] = True
            path.write_text(json.dumps(json.loads(path.read_text()) | more))
        loaded = type(model).from_pretrained(tmp_path, dtype=torch.float64).eval()
        result = locum.generate(tmp_path, PROMPT, dtype="float64").ids
        assert [result] == by_the_library(loaded, [PROMPT])


def test_several_prompts_have_the_length_of_the_longest() -> None:
    """As in the library's padded batch, of which there is one length."""
    model = writer("gpt2", max_length=9, pad_token_id=2)
    inputs = {
        "input_ids": torch.tensor([[2, 2, 3, 5], [4, 6, 8, 3]]),
        "attention_mask": torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]]),
    }
    expected = model.generate(**inputs, do_sample=False)[:, 4:].tolist()
    assert [one.ids for one in locum.generate(model, inputs)] == expected
    assert [one.ids for one in locum.generate(model, [[3, 5], [4, 6, 8, 3]])] == expected


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_prompts_that_leave_no_room_are_refused_as_by_the_library(family: str) -> None:
    model = writer(family, max_length=1 if family == "t5" else 3)
    with pytest.raises(ValueError, match="max_length"):
        by_the_library(model, [PROMPT])
    with pytest.raises(
        InputError, match=r"at most .max_length of the generation config.*max_new_tokens"
    ):
        locum.generate(model, PROMPT)
    if family == "llama":
        model.generation_config.max_length = None
        with pytest.raises(ValueError, match="max_length"):
            by_the_library(model, [[3] * 15])
        with pytest.raises(InputError, match="max_position_embeddings"):
            locum.generate(model, [3] * 15)
        assert [locum.generate(model, [3] * 15, 1).ids] == by_the_library(
            model, [[3] * 15], max_new_tokens=1
        )


def test_beams_are_left_out_if_the_caller_says_so() -> None:
    settings = {"num_beams": 4, "length_penalty": 2.0, "early_stopping": True, "max_length": 6}
    model = writer("bart", **settings)
    with pytest.raises(InputError, match="num_beams = 4"):
        locum.generate(model, PROMPT)
    assert [locum.generate(model, PROMPT, num_beams=1).ids] == by_the_library(
        model, [PROMPT], num_beams=1
    )
    for other in (2, True, 1.0):
        with pytest.raises(InputError, match="num_beams: expected 1"):
            locum.generate(model, PROMPT, num_beams=other)


def test_settings_of_what_was_written_count_behind_an_encoder() -> None:
    """As BARTs have them: words that are not repeated, and a length before which no text ends."""
    free = by_the_library(writer("bart"), [PROMPT], max_new_tokens=1)[0]
    texts, prompts = set(), [PROMPT, [8, 4, 4, 6]]
    for settings in (
        {},
        {"no_repeat_ngram_size": 1},
        {"no_repeat_ngram_size": 3, "min_length": 6, "num_beams": 4, "early_stopping": True},
        {"no_repeat_ngram_size": 2, "min_new_tokens": 3, "min_length": 7},
    ):
        model = writer("bart", eos_token_id=[*free, 5], forced_eos_token_id=None, **settings)
        found = [one.ids for one in locum.generate(model, prompts, 7, num_beams=1)]
        expected = by_the_library(model, prompts, max_new_tokens=7, num_beams=1)
        pad = model.generation_config.pad_token_id
        assert [ids + [pad] * (len(expected[0]) - len(ids)) for ids in found] == expected
        texts.add(tuple(map(tuple, found)))
    assert len(texts) == 4
    for name in ("no_repeat_ngram_size", "min_length"):
        with pytest.raises(InputError, match=name):
            locum.generate(writer("gpt2", **{name: 2}), PROMPT, 3)
        with pytest.raises(InputError, match=f"0 or more, as {name}"):
            locum.generate(writer("bart", **{name: 1.5}), PROMPT, 3)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("eos_token_id", []),
        ("eos_token_id", ""),
        ("eos_token_id", {}),
        ("eos_token_id", [[1]]),
        ("is_assistant", True),
        ("assistant_early_exit", 1),
        ("assistant_ensemble_weight", 0.5),
        ("prompt_lookup_num_tokens", 2),
        ("max_length", 9.5),
        ("max_new_tokens", 0),
        ("pad_token_id", [2]),
    ],
)
def test_settings_that_the_library_stumbles_over_are_refused(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        locum.generate(writer("gpt2", **{name: value}), PROMPT)


def test_tokens_that_there_are_not_are_refused() -> None:
    for name in ("forced_eos_token_id", "forced_bos_token_id", "decoder_start_token_id"):
        for token in (99, -1):
            with pytest.raises(InputError, match=rf"from 0 to 22 as {name}.*got {token}"):
                locum.generate(writer("bart", **{name: token}), PROMPT, 3)


def test_padding_without_a_mask_is_refused() -> None:
    """The library makes a mask of it then; with a mask of ones it is a token like any other."""
    model = writer("gpt2", pad_token_id=2)
    ids = torch.tensor([[2, 2, 3, 5], [4, 6, 8, 3]])
    for inputs in (ids, {"input_ids": ids}, {"input_ids": ids, "attention_mask": None}):
        with pytest.raises(InputError, match=r"token 2, which is padding.*attention_mask"):
            locum.generate(model, inputs, 2)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    expected = model.generate(**inputs, max_new_tokens=2, do_sample=False)[:, 4:].tolist()
    assert [one.ids for one in locum.generate(model, inputs, 2)] == expected


def test_what_would_be_passed_over_is_refused() -> None:
    model = writer("gpt2")
    for run in (locum.generate, locum.simulate):
        with pytest.raises(InputError, match="options of a model, got max_length, output_scores"):
            run(model, PROMPT, output_scores=True, max_length=3)
    with pytest.raises(InputError, match="dtype"):
        locum.generate(Model(model), PROMPT, dtype="float32")
    model.config.max_length = 9
    with pytest.raises(ValueError, match="max_length"):
        by_the_library(model, [PROMPT])
    with pytest.raises(InputError, match=r"max_length = 9 of its config.*generation_config"):
        locum.generate(model, PROMPT)
