"""Recognise PARITY by two U's in series, which run the softmax encoder of Chiang and Cholak.

No encoder with unique hard attention recognises PARITY, but this encoder with two softmax layers does.
The script also runs k-PARITY and Match₂ on U.
"""

from __future__ import annotations

import itertools

from locum.languages.first_and_parity import KParity, Match2, Parity

recogniser = Parity()
print("U for words of length 3:", recogniser.simulator(3))
for length in range(4):
    for word in itertools.product("01", repeat=length):
        text = "".join(word)
        accepted = recogniser.accepts(text)
        print(f"{text or 'the empty word':>14}: {'accept' if accepted else 'reject'}")
        assert accepted == recogniser.accepts_directly(text) == (text.count("1") % 2 == 0)

print("\nk-PARITY of the bits 0 and 2, by one U with two heads:")
chosen = KParity(4, (0, 2))
for text in ("1000", "1010", "0111"):
    print(f"{text}: {'accept' if chosen.accepts(text) else 'reject'}")
    assert chosen.accepts(text) == ((int(text[0]) + int(text[2])) % 2 == 0)

print("\nMatch₂ modulo 10, by one softmax attention on U:")
tokens = [3, 4, 7, 10]
print(tokens, Match2(10).matches(tokens))
assert Match2(10).matches(tokens) == [True, False, True, True]
