"""Score rows of heads against all keys, in chunks of bounded memory.

A :class:`ScoredSelector` is a selector for some rows and all keys, with query and key vectors whose
products are the scores. The rows belong to one head, or to all heads of a family with the same keys.
For each chunk of rows and keys, the scores are computed and compared with the full score, which
selected keys reach. The selected keys are counted, and their values are added up (:class:`HeadValues`).
Counts and sums of the chunks of a row are added, and ``best`` keeps the highest score of all chunks.

If one product decides all comparisons, and one of them is ``==`` with different keys, at most one key
can reach the full score. One pass that finds the maximum of each row and its index is then sufficient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from locum.execution.arrays import Array, Arrays
from locum.execution.heads.head_scores import Code, HeadValues, unreachable
from locum.graph.atoms import EXACT_INTEGERS
from locum.graph.selector_normal_form import AllOf, Best, Formula, Literal, bests, parts_of, walk

#: Number of bytes for one pair of a chunk: for scores only, and with booleans and intermediate results.
_BYTES_OF_SCORES = 4
_BYTES_OF_A_PAIR = 16
#: On a GPU, vectors are padded to a multiple of this number of coordinates, for faster products.
_ALIGNMENT = 8
_MAX_PAIRS = 2**30
#: Memory for one chunk of scores and its intermediate results, in bytes: on a GPU, and elsewhere.
_MEMORY_ON_GPU, _MEMORY = 4 * 2**30, 2**26


def default_memory(arrays: Arrays) -> int:
    """Return the default number of bytes for a chunk of scores; the number is larger on a GPU."""
    return _MEMORY_ON_GPU if arrays.on_gpu else _MEMORY


def score_type(arrays: Arrays, largest: int) -> Any:
    """Return the type in which integers up to ``largest`` are scored exactly.

    The type is float32, except on a GPU if bfloat16 represents these integers. Products are then
    equally exact and need less memory.
    """
    if arrays.on_gpu and largest <= EXACT_INTEGERS["bfloat16"]:
        return arrays.xp.bfloat16
    return arrays.xp.float32


class ScoreProduct:
    """Key vectors and query vectors of several comparisons that are scored by one matrix product."""

    def __init__(self, arrays: Arrays, codes: list[Code]) -> None:
        self.arrays = arrays
        self.codes = codes
        self.full = sum(code.full for code in codes)
        self.width = sum(code.width for code in codes)
        bound = max(sum(code.largest for code in codes), self.full)
        self.type = score_type(arrays, bound)
        self.padding = -self.width % _ALIGNMENT if arrays.on_gpu else 0
        self.keys = self._joined([code.key_vectors(arrays) for code in codes])  # [coordinate, key]

    def queries(self, begin: int, end: int) -> Array:
        """Return the query vectors of rows ``begin`` to ``end`` as an array [row, coordinate]."""
        vectors = [code.query_vectors(self.arrays, begin, end) for code in self.codes]
        return self._joined(vectors).T

    def scores(self, queries: Array, start: int, stop: int) -> Array:
        """Return the scores [row, key] of query vectors for the keys ``start`` to ``stop``."""
        return queries @ self.keys[:, start:stop]

    def _joined(self, vectors: list[Array]) -> Array:
        xp = self.arrays.xp
        parts = [xp.astype(v, self.type) for v in vectors]
        if self.padding:
            parts.append(self.arrays.full((self.padding, vectors[0].shape[1]), 0, self.type))
        return xp.concat(parts, axis=0)


@dataclass
class ScoredSelector:
    """A selector for some rows and all keys, with the vectors that score its comparisons."""

    arrays: Arrays
    formula: Formula
    #: For each comparison, its code. For comparisons that do not depend on the key, the truth value of
    #: each row.
    codes: Mapping[Literal, Code]
    row_truths: Mapping[Literal, Array]
    #: For each ``best``, its score at every key, or :func:`unranked` at keys that cannot be selected.
    ranking: Mapping[Best, Array]
    rows: int
    keys: int
    memory: int
    progress: Callable[[int], None] = lambda pairs: None
    #: Number of pairs scored so far. Each product counts, and each maximum of ``best`` counts again.
    pairs: int = field(init=False, default=0)
    #: For the id of a formula, its product (if it has one), and the comparisons that it decides.
    products: dict[int, ScoreProduct] = field(init=False, default_factory=dict)
    settled: dict[int, set[Formula]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for part in walk(self.formula):
            self.settled[id(part)] = set()
            if isinstance(part, AllOf):
                together = [p for p in part.parts if isinstance(p, Literal) and p in self.codes]
                self.score(part, [p for p in together if self.codes[p].maximal])
            for p in parts_of(part):
                if isinstance(p, Literal) and p in self.codes and p not in self.settled[id(part)]:
                    self.score(p, [p])
        if isinstance(self.formula, Literal) and self.formula in self.codes:
            self.score(self.formula, [self.formula])

    def score(self, formula: Formula, together: list[Literal]) -> None:
        """Prepare one product that scores the comparisons ``together`` of ``formula``."""
        if together and id(formula) not in self.products:
            self.products[id(formula)] = ScoreProduct(self.arrays, [self.codes[p] for p in together])
            self.settled[id(formula)] = set(together)

    @property
    def width(self) -> int:
        """Number of coordinates of the longest query and key vectors."""
        return max((product.width for product in self.products.values()), default=0)

    def scores(self, product: ScoreProduct, queries: Array, start: int, stop: int) -> Array:
        """Return the scores of some rows for keys ``start`` to ``stop``, and count the scored pairs."""
        self.pairs += int(queries.shape[0]) * (stop - start)
        return product.scores(queries, start, stop)

    # Chunks -------------------------------------------------------------------------------------

    def steps(self, bytes_of_a_pair: int) -> tuple[int, int]:
        """Return the numbers of rows and keys of a chunk that fits into the memory limit."""
        pairs = min(max(1, self.memory // bytes_of_a_pair), _MAX_PAIRS)
        keys = min(self.keys, pairs)
        return min(self.rows, max(1, pairs // keys)), keys

    def blocks(self, bytes_of_a_pair: int) -> Iterator[SelectorRows]:
        """Yield all rows in blocks that fit into the memory limit, and report the progress."""
        rows, keys = self.steps(bytes_of_a_pair)
        for begin in range(0, self.rows, rows):
            before = self.pairs
            yield SelectorRows(self, begin, min(begin + rows, self.rows), keys)
            self.progress(self.pairs - before)

    # Results of a head --------------------------------------------------------------------

    def single(self) -> ScoreProduct | None:
        """Return the product that decides the whole formula, or None.

        The result is None if a row might select several keys, or if one product cannot decide all
        comparisons.
        """
        product = self.products.get(id(self.formula))
        parts = self.formula.parts if isinstance(self.formula, AllOf) else (self.formula,)
        if product is None or len(product.codes) < len(parts):
            return None
        return product if any(code.separates for code in product.codes) else None

    def single_keys(self, product: ScoreProduct) -> Array:
        """Return, for each row, the index of the key with the full score, or −1 if there is none."""
        xp, answers = self.arrays.xp, []
        rows, keys = self.steps(_BYTES_OF_SCORES)
        for begin in range(0, self.rows, rows):
            end = min(begin + rows, self.rows)
            queries = product.queries(begin, end)
            answer = self.arrays.full((end - begin,), -1, self.arrays.int)
            before = self.pairs
            for start in range(0, self.keys, keys):
                scores = self.scores(product, queries, start, min(start + keys, self.keys))
                greatest, where = self.arrays.row_maxima(scores)
                answer = xp.where(greatest >= product.full, where + start, answer)
            answers.append(answer)
            self.progress(self.pairs - before)
        return xp.concat(answers)

    def counts(self) -> Array:
        """Return the number of keys that each row selects."""
        product = self.single()
        if product is not None:
            return self.arrays.to_int(self.single_keys(product) >= 0)
        answers = []
        for block in self.blocks(_BYTES_OF_A_PAIR):
            answers.append(sum(self.arrays.row_counts(mask) for _, _, mask in block.masks()))
        return self.arrays.xp.concat(answers)

    def pattern(self) -> Array:
        """Return the whole attention pattern as a boolean matrix [row, key]."""
        xp, rows = self.arrays.xp, []
        for block in self.blocks(_BYTES_OF_A_PAIR):
            rows.append(xp.concat([mask for _, _, mask in block.masks()], axis=1))
        return xp.concat(rows, axis=0)

    def sums(self, values: HeadValues) -> tuple[Array, Array]:
        """Return the number of keys that each row selects, and the sum of their values."""
        xp, arrays = self.arrays.xp, self.arrays
        product = self.single()
        if product is not None:
            return values.at(arrays, self.single_keys(product))
        counts, totals = [], []
        for block in self.blocks(_BYTES_OF_A_PAIR):
            count = inside = arrays.full((block.end - block.begin,), 0, arrays.int)
            total = arrays.full((block.end - block.begin,), 0, values.type(arrays))
            for start, stop, mask in block.masks():
                count = count + arrays.row_counts(mask)
                keys = values.between(start, stop)
                if keys[0] < keys[1]:
                    chosen = values.columns(arrays, mask, start, keys)
                    inside = inside + arrays.row_counts(chosen)
                    total = total + values.total(arrays, chosen, (block.begin, block.end), keys)
            if bool(xp.any(inside != count)):
                raise unreachable()
            counts.append(count)
            totals.append(total)
        return xp.concat(counts), xp.concat(totals)


def unranked(arrays: Arrays, score: Array) -> float:
    """Return the value that marks the keys that ``best`` cannot select: NaN, or the largest int64."""
    return 2**63 - 1 if arrays.is_int(score) else math.nan


class SelectorRows:
    """A block of rows of a head, with their query vectors and the highest score of each ``best``."""

    def __init__(self, head: ScoredSelector, begin: int, end: int, step: int) -> None:
        self.head, self.begin, self.end, self.step = head, begin, end, step
        self.queries = {name: product.queries(begin, end) for name, product in head.products.items()}
        self.maxima: dict[int, Array] = {}
        for best in bests(head.formula):
            self.maxima[id(best)] = self._maximum(best)

    def _maximum(self, best: Best) -> Array:
        """Return the highest score among the keys that each row selects."""
        arrays, score = self.head.arrays, self.head.ranking[best]
        lowest = -(2**63) if arrays.is_int(score) else -float("inf")
        greatest = arrays.full((self.end - self.begin,), lowest, score.dtype)
        for start, stop, mask in self.masks(best.selected):
            scores = arrays.xp.where(mask, score[None, start:stop], greatest[:, None])
            greatest = arrays.xp.maximum(greatest, arrays.xp.max(scores, axis=1))
        unknown = unranked(arrays, score)
        if bool(arrays.xp.any((greatest == unknown) | (greatest != greatest))):
            raise unreachable()
        return greatest

    def masks(self, formula: Formula | None = None) -> Iterator[tuple[int, int, Array]]:
        """Yield the selected keys in one range after another, as (start, stop, mask [row, key])."""
        for start in range(0, self.head.keys, self.step):
            stop = min(start + self.step, self.head.keys)
            yield (
                start,
                stop,
                self._mask(self.head.formula if formula is None else formula, start, stop),
            )

    def _mask(self, formula: Formula, start: int, stop: int) -> Array:
        head, known = self.head, dict[int, Any]()
        for part in walk(formula):
            mask = None
            product = head.products.get(id(part))
            if product is not None:
                mask = head.scores(product, self.queries[id(part)], start, stop) >= product.full
            if isinstance(part, Literal):
                if part in head.row_truths:
                    mask = head.row_truths[part][self.begin : self.end, None]
                known[id(part)] = mask  # None if the comparison is scored together with others
                continue
            if isinstance(part, Best):
                equal = head.ranking[part][None, start:stop] == self.maxima[id(part)][:, None]
                mask = known[id(part.selected)] & equal
                known[id(part)] = ~mask if part.negated else mask
                continue
            for p in part.parts:
                if p in head.settled[id(part)]:
                    continue
                if mask is None:
                    mask = known[id(p)]
                else:
                    mask = mask & known[id(p)] if isinstance(part, AllOf) else mask | known[id(p)]
            known[id(part)] = mask
        result = known[id(formula)]
        shape = (self.end - self.begin, stop - start)
        if result is None:
            return head.arrays.full(shape, True, head.arrays.xp.bool)
        return result if tuple(result.shape) == shape else head.arrays.xp.broadcast_to(result, shape)
