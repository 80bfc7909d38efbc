"""Compiled transformers in words, read off the weights; their reports, data and notebook tables."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import locum
from locum.interface.display.network import network_data as module
from locum.interface.display.network.in_words import NetworkInWords, combination, expressions
from locum.interface.display.network.network_data import answer_positions, network_data
from locum.interface.display.network.network_report import details, facts
from locum.networks.transformer import CompiledTransformer, FeedForwardWeights, LayerWeights
from locum.networks.transformer.functions import Functions, Instruction
from locum.simulators import UniversalSimulator
from locum.text import at_most

flip = locum.select(locum.indices, locum.length - 1 - locum.indices, "==")
reverse = locum.aggregate(flip, locum.tokens)
same_token = locum.select(locum.tokens, locum.tokens, "==")
before = locum.select(locum.indices, locum.indices, "<")
# At the first position it selects nothing: such a network has a sink.
previous = locum.select(locum.indices, locum.indices - 1, "==")
shift = locum.aggregate(previous, locum.tokens, default="-")


@pytest.fixture(scope="module")
def model() -> CompiledTransformer:
    names = {reverse.node: "reverse", flip.node: "flip"}
    return locum.compile(
        reverse, length=8, vocabulary="abcd", name="reverse", names=names, feed_forward="exact"
    )


@pytest.fixture(scope="module")
def with_sink() -> CompiledTransformer:
    names = {shift.node: "shift", previous.node: "previous"}
    compiled = locum.compile(
        shift, length=8, vocabulary="abcd", name="shift", names=names, feed_forward="exact"
    )
    assert compiled.config.sink
    return compiled


@pytest.fixture(scope="module")
def simulator() -> CompiledTransformer:
    compiled = UniversalSimulator(2, 2, 2).compile(feed_forward="exact")
    assert isinstance(compiled, CompiledTransformer)
    return compiled


# Read off the weights -----------------------------------------------------------------------------


def test_the_names_of_the_program_are_those_of_slots_and_heads(model: CompiledTransformer) -> None:
    assert model.config.heads == (("everywhere",), ("flip",))
    assert "not (indices == 0) → reverse" in model.slots
    assert {"tokens", "length", "1/length"} <= set(model.slots)


def test_a_slot_that_is_used_twice(model: CompiledTransformer) -> None:
    words = NetworkInWords(model)
    slot = next(number for number, stays in enumerate(words.slots) if len(stays) == 2)
    first, answer = words.slots[slot]
    assert (first.label, answer.label) == ("not (indices == 0)", "reverse")
    # The head of layer 0 reads it, the feed-forward erases it; the answer is read at the end.
    assert (first.first, first.last, first.until) == (0, 1, 2)
    assert (answer.first, answer.last) == (3, 5)
    assert [first.is_held(time) for time in range(3)] == [True, True, False]
    assert words.erased(2) == [slot]
    assert slot in words.written(3)
    assert slot not in words.written(2)


@pytest.mark.parametrize("kind", ["exact", "glu", "relu", "gelu"])
def test_states_are_those_of_the_stream(kind: str) -> None:
    """Where a slot is said to hold nothing, it is 0 at every position of every input."""
    generator = np.random.default_rng(0)
    counted = locum.aggregate(
        locum.select(locum.selector_width(flip & previous), locum.indices, "=="), locum.indices
    )
    native = UniversalSimulator(2, 2, 2).compile(
        "native", feed_forward=kind, ranges=(-1, 1), tolerance=0.1
    )
    networks: list[tuple[Any, Any]] = [
        (locum.compile(reverse, length=8, vocabulary="abcd", feed_forward=kind), "abcda"),
        (locum.compile(counted, length=6, vocabulary="abcd", feed_forward=kind), "abcda"),
        (native, generator.uniform(-1, 1, size=12).tolist()),
    ]
    for network, tokens in networks:
        words = NetworkInWords(network)
        stream = network.residual(tokens).values[:, int(network.config.sink) :]
        empty = 0
        for time in range(2 * words.depth + 1):
            for slot in range(len(words.slots)):
                if words.held(slot, time) is None:
                    empty += 1
                    assert not stream[time, :, slot].any(), (time, slot)
        assert empty


def test_what_is_idle_is_read_by_nobody(simulator: CompiledTransformer) -> None:
    """Other numbers in an idle slot change nothing that comes out."""
    words = NetworkInWords(simulator)
    last = 2 * words.depth
    held = {s: stay for s in range(len(words.slots)) if (stay := words.held(s, last))}
    idle = [slot for slot, stay in held.items() if stay.last <= last]
    live = [slot for slot, stay in held.items() if stay.last > last]
    assert idle
    assert len(live) == 1
    stream = simulator.residual(list(range(12))).values[-1][None].copy()
    before = stream @ simulator.weights.W_U
    stream[..., idle] += 1.0
    assert (stream @ simulator.weights.W_U == before).all()
    stream[..., live] += 1.0
    assert (stream @ simulator.weights.W_U != before).any()


def test_heads_and_feed_forwards_in_words(
    model: CompiledTransformer, simulator: CompiledTransformer
) -> None:
    words = NetworkInWords(model)
    place = {stay.label: f"s{slot}" for slot, stays in enumerate(words.slots) for stay in stays}
    first, share = place["not (indices == 0)"], place["1/length"]
    assert words.heads[0][0].moves == (f"1 − {first} → {share}",)
    assert words.heads[1][0].moves == (f"{place['tokens']} → {place['reverse']}",)
    assert [text for _, text in words.says(0)] == [f"{place['length']} = round(1 / {share})"]
    assert words.says(1) == []
    # Keys are counted by the share of the attention that the sink gets.
    counting = NetworkInWords(
        locum.compile(locum.selector_width(same_token), length=4, vocabulary="ab", feed_forward="exact")
    )
    ((move,),) = (head.moves for head in counting.heads[0])
    ((_, count),) = counting.says(0)
    assert re.fullmatch(r"share of the sink → s\d", move)
    assert re.fullmatch(rf"s\d = round\(1 / {move[-2:]}\) − 1", count)
    # The last feed-forward of U is the quotient of a softmax.
    ((_, quotient),) = NetworkInWords(simulator).says(2)
    assert re.fullmatch(r"s\d+ = \(s\d+·s\d+ \+ s\d+·s\d+\) / \(s\d+ \+ s\d+\)", quotient)


def test_what_is_added_to_a_slot_that_holds_something() -> None:
    words = NetworkInWords(UniversalSimulator(4, 4, 4).compile(feed_forward="exact"))
    assert any(re.match(r"s\d+ \+= ", text) for layer in range(3) for _, text in words.says(layer))


def test_formulas() -> None:
    assert combination(np.array([0.0, -1.0]), 1.0).text == "1 − s1"
    assert combination(np.zeros(2), 0.0).text == "0"
    assert combination(np.array([-2.0, 0.0]), 0.0).text == "−2·s0"

    def of(*instructions: Instruction, arguments: int = 2) -> str:
        functions = Functions(arguments, instructions, (arguments + len(instructions) - 1,))
        return expressions(functions, np.eye(arguments), np.zeros(arguments))[0].text

    assert of(Instruction("add", (0, 1)), Instruction("multiply", (2, 1))) == "(s0 + s1)·s1"
    assert of(Instruction("subtract", (0, 1)), Instruction("subtract", (0, 2))) == "s0 − (s0 − s1)"
    assert of(Instruction("multiply", (0, 1)), Instruction("divide", (0, 2))) == "s0 / (s0·s1)"
    assert (
        of(Instruction("less", (0, 1)), Instruction("if_else", (2, 0, 1))) == "s0 if (s0 < s1) else s1"
    )
    assert of(Instruction("negate", (0,)), Instruction("absolute", (2,))) == "|−s0|"
    assert of(Instruction("maximum", (0, 1))) == "max(s0, s1)"
    assert of(Instruction("member", (0,), {"values": [1, 2, 3, 4, 5]})) == "s0 in {1, 2, 3, 4, …}"
    # What is shared again and again does not grow without end.
    squares = [Instruction("multiply", (0, 1)), *(Instruction("add", (n, 0)) for n in range(2, 300))]
    assert len(of(*squares)) <= 170


def by_hand(*units: tuple[list[float], list[float]], bias: float = 0.0) -> NetworkInWords:
    """A network of ReLU units on two slots: for each unit, what it reads and what it writes."""
    exact = locum.compile(
        locum.indices * locum.indices, length=4, vocabulary="ab", feed_forward="exact"
    )
    feed = FeedForwardWeights(
        "relu",
        np.array([reads for reads, _ in units]).T,
        np.zeros(len(units)),
        np.array([writes for _, writes in units]),
        np.array([bias, 0.0]),
    )
    weights = replace(
        exact.weights,
        W_E=np.zeros((2, 2)),
        W_pos=np.array([[1.0, 0.0]] * 4),
        layers=(LayerWeights(None, feed),),
        W_U=np.array([[0.0], [1.0]]),
        b_U=np.zeros(1),
    )
    config = replace(exact.config, slots=("one", "size"), heads=((),), sink=False, outputs=None)
    return NetworkInWords(CompiledTransformer(config, weights))


def test_units_are_counted() -> None:
    words = by_hand(([1.0, 0.0], [0.0, 1.0]), ([-1.0, 0.0], [0.0, 1.0]))
    assert words.says(0) == [(1, "s1 = 2 relu units on s0")]


def test_what_is_taken_off_itself_is_erased_and_nothing_else() -> None:
    away = [([1.0, 0.0], [-1.0, 0.0]), ([-1.0, 0.0], [1.0, 0.0])]
    assert by_hand(*away).erased(2) == [0]
    assert by_hand(([4.0, 0.0], [-0.25, 0.0]), ([-4.0, 0.0], [0.25, 0.0])).erased(2) == [0]
    words = by_hand(*away)
    assert words.says(0) == []
    assert words.held(0, 2) is None
    for units in (
        away[:1],  # positive numbers only
        [([1.0, 0.0], [-0.5, 0.0]), ([-1.0, 0.0], [0.5, 0.0])],  # half of it
        [*away, ([0.0, 1.0], [1.0, 0.0])],  # something else comes instead
        [([1.0, 1.0], [-1.0, 0.0]), ([-1.0, -1.0], [1.0, 0.0])],  # another slot is in it
        [([1.0, 0.0], [1.0, 0.0]), ([-1.0, 0.0], [1.0, 0.0])],  # |s0| is added
    ):
        other = by_hand(*units)
        assert other.erased(2) == []
        assert other.says(0) == [(0, f"s0 += {other.feeds[0][0][1]}")]
    assert by_hand(*away, bias=1.0).erased(2) == []


@pytest.mark.parametrize("kind", ["glu", "relu", "gelu"])
def test_an_eraser_is_no_reader(kind: str) -> None:
    """A slot that is only erased any more is idle, as it is with exact feed-forwards."""
    words = NetworkInWords(locum.compile(reverse, length=8, vocabulary="abcd", feed_forward=kind))
    first = next(stay for stays in words.slots for stay in stays if stay.label == "not (indices == 0)")
    assert (first.first, first.last, first.until) == (0, 1, 2)


# The report -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def of_units() -> CompiledTransformer:
    options = {"attention": "softmax", "feed_forward": "relu", "tolerance": 1e-3, "ranges": (-1, 1)}
    compiled = UniversalSimulator(2, 2, 2).compile("native", **options)
    assert isinstance(compiled, CompiledTransformer)
    return compiled


def test_a_report_in_a_few_lines(of_units: CompiledTransformer, with_sink: CompiledTransformer) -> None:
    said, report = dict(facts(of_units)), of_units.config.report
    assert said["takes"] == "12 tokens: real numbers from −1 to 1"
    assert said["error"] == f"at most {at_most(of_units.error_bound)} (certified)"
    assert said["scores"] == "equality by squares (10 heads), the simulated softmax itself (1 head)"
    products, _, masks = report["feed_forward"]
    assert (
        said["units"] == f"layer 0: product {products['product']:,}; layer 2: masked {masks['masked']}"
    )
    leak = max(entry["leak"] for entry in report["softmax"])
    assert said["softmax"].endswith(f": at most {at_most(leak, '.2g')} of the attention leaks")
    assert "sink" not in said
    plain = dict(facts(with_sink))
    assert plain["sink"] == "where nothing is selected (1 head)"
    assert plain["error"] == "0 (certified)"
    assert not plain.keys() & {"units", "softmax"}


def test_a_report_at_length(of_units: CompiledTransformer) -> None:
    lines = details(of_units).splitlines()
    names = [f"{layer}.{head}" for layer, heads in enumerate((6, 4, 1)) for head in range(heads)]
    assert [line.split()[1][:-1] for line in lines if line.startswith("  head ")] == names
    heads = iter(line for line in lines if line.startswith("  head "))
    for labels in of_units.config.heads:  # in the order of the weights
        for label in labels:
            assert f": {label}; scored by " in next(heads)
    gates = of_units.config.report["realised"]
    (products,) = [line for line in lines if line.startswith("  product ×4: ")]
    assert f"{gates[0]['how']}, {gates[0]['units']} units each; error " in products
    assert network_data(of_units, [])["report"] == "\n".join(lines)


def test_thousands_of_units_are_a_few_lines() -> None:
    network = UniversalSimulator(3, 3, 3).compile(
        "native", feed_forward="relu", tolerance=1e-3, ranges=(-1, 1)
    )
    assert network.architecture.d_mlp > 2000
    assert max(len(f"{name} {value}") for name, value in facts(network)) < 100


def test_a_network_of_one_answer_says_so() -> None:
    """Its vocabulary lacks what the program asks for, more often than not."""
    asked = locum.aggregate(locum.full, locum.indicator(locum.tokens == "a")) > 0.5
    assert dict(facts(locum.compile(asked, length=3, vocabulary="01")))["output"] == (
        "F for every input"
    )
    assert "output" not in dict(facts(locum.compile(asked, length=3, vocabulary="ab")))


# Positions ----------------------------------------------------------------------------------------


def test_the_entries_of_the_result_of_the_simulator_have_positions(
    model: CompiledTransformer, simulator: CompiledTransformer
) -> None:
    assert answer_positions(simulator) == [[0, 1], [2, 3]]
    assert answer_positions(model) is None


# The data of the playground -------------------------------------------------------------------------


def test_the_data_contain_the_numbers_of_the_run(
    model: CompiledTransformer, with_sink: CompiledTransformer
) -> None:
    data = network_data(model, ["abcd", "ba"])
    assert [entry["tokens"] for entry in data["inputs"]] == [list("abcd"), list("ba")]
    first = data["inputs"][0]
    assert first["answer"] == ["d", "c", "b", "a"]
    assert first["positions"] == ["a", "b", "c", "d"]
    (shifted,) = network_data(with_sink, ["abcd"])["inputs"]
    assert shifted["positions"] == ["sink", "a", "b", "c", "d"]
    assert shifted["answer"] == ["-", "a", "b", "c"]
    _, cache = model.run_with_cache("abcd")
    for layer in range(2):
        for number, sparse in enumerate(first["patterns"][layer]):
            pattern = np.zeros(sparse["shape"])
            pattern.flat[sparse["at"]] = sparse["values"]
            np.testing.assert_allclose(pattern, cache["pattern", layer][0, number], atol=1e-6)
    stream = np.array(first["stream"]).transpose(0, 2, 1)
    np.testing.assert_allclose(stream, model.residual("abcd").values, rtol=1e-5)
    assert data["heads"][1][0]["label"] == "flip"
    assert ["not (indices == 0)", "reverse"] in [[s["label"] for s in stays] for stays in data["slots"]]
    assert data["heads"][0][0]["weights"].keys() == {"W_Q", "W_K", "W_V", "W_O"}


class Elements(HTMLParser):
    """Checks that elements are closed in the order in which they were opened."""

    VOID = frozenset({"meta", "br", "link", "img", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_a_program_without_heads() -> None:
    for program in (locum.tokens, locum.indices + 1, locum.constant(3)):
        network = locum.compile(program, length=4, vocabulary="ab", feed_forward="exact")
        assert network_data(network, ["ab"])["depth"] == 0


def test_large_networks_are_listed_in_part(
    monkeypatch: pytest.MonkeyPatch, simulator: CompiledTransformer
) -> None:
    monkeypatch.setattr(module, "MAX_HEADS", 2)
    data = network_data(simulator, [[0.5] * 12])
    assert [len(heads) for heads in data["heads"]] == [2, 2, 2]
    assert data["leftOut"] == [3, 3, 2]


def test_no_text_breaks_out_of_a_notebook() -> None:
    nasty = "</script><script>alert(1)</script><!--"
    network = locum.compile(
        locum.tokens, length=2, vocabulary=[nasty, "b"], name=nasty, feed_forward="exact"
    )
    assert "<script" not in network._repr_html_()


def test_in_a_notebook(model: CompiledTransformer) -> None:
    shown = model._repr_html_()
    elements = Elements()
    elements.feed(shown)
    assert elements.open == []
    assert "1.0: flip" in shown
    order = [shown.index(f"layer {n}, attention") for n in (1, 0)]
    assert order == sorted(order)
    assert order[-1] < shown.index(f"{len(model.slots)} slots")
