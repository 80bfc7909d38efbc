"""Train a model with ``DDP(torch.compile(model, backend="locum"))`` in two processes.

``python -m tests.torch.data_parallel FOLDER`` writes the trained weights of each process to the folder.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

STEPS, PROCESSES = 4, 2


def make_model() -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        vocab_size=20,
        max_position_embeddings=8,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return BertForSequenceClassification(config).double()


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    return [
        (
            torch.randint(0, 20, (4, 5), generator=generator),
            torch.randint(0, 2, (4,), generator=generator),
        )
        for _ in range(STEPS)
    ]


def train(model: Any, parameters: Any, part: slice) -> None:
    """Take steps of AdamW on a part of each batch."""
    optimiser = torch.optim.AdamW(parameters, lr=1e-2)
    for ids, labels in batches():
        optimiser.zero_grad()
        logits = model(input_ids=ids[part]).logits
        loss: Any = torch.nn.functional.cross_entropy(logits, labels[part])
        loss.backward()
        optimiser.step()


def work(rank: int, folder: str) -> None:
    """Train in one process and save the weights."""
    import locum.torch

    meeting = Path(folder, "meeting").as_uri()
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=PROCESSES)
    model = make_model()
    compiled = torch.compile(model, backend="locum", fullgraph=True)
    size = 4 // PROCESSES
    parallel = DistributedDataParallel(compiled)
    train(parallel, model.parameters(), slice(rank * size, (rank + 1) * size))
    report = locum.torch.report(model)
    state = {"weights": model.state_dict(), "runs": report.runs_by_kind, "share": report.share}
    torch.save(state, Path(folder, f"process{rank}.pt"))
    distributed.destroy_process_group()


if __name__ == "__main__":
    start: Any = spawn
    start(work, (sys.argv[1],), nprocs=PROCESSES)
