"""The flow figure: heads of a program and what the compiler made of them; heads of a network in U."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from locum.interface.playground.example_programs import examples
from tests.old.interface.test_answer import ask

SORT = (
    "smaller = select(tokens, tokens, <);\n"
    "earlier = select(tokens, tokens, ==) and select(indices, indices, <);\n"
    "rank = selector_width(smaller or earlier);\n"
    "sorted = aggregate(select(rank, indices, ==), tokens);\n"
)


def network(source: str, typed: str = "hello", **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = ask("compile", source=source, input=typed, **options)["network"]
    return found


@pytest.mark.parametrize(
    ("source", "typed", "became"),
    [
        (
            "reverse = aggregate(select(indices, length - 1 - indices, ==), tokens);",
            "hello",
            ["head 0.0 of the network", "head 1.0 of the network"],
        ),
        (
            "own = selector_width(select(tokens, tokens, ==));",
            "hello",
            [
                "merged with head 2: head 0.0 of the network",
                "merged with head 1: head 0.0 of the network",
            ],
        ),
        (
            "total = round(length * aggregate(full_s, tokens_int)) % 5;",
            "[1, 4, 3]",
            ["split into heads 0.0, 0.1, 0.2 of the network"],
        ),
        (
            "b = aggregate(select(indices, indices, <=), indices);",
            "hello",
            ["no head: a table of positions in the embedding"],
        ),
        (
            "n = length;\nb = aggregate(select(indices, n - 1, <=), indices);",
            "hello",
            ["head 0.0 of the network", "no head: a table in the MLP of layer 0 replaces it"],
        ),
    ],
)
def test_what_became_of_each_head_is_told(source: str, typed: str, became: list[str]) -> None:
    flow = network(source, typed)["flow"]
    assert [head["text"] for head in flow["heads"]] == became
    assert [head["numbers"] for head in flow["heads"]] == [[n] for n in range(1, len(became) + 1)]


def test_heads_have_the_same_names_and_numbers_in_all_panes() -> None:
    for example in examples()[:24]:
        source, typed = example["source"], example["input"]
        drawn = ask("draw", source=source, input=typed)
        heads = {head["number"]: head for layer in drawn["layers"] for head in layer}
        counted = ask("analyse", source=source, input=typed)["programs"]
        size = next(entry for entry in counted if entry["name"] == drawn["name"])
        assert [len(layer) for layer in drawn["layers"]] == size["heads"], example["name"]
        assert list(heads) == list(range(1, sum(size["heads"]) + 1))
        flow = network(source, typed)["flow"]
        assert [n for head in flow["heads"] for n in head["numbers"]] == list(heads)
        made = {tuple(entry["at"]): entry for entry in flow["made"]}
        for head in flow["heads"]:
            if head["how"] == "head":
                (at,) = head["at"]
                assert made[tuple(at)]["title"] == f"head {head['numbers'][0]}"
                assert made[tuple(at)]["name"] == heads[head["numbers"][0]]["label"]


def test_every_head_of_a_network_is_there_for_heads_of_the_program() -> None:
    for example in examples()[:24]:
        flow = network(example["source"], example["input"])["flow"]
        made = {tuple(at) for head in flow["heads"] for at in head["at"]}
        assert made == {tuple(entry["at"]) for entry in flow["made"]}, example["name"]
        assert all(head["text"] for head in flow["heads"])


def test_the_figure_has_a_box_for_each_head_and_one_that_is_dashed() -> None:
    found = network("n = length;\nb = aggregate(select(indices, n - 1, <=), indices);")
    picture = ElementTree.fromstring(found["flow"]["svg"])
    names = [name for part in picture.iter() if (name := part.get("data-part"))]
    assert sorted(names) == sorted(found["flow"]["parts"])
    assert {"blocks.0.attn.head.0", "gone.2", "output"} <= set(names)
    assert not picture.findall(".//{http://www.w3.org/2000/svg}style")
    dashed = [part for part in picture.iter() if part.get("class") == "box dashed"]
    assert len(dashed) == 1
    assert found["flow"]["parts"]["gone.2"] == [1]


def test_numbers_of_slots_are_decoded_where_they_are_codes() -> None:
    slots = network("r = aggregate(select(indices, length - 1 - indices, ==), tokens);")["slots"]
    codes = {stay["label"]: stay["codes"] for stays in slots for stay in stays}
    assert sorted(text for _, text in codes["tokens_str"]) == ["e", "h", "l", "o"]
    assert sorted(text for _, text in codes["r"]) == ["e", "h", "l", "o"]
    assert codes["indices"] == codes["1/length"] == codes["length"] == []
    # A number of the stream has the meaning that the program gives to it, at every position.
    for example in examples()[:16]:
        found = network(example["source"], example["input"])
        stream = np.array(found["inputs"][0]["stream"])
        for slot, stays in enumerate(found["slots"]):
            for stay in stays:
                pairs = dict(map(tuple, stay["codes"]))
                at = max(stay["first"], min(stay["last"], len(stream)) - 1)
                count = len(found["inputs"][0]["tokens"])
                if pairs:
                    assert set(stream[at][slot][-count:]) == set(pairs), example["name"]


@pytest.mark.parametrize("source", [SORT, *(example["source"] for example in examples()[:12])])
def test_a_head_in_u_gives_what_it_gives_in_the_network(source: str) -> None:
    typed = "[1, 0, 2, 1]" if "tokens_int" in source or "tokens_asis" in source else "abab"
    found = network(source, typed)
    pattern = found["inputs"][0]["patterns"]
    for layer, heads in enumerate(found["heads"]):
        for number, head in enumerate(heads):
            given = head["universal"]
            if "why" in given:
                assert "positions" not in given["why"]  # 4 tokens are few enough
                continue
            explained = ask("explain", **given)
            weights = np.zeros(pattern[layer][number]["shape"])
            weights.ravel()[pattern[layer][number]["at"]] = pattern[layer][number]["values"]
            expected = weights @ np.array(given["X"]) @ np.array(given["V"])
            np.testing.assert_allclose(explained["steps"][-1]["matrix"], expected, atol=1e-4)


def test_why_a_head_does_not_open_in_u_is_told() -> None:
    reverse = "r = aggregate(select(indices, length - 1 - indices, ==), tokens);"
    long = network(reverse, "abcdefgh")["heads"][1][0]["universal"]
    assert long["why"] == "it has 8 positions, and the largest U here has 6; try a shorter input"
    soft = network(reverse, "abcd", attention="softmax")["heads"][1][0]["universal"]
    assert "exponentials overflow above 709; try hard attention" in soft["why"]
    assert "why" not in network(reverse, "abcd", attention="hard")["heads"][1][0]["universal"]
    past = "p = aggregate(select(indices, indices - 1, ==), indices, 9);"
    causal = network(past, "abcd", causal=True)["heads"]
    assert all("causal mask" in head["universal"]["why"] for layer in causal for head in layer)


@pytest.mark.parametrize(
    ("source", "because"),
    [
        ("x = 1 +;\ny = x;\nz = y + 1;\nw = v;", [None, 1, 1, None]),
        ("x = 1 +;\nx = 2;\ny = x;", [None]),
        ("def f(x) { return x + ; }\ny = f(indices);", [None, 1]),
        ("a, b = 1, nope;\nc = a + b;", [None, 1]),
        ("x = nope; y = 2;\nz = x;\nw = y;", [None, 1]),
    ],
)
def test_an_error_that_follows_from_another_refers_to_it(
    source: str, because: list[int | None]
) -> None:
    errors = ask("run", source=source, input="abc")["errors"]
    assert [error.get("because") for error in errors] == because
