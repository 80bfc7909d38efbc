"""Try model types of transformers on U: ``python -m experiments.architectures -o results.jsonl``.

Each model type is built as a small model with random weights, and runs in eager execution and on U. If
the file of results exists, only missing trials are run; ``--again`` repeats trials that are not right.
``--write docs/architectures.md`` writes the table of this page.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.architectures.table import read_results, summary, write_table


class TimeLimitError(BaseException):
    """Raised if a trial exceeds its time limit.

    This is not an ``Exception``, so ``except Exception`` in a library does not catch it.
    """


def main() -> int:
    """Read the command line and try the model types; return 1 if any result is wrong, otherwise 0."""
    parser = argparse.ArgumentParser(description="Try model types of transformers on U.")
    parser.add_argument("types", nargs="*", help="model types (default: all types of the task)")
    parser.add_argument("-o", "--output", type=Path, required=True, help="results, one JSON per line")
    parser.add_argument("--task", default="base", help="a task of the library, such as 'causal LM'")
    parser.add_argument("--backward", action="store_true", help="train, and also compare gradients")
    parser.add_argument("--again", action="store_true", help="repeat trials that are not right")
    parser.add_argument("--seconds", type=int, default=150, help="time limit of one trial, in seconds")
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    try_all(arguments)
    results = read_results(arguments.output)
    if arguments.write:
        write_table(arguments.write, results)
    counts = summary(results)
    print(json.dumps(counts) if arguments.json else _sentence(counts))
    return 1 if counts["outcomes"].get("wrong") else 0


def try_all(arguments: argparse.Namespace) -> None:
    """Try each requested model type without a result in the output file, and append the results.

    With ``--again``, also try model types whose result is not right.
    """
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    import torch
    import transformers

    from experiments.architectures.small_models import TASKS, model_types
    from experiments.architectures.trial import Trial, try_model

    quiet: Any = transformers.logging.set_verbosity_error
    quiet()
    torch.set_num_threads(1)
    if arguments.task not in TASKS:
        sys.exit(f"--task: expected one of {', '.join(TASKS)}, got {arguments.task!r}")
    known = {(r["model_type"], r["task"], r["backward"]): r for r in read_results(arguments.output)}
    waiting = [
        name
        for name in arguments.types or model_types(arguments.task)
        if (found := known.get((name, arguments.task, arguments.backward))) is None
        or (arguments.again and found["outcome"] != "right")
    ]
    for done, name in enumerate(waiting, 1):
        try:
            with time_limit(arguments.seconds):
                trial = try_model(name, arguments.task, backward=arguments.backward)
        except TimeLimitError:
            problem = f"more than {arguments.seconds} s"
            trial = Trial(name, arguments.task, "not tried", problem, backward=arguments.backward)
        with arguments.output.open("a") as file:
            file.write(json.dumps(trial.to_dict()) + "\n")
        print(f"{done}/{len(waiting)} {name}: {trial.outcome}", file=sys.stderr)


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise :class:`TimeLimitError` if the body of the context takes longer than ``seconds``."""

    def stop(*_: Any) -> None:
        raise TimeLimitError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _sentence(counts: dict[str, Any]) -> str:
    outcomes = Counter(counts["outcomes"])
    tried = sum(outcomes[name] for name in ("right", "wrong", "rejected", "not captured"))
    parts = ", ".join(f"{number} {name}" for name, number in outcomes.most_common())
    return f"{counts['model_types']} model types in {tried} trials: {parts}"


if __name__ == "__main__":
    sys.exit(main())
