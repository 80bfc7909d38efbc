"""Generate a dataset: create candidates until there are enough distinct circuits, then write the index.

Every candidate is a case of a sweep, so generation uses several processes and can be resumed. The
choice depends on the order of the candidates, not on their time of creation. An interrupted and resumed
dataset is therefore identical to an uninterrupted one.

The order of the candidates depends only on the seed. Named programs come first: all programs in their
first size, then all in their second size, and so on. For trained networks, named programs are ordered
by the size of the network instead. Random programs have 1 to 8 layers in turn, so each of these numbers
of layers is about equally frequent among random programs.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from locum import __version__
from locum.errors import InputError, LocumError
from locum.experiments.dataset.index import write_index
from locum.experiments.dataset.making import (
    ITEMS,
    LAYERS,
    PLAIN,
    RANDOM,
    TIERS,
    TRAINED,
    require_packages,
)
from locum.experiments.dataset.program_families import SOURCES
from locum.experiments.dataset.trained_alignment import SIZES, count_parts
from locum.experiments.sweeps import Case, Result, has_no_value, run
from locum.files import make_folder, read_json, write_file
from locum.networks.transformer.weights import HARD, SOFTMAX

#: Folder with data for resuming generation, which is not part of the dataset.
WORKSHOP = ".generation"
#: Maximum number of circuits of a dataset, and of waves of named or of random candidates.
MOST, _WAVES = 100_000, 12
#: Divisor for additional candidates: a wave contains about 1/16 more candidates than are missing, since
#: random programs are rarely rejected.
_MORE = 16
_REQUEST, _RESULTS = "request.json", "results.jsonl"
#: Time limit of a candidate in seconds.
_TIME_LIMIT = 600.0


def generate(
    folder: str | Path,
    size: int,
    *,
    seed: int = 0,
    tier: str = PLAIN,
    workers: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Write a dataset of ``size`` circuits, and return a summary.

    If the folder contains a dataset of any size, this dataset is extended or reduced to ``size``
    circuits. The seed, the tier and the version of Locum must be the same.
    """
    if not 1 <= size <= MOST:
        raise InputError(f"size: expected 1 to {MOST:,} circuits, got {size}")
    if tier not in TIERS:
        raise InputError(f"tier: expected one of {', '.join(TIERS)}, got {tier!r}")
    require_packages(tier)
    place = Path(folder).absolute()
    _claim(place, seed, tier)
    making = _Making(place, seed, tier, workers, progress)
    rows = making.rows(size)
    kept = {row["folder"] for row in rows}
    for item in (place / ITEMS).glob("*/*"):
        if item.relative_to(place).as_posix() not in kept:
            shutil.rmtree(item)
    write_index(place, rows)
    counts = {
        f"by_{column}": dict(sorted(Counter(str(row[column]) for row in rows).items()))
        for column in ("split", "family", "layers", "attention")
    }
    request = {"folder": str(place), "size": size, "seed": seed, "tier": tier}
    return {**request, "items": len(rows), **counts, "turned_down": making.turned_down}


def _claim(place: Path, seed: int, tier: str) -> None:
    """Write the request to a new or empty folder, or check that the folder contains the same request.

    A folder with another request, or with files but no request, raises ``InputError``.
    """
    request = place / WORKSHOP / _REQUEST
    asked = {"seed": seed, "tier": tier, "locum": __version__}
    if request.exists():
        held = read_json(request, 2**16)
        if held != asked:
            raise InputError(
                f"expected a dataset of {asked} in {place}, got a dataset of {held}; try a new folder"
            )
        return
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"{place} holds other files; try the name of a new folder")
    make_folder(request.parent)
    write_file(request, json.dumps(asked))


class _Making:
    """A builder that creates candidates in waves, each a sweep, until there are enough distinct
    circuits.
    """

    def __init__(
        self,
        place: Path,
        seed: int,
        tier: str,
        workers: int | None,
        progress: Callable[[int, int, str], None] | None,
    ) -> None:
        self.place, self.tier, self.workers, self.progress = place, tier, workers, progress
        self.named, self.random = named_candidates(seed), random_candidates(seed)
        self.named_share = NAMED_SHARE
        if tier == TRAINED:
            self.named, self.named_share = trained_candidates(), 1.0
        self.turned_down = 0
        self.programs: set[str] = set()
        self.circuits: set[str] = set()

    def rows(self, size: int) -> list[dict[str, Any]]:
        """Return the index rows of the items of a dataset with ``size`` circuits."""
        named = math.floor(size * self.named_share)
        chosen: list[tuple[Case, dict[str, Any]]] = []
        for share, candidates in ((named, self.named), (size, self.random)):
            for _ in range(_WAVES):
                missing = share - len(chosen)
                if missing <= 0:
                    break
                # A wave contains slightly more candidates than are missing, because some are rejected
                # or are duplicates.
                wave = list(itertools.islice(candidates, missing + missing // _MORE + 1))
                for case, row in self._made(wave):
                    if len(chosen) < share and self._is_new(row):
                        chosen.append((case, row))
        if len(chosen) < size:
            raise LocumError(
                f"expected {size} circuits, but only {len(chosen)} distinct ones were found"
            )
        # Items that an earlier, smaller dataset did not include were deleted, so they are created
        # again.
        lost = [
            case
            for case, row in chosen
            if not Path(self.place, row["folder"], "certificate.json").is_file()
        ]
        self._run(lost, again=lambda result: True)
        return [row for _, row in chosen]

    def _is_new(self, row: dict[str, Any]) -> bool:
        digest = row["circuit"].rpartition("-")[2]  # one program may have two names
        # A named program may occur in several sizes and kinds of attention, a random program only once.
        if digest in self.circuits or (
            row["family"] == RANDOM and row["program_hash"] in self.programs
        ):
            return False
        self.circuits.add(digest)
        self.programs.add(row["program_hash"])
        return True

    def _made(self, wave: list[dict[str, Any]]) -> Iterator[tuple[Case, dict[str, Any]]]:
        """Create a wave of candidates, and yield the accepted cases in order, with their index rows."""
        cases = [Case("circuit", {**one, "folder": str(self.place), "tier": self.tier}) for one in wave]
        # The cause of an earlier failure, such as a full disk, may have been removed.
        for case, result in zip(cases, self._run(cases, again=has_no_value), strict=True):
            if result.result["row"] is None:
                self.turned_down += 1
            else:
                yield case, dict(result.result["row"])

    def _run(self, cases: list[Case], again: Callable[[Result], bool]) -> list[Result]:
        """Create the candidates that have no results yet, or for whose results ``again`` is true."""
        return run(
            cases,
            self.place / WORKSHOP / _RESULTS,
            workers=self.workers,
            time_limit=_TIME_LIMIT,
            again=again,
            progress=self._tell,
        ).results

    def _tell(self, done: int, total: int, result: Result) -> None:
        """Report progress, and raise ``LocumError`` for a candidate that was neither created nor
        rejected.
        """
        if result.outcome != "done":
            problem = str(result.result.get("error", f"more than {_TIME_LIMIT:g} s"))
            candidate = {
                name: value
                for name, value in result.settings.items()
                if value is not None and name not in ("folder", "tier")
            }
            raise LocumError(
                f"{problem.removeprefix('LocumError: ')} (candidate: {candidate}); "
                "the same command continues from here"
            )
        if self.progress is not None:
            self.progress(done, total, str(result.settings["source"]))


#: Fraction of named programs in a dataset, if there are enough.
NAMED_SHARE = 0.4


def named_candidates(seed: int) -> Iterator[dict[str, Any]]:
    """Yield settings of named programs in a random order, for the first size of each program, then the
    second, and so on.

    For each size, all programs with softmax attention precede all programs with hard attention.
    """
    draw = random.Random(f"named {seed}")
    names = sorted(SOURCES)
    for place in range(max(len(source.sizes) for source in SOURCES.values())):
        for attention in (SOFTMAX, HARD):
            draw.shuffle(names)
            for name in names:
                sizes = SOURCES[name].sizes
                if place < len(sizes):
                    size = {"length": sizes[place].length, "tokens": sizes[place].tokens}
                    yield {"source": name, "attention": attention, **size}


def trained_candidates() -> Iterator[dict[str, Any]]:
    """Yield settings of the named programs that can be aligned with a small network, smallest first.

    The size of each program is the first possible pair of ``SIZES``.
    """
    found = []
    for name, source in SOURCES.items():
        for length, tokens in SIZES:
            parts = count_parts(source.make, length) if tokens <= len(source.vocabulary) else None
            if parts is not None:
                found.append((*parts, name, length, tokens))
                break
    for *_, name, length, tokens in sorted(found):
        yield {"source": name, "attention": SOFTMAX, "length": length, "tokens": tokens}


def random_candidates(seed: int) -> Iterator[dict[str, Any]]:
    """Yield an endless sequence of settings of random programs, one third of them with hard
    attention.
    """
    number = 0
    while True:
        attention = HARD if number // len(LAYERS) % 3 == 2 else SOFTMAX
        layers = LAYERS[number % len(LAYERS)]
        yield {
            "source": RANDOM,
            "attention": attention,
            "layers": layers,
            "seed": seed * 1_000_000 + number,
        }
        number += 1
