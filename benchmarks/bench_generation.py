"""Generation of text on U, relative to eager execution, in one process.

A GPT-2 with random weights (vocabulary 5,000, d = 128, 6 layers, 64 positions) continues a prompt of 8
tokens greedily up to its last position, in float32 on one thread. The calls alternate: ``generate`` of
the model, and ``generate`` of a copy that is compiled with ``model.compile(backend="locum",
fullgraph=True)`` and has a static cache. The table has the time per token, the median of the paired
ratios of CPU time with quartiles, and whether the tokens are equal. Each call runs once before the
measurement, which makes the plans.

    python benchmarks/bench_generation.py --sizes 64 --repeats 7

needs torch and transformers; ``--sizes``: numbers of positions.
"""

from __future__ import annotations

import copy
import importlib
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Row, least, main

VOCABULARY, D, LAYERS, HEADS, PROMPT = 5000, 128, 6, 4, 8


def make_model(positions: int) -> Any:
    """Return the model."""
    import torch

    transformers: Any = importlib.import_module("transformers")
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=positions, n_embd=D, n_layer=LAYERS, n_head=HEADS,
        bos_token_id=0, eos_token_id=None, pad_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip
    model = transformers.GPT2LMHeadModel(config).eval()
    for name, parameter in model.named_parameters():  # without biases, one of which would always win
        gains = "ln" in name and name.endswith("weight")
        spread = 0.0 if name.endswith("bias") else 0.1
        parameter.data = gains + spread * torch.randn(parameter.shape)
    model.tie_weights()
    return model


def measure(sizes: list[int], repeats: int) -> list[Row]:
    """Measure each number of positions."""
    import torch

    torch.set_num_threads(1)
    rows = []
    for positions in sizes:
        model = make_model(positions)
        on_u = copy.deepcopy(model)
        on_u.compile(backend="locum", fullgraph=True)
        on_u.generation_config.cache_implementation = "static"
        new = positions - PROMPT
        prompt = torch.randint(0, VOCABULARY, (1, PROMPT))

        def generate(chosen: Any, prompt: Any = prompt, new: int = new) -> list[int]:
            with torch.no_grad():
                ids = chosen.generate(prompt, max_new_tokens=new, do_sample=False, disable_compile=True)
            return [int(one) for one in ids[0, PROMPT:]]

        generated = generate(on_u)
        same = generated == generate(model)
        clock = time.process_time
        times = [
            (least(lambda: generate(on_u), 1, clock), least(lambda: generate(model), 1, clock))  # noqa: B023
            for _ in range(repeats)
        ]
        ratios = sorted(mine / its for mine, its in times)
        rows.append(
            {
                "positions": positions,
                "same": same,
                "distinct": len({*generated}),
                "ratio": statistics.median(ratios),
                "quartiles": [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]],
                "u_ms": 1e3 * statistics.median(mine for mine, _ in times) / new,
                "eager_ms": 1e3 * statistics.median(its for _, its in times) / new,
            }
        )
    return rows


def lines(rows: list[Row]) -> list[str]:
    """Return one line for each number of positions."""
    result = ["positions  U ms/token  eager ms/token  ratio (quartiles)  same tokens"]
    for row in rows:
        low, high = row["quartiles"]
        result.append(
            f"{row['positions']:9d} {row['u_ms']:11.2f} {row['eager_ms']:15.2f}  "
            f"{row['ratio']:.2f} ({low:.2f}–{high:.2f})   {row['same']}, "
            f"{row['distinct']} different tokens"
        )
    return result


if __name__ == "__main__":
    title = "Generation of text on U, relative to eager execution"
    main("generation", title, "64", measure, title, lines)
