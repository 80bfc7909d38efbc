"""A right solution for each exercise of the playground."""

SOLUTIONS = {
    "reverse": "reverse = aggregate(select(indices, length - 1 - indices, ==), tokens);",
    "shift": 'right = aggregate(select(indices + 1, indices, ==), tokens, "_");',
    "count": 'number = round(length * aggregate(full_s, indicator(tokens == "a")));',
    "histogram": "histogram = selector_width(select(tokens, tokens, ==));",
    "new": "earlier = select(tokens, tokens, ==) and select(indices, indices, <);\n"
    "new = selector_width(earlier) == 0;",
    "palindrome": "other = aggregate(select(indices, length - 1 - indices, ==), tokens);\n"
    "palindrome = aggregate(full_s, indicator(not (other == tokens))) == 0;",
    "sort": "before = select(tokens, tokens, <) or (select(tokens, tokens, ==) and "
    "select(indices, indices, <));\nrank = selector_width(before);\n"
    "sorted = aggregate(select(rank, indices, ==), tokens);",
    "listing5": "tokens = tokens_float;\n"
    "partner = indices + 1 - 2 * (indices % 2);\n"
    "other = aggregate(select(indices, partner, ==), tokens);\n"
    "answer = max(tokens, other) if indices % 2 == 0 else min(tokens, other);",
    "balanced": 'sign = indicator(tokens == "(") - indicator(tokens == ")");\n'
    "depth = round((indices + 1) * aggregate(select(indices, indices, <=), sign));\n"
    "low = aggregate(full_s, indicator(depth < 0)) > 0;\n"
    "end = aggregate(select(indices, length - 1, ==), depth);\n"
    "balanced = (end == 0) and not low;",
    "two_kinds": 'opened = (tokens == "(") or (tokens == "[");\n'
    "sign = 2 * indicator(opened) - 1;\n"
    "depth = round((indices + 1) * aggregate(select(indices, indices, <=), sign));\n"
    "low = aggregate(full_s, indicator(depth < 0)) > 0;\n"
    "end = aggregate(select(indices, length - 1, ==), depth);\n"
    "level = depth + indicator(not opened);\n"
    "same = select(level, level, ==) and select(opened, True, ==);\n"
    "candidates = same and select(indices, indices, <);\n"
    'partner = aggregate(best(candidates, indices), tokens, "?");\n'
    'square = (partner == "[") and (tokens == "]");\n'
    'fits = opened or ((partner == "(") and (tokens == ")")) or square;\n'
    "wrong = aggregate(full_s, indicator(not fits)) > 0;\n"
    "balanced = (end == 0) and (not low) and (not wrong);",
}
