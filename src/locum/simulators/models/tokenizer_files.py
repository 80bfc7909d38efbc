"""What stands beside tokenizer.json: read, and without the transformers library held against it.

The library makes most tokenizers anew out of a vocabulary and tokenizer_config.json; the rest of
tokenizer.json counts only as far as it says the same. Where the library is not there, tokenizer.json is
taken for classes of which that can be checked, and refused where another file says something else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from locum.errors import InputError
from locum.simulators.models.folders import read_object

#: A longest text beyond this means that there is none.
ENDLESS = 10**20
#: The parts that special tokens play.
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
#: Fields of tokenizer_config.json that do not change the tokens of one text: names, padding, how text
#: is written out of tokens, what is cut by default, and what only the older, slow classes did.
_HARMLESS = """
    name_or_path special_tokens_map_file tokenizer_file vocab_file chat_template processor_class
    model_input_names is_local local_files_only backend padding_side padding pad_token_type_id
    pad_to_multiple_of max_length stride truncation_strategy clean_up_tokenization_spaces errors
    trim_offsets do_basic_tokenize never_split use_fast return_token_type_ids
"""
#: Fields that are read, or held against tokenizer.json.
_READ = """
    tokenizer_class model_max_length truncation_side added_tokens_decoder add_bos_token add_eos_token
    split_special_tokens extra_special_tokens additional_special_tokens
"""
_FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


class Cut(NamedTuple):
    """How a tokenizer cuts long texts: on which side, and to how many tokens (None: not at all)."""

    side: str = "right"
    longest: int | None = None


class _Kind(NamedTuple):
    """A class of the library: how it splits text, its special tokens unless said, and the outermost."""

    splits: str
    tokens: dict[str, str]
    ends: tuple[str, str] | None = None


def _tokens(*contents: str | None) -> dict[str, str]:
    return {role: token for role, token in zip(ROLES, contents, strict=True) if token is not None}


_ENDS = ("cls_token", "sep_token")
_BERT = _Kind("words", _tokens(None, None, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"), _ENDS)
_MPNET = _Kind("words", _tokens("<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>"), _ENDS)
_ROBERTA = _Kind("bytes", _tokens("<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>"), _ENDS)
_GPT2 = _Kind("bytes", dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>"))
_FILE = _Kind("any", {})
_CLASSES = {
    **dict.fromkeys(("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"), _BERT),
    "MPNetTokenizer": _MPNET,
    **dict.fromkeys(("RobertaTokenizer", "BartTokenizer"), _ROBERTA),
    "GPT2Tokenizer": _GPT2,
    # The name of the second one without "Fast", which is left out of all names.
    **dict.fromkeys(("TokenizersBackend", "PreTrainedTokenizer"), _FILE),
}
#: The class of a folder that names none.
_BY_FAMILY = {
    **dict.fromkeys(("bert", "distilbert", "electra"), "BertTokenizer"),
    "mpnet": "MPNetTokenizer",
    **dict.fromkeys(("roberta", "bart"), "RobertaTokenizer"),
    **dict.fromkeys(("gpt2", "opt"), "GPT2Tokenizer"),
}
#: The library makes its own class of these, whatever the folder names.
_OWN_CLASS = ("qwen2",)


def read_tokenizer_config(folder: Path) -> dict[str, Any]:
    """Read tokenizer_config.json, if there is one; refuse code of the model's own."""
    config = _object(folder / "tokenizer_config.json")
    if config.get("auto_map"):
        raise InputError(
            f"{folder / 'tokenizer_config.json'}: a tokenizer with code of its own (auto_map) is not "
            f"run: expected none, got {config['auto_map']!r:.60}; try token ids instead of text"
        )
    return config


def read_cut(folder: Path, tokenizer: Any) -> Cut:
    """Read how texts are cut by a tokenizer of a folder, as tokenizer_config.json says."""
    path, config = folder / "tokenizer_config.json", read_tokenizer_config(folder)
    side = config.get("truncation_side") or (tokenizer.truncation or {}).get("direction", "right")
    if side not in ("left", "right"):
        raise InputError(f"{path}: expected truncation_side as left or right, got {side!r:.60}")
    longest = config.get("model_max_length")
    if longest is not None and (type(longest) not in (int, float) or longest < 1):
        raise InputError(
            f"{path}: expected model_max_length as a positive integer, got {longest!r:.60}"
        )
    return Cut(side, None if longest is None or longest > ENDLESS else int(longest))


def require_no_types(folder: Path, names: Any) -> None:
    """Refuse a tokenizer whose names of inputs have token types, for a model that misuses these."""
    # The library's GPT-2 adds a row of its table of words for the type of each token, 0 or not.
    if _object(folder / "config.json").get("model_type") == "gpt2" and "token_type_ids" in names:
        raise InputError(
            f"{folder}: expected a tokenizer that gives a gpt2 no token_type_ids, which the model "
            "would add to its words, got them in model_input_names; try token ids instead of text"
        )


def require_agreement(folder: Path, tokenizer: Any) -> None:
    """Refuse tokenizer.json, read as ``tokenizer``, where the library might make other tokens of it."""
    config = read_tokenizer_config(folder)
    model = _object(folder / "config.json")
    family = model.get("model_type")
    named = config.get("tokenizer_class") or model.get("tokenizer_class") or _BY_FAMILY.get(str(family))
    name = str(named).removesuffix("Fast")
    if name not in _CLASSES or family in _OWN_CLASS:
        raise _refused(folder, f"a class of {', '.join(_CLASSES)}", f"{name} of {family}")
    kind = _CLASSES[name]
    known = {*_HARMLESS.split(), *_READ.split(), *ROLES, *_SPLITTING[kind.splits]}
    for field, value in config.items():
        if field not in known:
            raise _refused(
                folder, "fields of tokenizer_config.json that are known", f"{field} = {value!r:.60}"
            )
    # Versions of the library differ in what the class of any file gives, unless it is said.
    names = config.get("model_input_names") or (["token_type_ids"] if kind is _FILE else [])
    require_no_types(folder, names)
    if config.get("split_special_tokens"):
        raise _refused(folder, "split_special_tokens = false", "true")
    tokens = _special_tokens(folder, config, kind)
    _require_added(folder, config, tokenizer, tokens, of_class=kind is not _FILE)
    if kind is not _FILE:
        _require_splitting(folder, config, tokenizer, tokens, kind)
    _require_ends(folder, config, tokenizer, tokens, kind)


#: The fields by which a class splits text.
_SPLITTING = {
    "words": ("do_lower_case", "strip_accents", "tokenize_chinese_chars"),
    "bytes": ("add_prefix_space",),
    "any": (),
}


def _special_tokens(folder: Path, config: Mapping[str, Any], kind: _Kind) -> dict[str, str]:
    """Return the special tokens by their parts, which no two files may give to two tokens."""
    tokens: dict[str, str | None] = dict(kind.tokens)
    of_map = _object(folder / "special_tokens_map.json")
    others = sorted(set(of_map) - {*ROLES, "additional_special_tokens", "extra_special_tokens"})
    if others:
        raise _refused(folder, "no other part in special_tokens_map.json", others[0])
    for role in ROLES:
        named = [_content(source[role]) for source in (config, of_map) if role in source]
        if len(set(named)) > 1:
            raise _refused(folder, f"one {role}", " and ".join(map(str, named)))
        if named:
            tokens |= {role: named[0]}
    return {role: token for role, token in tokens.items() if token is not None}


def _require_added(
    folder: Path, config: Mapping[str, Any], tokenizer: Any, tokens: Mapping[str, str], of_class: bool
) -> None:
    """Refuse tokens that another file adds, or adds in another way."""
    added = {
        number: {"content": token.content, **{flag: getattr(token, flag) for flag in _FLAGS}}
        for number, token in tokenizer.get_added_tokens_decoder().items()
    }
    special = {token["content"] for token in added.values() if token["special"]}
    of_map = _object(folder / "special_tokens_map.json")
    required = dict(tokens)
    for source in (config, of_map):
        for field in ("extra_special_tokens", "additional_special_tokens"):
            listed = source.get(field) or []
            for one in listed.values() if isinstance(listed, dict) else listed:
                required[f"{field}: {one!r:.60}"] = str(_content(one))
    for role, token in required.items():
        if token not in special:
            raise _refused(folder, "special tokens of tokenizer.json", f"{token!r:.60} as {role}")
    decoder = config.get("added_tokens_decoder")
    if decoder is not None and {str(number): token for number, token in added.items()} != decoder:
        raise _refused(folder, "added_tokens_decoder as tokenizer.json has it", "others")
    numbers = {token["content"]: number for number, token in added.items()}
    for token, number in _object(folder / "added_tokens.json").items():
        if numbers.get(token) != number:
            raise _refused(folder, "added_tokens.json as tokenizer.json has it", f"{token!r:.60}")
    vocabulary = tokenizer.get_vocab(with_added_tokens=False)
    beyond = sorted(number for token, number in numbers.items() if token not in vocabulary)
    if of_class and beyond != list(range(len(vocabulary), len(vocabulary) + len(beyond))):
        raise _refused(folder, "added tokens that follow the vocabulary", f"the numbers {beyond!r:.60}")


def _require_splitting(
    folder: Path, config: Mapping[str, Any], tokenizer: Any, tokens: Mapping[str, str], kind: _Kind
) -> None:
    """Refuse parts of tokenizer.json that differ from those that the class makes of its fields."""
    model, normalizer, before = (
        tokenizer.model,
        _state(tokenizer.normalizer),
        _state(tokenizer.pre_tokenizer),
    )
    if kind.splits == "words":
        expected: dict[str, Any] = {
            "model": ("WordPiece", tokens.get("unk_token"), "##", 100),
            "normalizer": {
                "type": "BertNormalizer",
                "clean_text": True,
                "handle_chinese_chars": config.get("tokenize_chinese_chars", True),
                "strip_accents": config.get("strip_accents"),
                "lowercase": config.get("do_lower_case", True),
            },
            "pre_tokenizer": {"type": "BertPreTokenizer"},
        }
        shape: tuple[str, ...] = ("unk_token", "continuing_subword_prefix", "max_input_chars_per_word")
    else:
        expected = {
            "model": ("BPE", None, None, None, None, False, False, False),
            "normalizer": None,
            "pre_tokenizer": {
                "type": "ByteLevel",
                "add_prefix_space": config.get("add_prefix_space", False),
                "use_regex": True,
            },
        }
        before = before and {key: value for key, value in before.items() if key != "trim_offsets"}
        shape = (
            *("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"),
            *("fuse_unk", "byte_fallback", "ignore_merges"),
        )
    values = [getattr(model, name, None) for name in shape]
    parts = {
        "model": (type(model).__name__, *(None if value == "" else value for value in values)),
        "normalizer": normalizer,
        "pre_tokenizer": before,
    }
    for part, value in parts.items():
        if value != expected[part]:
            raise _refused(
                folder,
                f"{part} {expected[part]} in tokenizer.json, as tokenizer_config.json has it",
                str(value),
            )


def _require_ends(
    folder: Path, config: Mapping[str, Any], tokenizer: Any, tokens: Mapping[str, str], kind: _Kind
) -> None:
    """Refuse other tokens around a text than the class, or the fields of the config, put there."""
    tokenizer.no_truncation()
    tokenizer.no_padding()
    try:
        inner = tokenizer.encode("a", add_special_tokens=False).ids
        whole = tokenizer.encode("a").ids
    except Exception as error:  # the library raises nothing more specific
        raise _refused(folder, "a tokenizer that takes any text", f"{error!s:.60} for 'a'") from None
    if kind.ends is not None:
        first, last = (tokenizer.token_to_id(tokens[role]) for role in kind.ends)
        if whole != [first, *inner, last]:
            raise _refused(folder, f"{' and '.join(kind.ends)} around a text", f"{whole} for {inner}")
    for field, role, at in (("add_bos_token", "bos_token", 0), ("add_eos_token", "eos_token", -1)):
        if field in config:
            token = tokens.get(role)
            number = None if token is None else tokenizer.token_to_id(token)
            has = len(whole) > len(inner) and whole[at] == number
            if has is not config[field]:
                raise _refused(folder, f"{field} as tokenizer.json has it", repr(config[field]))


def _content(token: Any) -> str | None:
    """Return the text of a special token, which may stand with its flags."""
    content = token.get("content") if isinstance(token, dict) else token
    return None if content is None else str(content)


def _state(part: Any) -> Any:
    return None if part is None else json.loads(part.__getstate__())


def _refused(folder: Path, expected: str, got: str) -> InputError:
    return InputError(
        f"{folder}: expected {expected}, got {got}; try pip install transformers, whose own tokenizer "
        "is used then, or token ids instead of text"
    )


def _object(path: Path) -> dict[str, Any]:
    return read_object(path) if path.is_file() else {}
