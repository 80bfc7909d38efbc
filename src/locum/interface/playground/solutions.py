"""Define a solution of each built-in exercise, with the smallest known number of layers and heads."""

SOLUTIONS = {
    "reverse": "# The key at length - 1 - i is the mirror image of position i.\n"
    "flip = select(indices, length - 1 - indices, ==);\nreverse = aggregate(flip, tokens);\n",
    "shift": "# Position i reads key i - 1; position 0 selects no key and gives the default.\n"
    'right = aggregate(select(indices + 1, indices, ==), tokens, "_");\n',
    "count": "# The mean of a 0/1 sequence, multiplied by the length, is the number of ones.\n"
    'number = round(length * aggregate(full_s, indicator(tokens == "a")));\n',
    "histogram": "histogram = selector_width(select(tokens, tokens, ==));\n",
    "new": "# The mean of ones is 1, and the default is 0 where no earlier token is equal.\n"
    "earlier = select(tokens, tokens, ==) and select(indices, indices, <);\n"
    "new = aggregate(earlier, 1) == 0;\n",
    "palindrome": "other = aggregate(select(indices, length - 1 - indices, ==), tokens);\n"
    "palindrome = aggregate(full_s, indicator(not (other == tokens))) == 0;\n",
    "sort": "before = select(tokens, tokens, <) or (select(tokens, tokens, ==) and "
    "select(indices, indices, <));\nrank = selector_width(before);\n"
    "sorted = aggregate(select(rank, indices, ==), tokens);\n",
    "listing5": "tokens = tokens_float;\n"
    "partner = indices + 1 - 2 * (indices % 2);\n"
    "other = aggregate(select(indices, partner, ==), tokens);\n"
    "answer = max(tokens, other) if indices % 2 == 0 else min(tokens, other);\n",
    "balanced": "# The mean of the signs up to here has the sign of the depth; no length is needed.\n"
    'sign = indicator(tokens == "(") - indicator(tokens == ")");\n'
    "depth = aggregate(select(indices, indices, <=), sign);\n"
    "low = aggregate(full_s, indicator(depth < 0)) > 0;\n"
    "balanced = (aggregate(full_s, sign) == 0) and not low;\n",
    "two_kinds": 'opened = (tokens == "(") or (tokens == "[");\n'
    "sign = 2 * indicator(opened) - 1;\n"
    "depth = round((indices + 1) * aggregate(select(indices, indices, <=), sign));\n"
    "level = depth + indicator(not opened);\n"
    "same = select(level, level, ==) and select(opened, True, ==);\n"
    "candidates = same and select(indices, indices, <);\n"
    'partner = aggregate(best(candidates, indices), tokens, "?");\n'
    'square = (partner == "[") and (tokens == "]");\n'
    'fits = opened or ((partner == "(") and (tokens == ")")) or square;\n'
    "wrong = aggregate(full_s, indicator(not fits or depth < 0)) > 0;\n"
    "balanced = (aggregate(full_s, sign) == 0) and (not wrong);\n",
}
