"""Generate a dataset: make candidates until there are enough that are distinct, then write the index.

Every candidate is a case of a sweep, so that generation runs on several processes and goes on where it
was interrupted. What is chosen depends on the candidates' order alone, not on when they were made, so
that a dataset that was interrupted is the same to the last byte.

The order of the candidates depends on the seed alone. Named programs come first, every one in its first
size before any in its second; random programs go through the layers from 1 to 8 repeatedly, so that a
dataset of any size has as many of each.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from locum import __version__
from locum.errors import InputError, LocumError
from locum.experiments.dataset.index import write_index
from locum.experiments.dataset.making import ITEMS, LAYERS, RANDOM
from locum.experiments.dataset.program_families import SOURCES
from locum.experiments.dataset.tiers import PLAIN, REALISTIC, ROTATED, TIERS
from locum.experiments.dataset.verify import WORKSHOP
from locum.experiments.sweeps import Case, Result, run
from locum.files import make_folder, read_json, write_file
from locum.networks.transformer.weights import HARD, SOFTMAX

#: The tiers that are made unless others are asked for.
DEFAULT_TIERS = (PLAIN, ROTATED, REALISTIC)
#: The most circuits of one dataset, and how often more candidates are tried.
MOST, _WAVES = 100_000, 12
#: One in so many candidates is in addition to what is missing: random ones are seldom turned down.
_MORE = 16
_REQUEST, _RESULTS = "request.json", "results.jsonl"
#: Seconds after which a candidate is given up.
_TIME_LIMIT = 600.0

Rows = list[dict[str, Any]]


def generate(
    folder: str | Path,
    size: int,
    *,
    seed: int = 0,
    tiers: Sequence[str] = DEFAULT_TIERS,
    workers: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Write a dataset of ``size`` circuits, each in every tier, and return a summary.

    A folder of the same seed and tiers is gone on with, whatever size it had.
    """
    if not 1 <= size <= MOST:
        raise InputError(f"size: expected 1 to {MOST:,} circuits, got {size}")
    for tier in tiers:
        if tier not in TIERS:
            raise InputError(f"tier: expected some of {', '.join(TIERS)}, got {tier!r}")
    if not tiers:
        raise InputError(f"tier: expected one or more of {', '.join(TIERS)}, got none")
    chosen = [tier for tier in TIERS if tier in tiers]
    place = Path(folder).absolute()
    _claim(place, seed, chosen)
    making = _Making(place, seed, chosen, workers, progress)
    rows = making.rows(size)
    kept = {row["folder"] for row in rows}
    for item in (place / ITEMS).glob("*/*"):
        if item.relative_to(place).as_posix() not in kept:
            shutil.rmtree(item)
    summary = write_index(place, rows, {"size": size, "seed": seed, "tiers": chosen})
    return summary | {"turned_down": making.turned_down}


def _claim(place: Path, seed: int, tiers: list[str]) -> None:
    """Make the folder, or see that it is one that can be gone on with."""
    request = place / WORKSHOP / _REQUEST
    asked = {"seed": seed, "tiers": tiers, "locum": __version__}
    if request.exists():
        held = read_json(request, 2**16)
        if held != asked:
            raise InputError(
                f"{place} holds a dataset of {held}, and {asked} was asked for; try a new folder"
            )
        return
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"{place} holds other files; try the name of a new folder")
    make_folder(request.parent)
    write_file(request, json.dumps(asked))


class _Making:
    """Candidates in waves, each a sweep, until enough distinct circuits are there."""

    def __init__(
        self,
        place: Path,
        seed: int,
        tiers: list[str],
        workers: int | None,
        progress: Callable[[int, int, str], None] | None,
    ) -> None:
        self.place, self.tiers, self.workers, self.progress = place, tiers, workers, progress
        self.named, self.random = named_candidates(seed), random_candidates(seed)
        self.turned_down = 0
        self.programs: set[str] = set()
        self.circuits: set[str] = set()

    def rows(self, size: int) -> Rows:
        """Return the rows of all chosen items."""
        named = math.floor(size * NAMED_SHARE)
        chosen_rows: Rows = []
        chosen: list[Case] = []
        for share, candidates in ((named, self.named), (size, self.random)):
            for _ in range(_WAVES):
                missing = share - len(chosen)
                if missing <= 0:
                    break
                # A few more than are missing: some are turned down, or are there already.
                wave = list(itertools.islice(candidates, missing + missing // _MORE + 1))
                for case, rows in self._made(wave):
                    if len(chosen) < share and self._is_new(rows):
                        chosen_rows += rows
                        chosen.append(case)
        if len(chosen) < size:
            raise LocumError(
                f"expected {size} circuits, but only {len(chosen)} distinct ones were found"
            )
        # What was one too many in a smaller dataset was removed then, or somebody removed it since.
        self._run(chosen, gone=True)
        return chosen_rows

    def _is_new(self, rows: Rows) -> bool:
        first = rows[0]
        digest = first["circuit"].rpartition("-")[2]  # one program may have two names
        # A named program comes in several sizes and kinds of attention; a random one comes once.
        if digest in self.circuits or (
            first["family"] == RANDOM and first["program_hash"] in self.programs
        ):
            return False
        self.circuits.add(digest)
        self.programs.add(first["program_hash"])
        return True

    def _made(self, wave: list[dict[str, Any]]) -> Iterator[tuple[Case, Rows]]:
        """Make a wave of candidates; yield the rows of those that are accepted, in their order."""
        settings = [{**one, "folder": str(self.place), "tiers": self.tiers} for one in wave]
        cases = [Case("circuit", one) for one in settings]
        for case, result in zip(cases, self._run(cases, gone=False), strict=True):
            rows = [dict(row) for row in result.result["rows"]]
            if not rows:
                self.turned_down += 1
                continue
            yield case, rows

    def _run(self, cases: list[Case], *, gone: bool) -> list[Result]:
        """Make what is not in the results yet; with ``gone``, also items that are no longer there."""
        return run(
            cases,
            self.place / WORKSHOP / _RESULTS,
            workers=self.workers,
            time_limit=_TIME_LIMIT,
            retry=True,  # what ended a run before, such as a full disk, may be gone
            gone=gone,
            progress=self._tell,
        ).results

    def _tell(self, done: int, total: int, result: Result) -> None:
        """Stop at the first candidate that was neither made nor rejected."""
        if result.outcome != "done":
            problem = str(result.result.get("error", f"more than {_TIME_LIMIT:g} s"))
            candidate = {
                name: value
                for name, value in result.settings.items()
                if value is not None and name not in ("folder", "tiers")
            }
            raise LocumError(
                f"{problem.removeprefix('LocumError: ')} (candidate: {candidate}); "
                "the same command continues from here"
            )
        if self.progress is not None:
            self.progress(done, total, str(result.settings["source"]))


#: The share of a dataset that named programs have, as far as there are so many.
NAMED_SHARE = 0.4


def named_candidates(seed: int) -> Iterator[dict[str, Any]]:
    """Yield settings of named programs: sizes from the first on, softmax before hard."""
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


def random_candidates(seed: int) -> Iterator[dict[str, Any]]:
    """Yield settings of random programs, without end; one in three has hard attention."""
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
