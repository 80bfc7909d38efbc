"""Define example SUBLEQ programs for the looped machine, such as addition and bubble sort.

>>> program = PROGRAMS["multiply"]
>>> program.answer(program.interpreted()[-1])
(63,)
"""

from __future__ import annotations

from locum.networks.looped.machine_text import read_subleq

#: Texts of the SUBLEQ programs by name.
TEXTS = {
    "add": """
a = 19
b = 23
add a b
halt
show b
""",
    "maximum": """
a = 17
b = 29
largest = 0
difference = 0
copy a largest
copy b difference
a difference halt
copy b largest
halt
show largest
""",
    "multiply": """
one = 1
a = 7
b = 9
product = 0
count = 0
clear product
copy b count
again: zero count done
add a product
one count
jump again
done: halt
show product
""",
    "factorial": """
bits 16
one = 1
n = 7
factorial = 1
product = 0
count = 0
next: clear product
copy n count
again: zero count done
add factorial product
one count
jump again
done: copy product factorial
one n halt
jump next
halt
show factorial
""",
    "fibonacci": """
bits 16
one = 1
n = 20
a = 0
b = 1
sum = 0
next: copy a sum
add b sum
copy b a
copy sum b
one n halt
jump next
halt
show a
""",
    "divide": """
one = 1
minus = -1
dividend = 100
divisor = 7
quotient = -1
remainder = 0
copy dividend remainder
next: minus quotient
divisor remainder at_most_0
jump next
// If the remainder is 0, the divisor fits once more. If it is negative, undo the last subtraction.
at_most_0: add one remainder
zero remainder negative
one remainder
minus quotient
jump halt
negative: one remainder
add divisor remainder
halt
show quotient remainder
""",
    "greatest common divisor": """
a = 84
b = 36
difference = 0
next: copy a difference
b difference a_at_most_b
copy difference a
jump next
a_at_most_b: copy b difference
a difference halt
copy difference b
jump next
halt
show a
""",
    "power of two": """
bits 16
one = 1
exponent = 12
power = 1
next: add power power
one exponent halt
jump next
halt
show power
""",
    "sum of a list": """
x0 = 11
x1 = -7
x2 = 30
x3 = 5
x4 = -50
sum = 0
add x0 sum
add x1 sum
add x2 sum
add x3 sum
add x4 sum
halt
show sum
""",
    "reverse a list": """
x0 = 1
x1 = 2
x2 = 3
x3 = 4
x4 = 5
held = 0
copy x0 held
copy x4 x0
copy held x4
copy x1 held
copy x3 x1
copy held x3
halt
show x0 x1 x2 x3 x4
""",
    "bubble sort": """
one = 1
x0 = 31
x1 = -4
x2 = 15
x3 = -40
swapped = 0
difference = 0
pass: clear swapped
copy x0 difference
x1 difference x0_in_order
difference x0
add difference x1
copy one swapped
x0_in_order: copy x1 difference
x2 difference x1_in_order
difference x1
add difference x2
copy one swapped
x1_in_order: copy x2 difference
x3 difference x2_in_order
difference x2
add difference x3
copy one swapped
x2_in_order: zero swapped halt
jump pass
halt
show x0 x1 x2 x3
""",
    # Number of steps of the 3n + 1 iteration from 57 to 1. Halving uses repeated subtraction.
    "steps of 3n + 1": """
bits 16
one = 1
minus = -1
n = 57
steps = 0
rest = 0
half = 0
two = 2
next: copy n rest
one rest halt
minus steps
copy n rest
clear half
halve: two rest halved
minus half
jump halve
halved: add one rest
zero rest odd
minus half
copy half n
jump next
odd: copy n rest
add rest n
add rest n
add one n
jump next
halt
show steps
""",
}

#: SUBLEQ programs by name.
PROGRAMS = {name: read_subleq(text) for name, text in TEXTS.items()}
