"""A decoder that writes text on U, against transformers with its cache, in one process.

A model of GPT-2's kind with random weights (vocabulary 5,000, d = 128, 6 layers, 64 positions)
continues a prompt of 8 tokens to the end of its positions, greedily, in float32 on one thread. The two
are run in turn; U by the documented call ``locum.generate(model, prompt, max_new_tokens=…)``, which
reads the model at every call. The table has milliseconds of CPU time per token, the median of the
paired ratios with its quartiles, and whether the texts are the same. Each call is made once before the
clock starts.

    python benchmarks/bench_generation.py --sizes 64 --repeats 7

needs torch and transformers; ``--sizes``: numbers of positions.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import locum
from benchmarks.harness import Row, least, main

VOCABULARY, D, LAYERS, HEADS, PROMPT = 5000, 128, 6, 4, 8


def measure(sizes: list[int], repeats: int) -> list[Row]:
    """Measure each number of positions."""
    import torch

    transformers: Any = importlib.import_module("transformers")
    torch.set_num_threads(1)
    rows = []
    for positions in sizes:
        torch.manual_seed(0)
        sizes_of_model: dict[str, Any] = {"n_embd": D, "n_layer": LAYERS, "n_head": HEADS}
        config = transformers.GPT2Config(
            vocab_size=VOCABULARY,
            n_positions=positions,
            bos_token_id=0,
            eos_token_id=None,
            pad_token_id=0,
            tie_word_embeddings=False,
            **sizes_of_model,
        )
        model = transformers.GPT2LMHeadModel(config).eval()
        for name, parameter in model.named_parameters():  # without biases, which one token would win
            gains = "ln" in name and name.endswith("weight")
            spread = 0.0 if name.endswith("bias") else 0.1
            parameter.data = gains + spread * torch.randn(parameter.shape)
        model.tie_weights()
        new = positions - PROMPT
        prompt = torch.randint(0, VOCABULARY, (1, PROMPT))

        def theirs(model: Any = model, prompt: Any = prompt, new: int = new) -> list[int]:
            with torch.no_grad():
                written = model.generate(prompt, max_new_tokens=new, do_sample=False, use_cache=True)
            return [int(one) for one in written[0, PROMPT:]]

        def ours(model: Any = model, prompt: Any = prompt, new: int = new) -> list[int]:
            ids: list[int] = locum.generate(model, prompt, max_new_tokens=new).ids
            return ids

        written = ours()
        same = written == theirs()
        clock = time.process_time
        times = [(least(ours, 1, clock), least(theirs, 1, clock)) for _ in range(repeats)]
        ratios = sorted(mine / its for mine, its in times)
        row: Row = {
            "positions": positions,
            "same": same,
            "distinct": len({*written}),
            "ratio": statistics.median(ratios),
        }
        row["quartiles"] = [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]]
        row["u_ms"] = 1e3 * statistics.median(mine for mine, _ in times) / new
        row["transformers_ms"] = 1e3 * statistics.median(its for _, its in times) / new
        rows.append(row)
    return rows


def lines(rows: list[Row]) -> list[str]:
    """One line for each number of positions."""
    result = ["positions  U ms/token  transformers ms/token  ratio (quartiles)  same text"]
    for row in rows:
        low, high = row["quartiles"]
        result.append(
            f"{row['positions']:9d} {row['u_ms']:11.2f} {row['transformers_ms']:22.2f}  "
            f"{row['ratio']:.2f} ({low:.2f}–{high:.2f})   {row['same']}, "
            f"{row['distinct']} different tokens"
        )
    return result


if __name__ == "__main__":
    title = "A decoder on U, against transformers with its cache"
    main("generation", title, "64", measure, title, lines)
