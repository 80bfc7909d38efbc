"""Texts of folders have the tokens that transformers' own tokenizers give them, or are refused."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import locum
from locum.errors import InputError
from locum.simulators.models.sentence import Sentence
from locum.simulators.models.tokenising import read_tokenizer, tokenised
from tests.simulators.checkpoints import save_tokenizer, write, write_tokenizer

transformers: Any = pytest.importorskip("transformers")

LETTERS = "abcdehlotTC"
BYTES = {token: n for n, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", "Ġ", *LETTERS])}
PIECES = {token: n for n, token in enumerate(["<unk>", "<s>", "</s>", "▁", *LETTERS])}
SCORED = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *((token, -2.0) for token in "▁" + LETTERS)]
WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    *("the", "The", "cat", "Cat", "hot", "##el", "é", "e"),
]
TEXTS = ("the cat", "The Cat", " hot  hotel ", "é", "a</s>b [SEP] Cat", "")


def bert() -> Any:
    return transformers.BertTokenizer(vocab={word: n for n, word in enumerate(WORDS)})


#: Each kind of tokenizer with what it is made by.
KINDS: dict[str, Callable[[], Any]] = {
    "bert": bert,
    "roberta": lambda: transformers.RobertaTokenizer(vocab=dict(BYTES), merges=[]),
    "gpt2": lambda: transformers.GPT2Tokenizer(
        vocab=dict(BYTES), merges=[], unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    ),
    "llama": lambda: transformers.LlamaTokenizer(vocab=dict(PIECES), merges=[]),
    "t5": lambda: transformers.T5Tokenizer(vocab=list(SCORED), extra_ids=0),
}
#: What somebody may have changed in tokenizer_config.json; None: the field is not there.
EDITS: dict[str, list[Any]] = {
    "do_lower_case": [True, False, None],
    "strip_accents": [True, False, None],
    "tokenize_chinese_chars": [False],
    "add_prefix_space": [True, False, None],
    "truncation_side": ["left", "right"],
    "add_bos_token": [True, False],
    "add_eos_token": [True, False],
    "legacy": [True, False],
    "split_special_tokens": [True],
    "extra_special_tokens": [["cat"]],
    "sep_token": ["the"],
    "tokenizer_class": ["PreTrainedTokenizerFast", "BertTokenizer", "GPT2Tokenizer"],
    "model_max_length": [3, 7],
    "padding_side": ["left"],
    "clean_up_tokenization_spaces": [True],
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of each kind, without a model."""
    made = {}
    for kind, make in KINDS.items():
        folder = made[kind] = tmp_path_factory.mktemp(kind)
        make().save_pretrained(folder)
        (folder / "config.json").write_text(json.dumps({"model_type": kind}), encoding="utf-8")
    return made


def edited(folder: Path, to: Path, **fields: Any) -> Path:
    """A copy of a folder with other fields in tokenizer_config.json."""
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    path = to / "tokenizer_config.json"
    config = json.loads(path.read_text()) | fields
    config = {name: value for name, value in config.items() if value is not None}
    path.write_text(json.dumps(config), encoding="utf-8")
    return to


def of_library(folder: Path, text: str, longest: int | None = None) -> list[int]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    cut = {} if longest is None else {"truncation": True, "max_length": longest}
    return list(tokenizer(text, **cut)["input_ids"])


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_those_of_the_library(folders: dict[str, Path], tmp_path: Path, kind: str) -> None:
    chance = random.Random(kind)
    for number in range(12):
        to = tmp_path / str(number)
        to.mkdir()
        fields = {name: chance.choice(EDITS[name]) for name in chance.sample(sorted(EDITS), k=2)}
        folder = edited(folders[kind], to, **fields if number else {})
        text, longest = chance.choice(TEXTS), chance.choice([None, 4])
        try:
            expected = of_library(folder, text, longest)
        except Exception:  # whatever it is, the library does not tokenise
            with pytest.raises(InputError):
                tokenised(folder, [text], 100, Sentence(longest=longest))
            continue
        if not expected:
            with pytest.raises(InputError, match="no tokens"):
                tokenised(folder, [text], 100, Sentence(longest=longest))
            continue
        (result,) = tokenised(folder, [text], 100, Sentence(longest=longest))
        assert result.numbers == expected, (fields, text, longest)


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        ("bert", {"do_lower_case": False}, "The Cat"),
        ("bert", {"strip_accents": False}, "é"),
        ("gpt2", {"add_prefix_space": True}, "cat"),
        ("roberta", {"add_prefix_space": True}, "cat"),
        ("llama", {"add_prefix_space": False}, "cat"),
    ],
)
def test_tokenizer_config_goes_before_tokenizer_json(
    folders: dict[str, Path], tmp_path: Path, kind: str, fields: dict[str, Any], text: str
) -> None:
    folder = edited(folders[kind], tmp_path, **fields)
    (result,) = tokenised(folder, [text], 100)
    assert result.numbers == of_library(folder, text)
    assert result.numbers != of_library(folders[kind], text)
    assert read_tokenizer(folder).encode(text).ids == result.numbers


def test_texts_are_cut_on_the_side_that_the_tokenizer_says(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = edited(folders["bert"], tmp_path, truncation_side="left")
    (text,) = tokenised(folder, ["the cat hot hotel"], 100, Sentence(longest=4))
    assert text.tokens == ["[CLS]", "hot", "##el", "[SEP]"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"auto_map": {"AutoTokenizer": ["code.Tokenizer", None]}}, "auto_map.*token ids"),
        ({"auto_map": ["code.Tokenizer", None]}, "auto_map.*token ids"),
        ({"tokenizer_class": "AlbertTokenizer"}, "expected a tokenizer that transformers reads"),
        ([], "expected a JSON object, got list"),
    ],
)
def test_tokenizers_that_are_not_read(tmp_path: Path, content: Any, problem: str) -> None:
    folder = write(tmp_path)
    write_tokenizer(folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=problem):
        locum.simulate(folder, ["cat"], backend="numpy")


def test_texts_that_cannot_be_tokenised(folders: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="cannot be tokenised"):
        tokenised(folders["bert"], ["\ud800"], 100)


def test_spaces_and_capitals_that_versions_see_differently(folders: dict[str, Path]) -> None:
    """Old versions of sentence-transformers strip texts and make all of them lowercase."""
    prepared = Sentence(is_prepared=True)
    assert tokenised(folders["bert"], [" cat "], 9, prepared)[0].tokens == ["[CLS]", "cat", "[SEP]"]
    with pytest.raises(InputError, match=r"without spaces at its ends, got ' cat'.*try text\.strip"):
        tokenised(folders["gpt2"], [" cat"], 9, prepared)
    lower = Sentence(lowercase=True, is_prepared=True)
    assert tokenised(folders["gpt2"], ["Cat"], 9, lower)[0].tokens == ["c", "a", "t"]
    with pytest.raises(InputError, match="whose lowercase is the same"):
        tokenised(folders["bert"], ["cat [SEP]"], 9, lower)


def test_a_tokenizer_of_no_class_is_its_file(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models

    save_tokenizer(Tokenizer(models.BPE(vocab={"a": 0, "b": 1, "c": 2}, merges=[])), tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "albert"}', encoding="utf-8")
    assert tokenised(tmp_path, ["cab"], 9)[0].numbers == [2, 0, 1]
