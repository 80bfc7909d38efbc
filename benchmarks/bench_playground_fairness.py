"""Measure the playground under load from honest clients, with and without hostile clients.

Each honest client sends a request with a known result, and the next one 0.2 to 1.5 s after the answer.
If the server is busy, the client makes up to four attempts, as the page of the playground does. A
hostile client sends programs that are likely to exceed limits, one after another. Each client has a
separate address, as with a proxy. Measurements with and without hostile clients alternate, and a ratio
compares two consecutive measurements.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.bench_playground import answered, hostile
from benchmarks.harness import Row, main

#: Duration of a measurement in seconds, numbers of honest and hostile clients, attempts per request.
SECONDS, HONEST, HOSTILE, ATTEMPTS = 60.0, 100, 10, 4


async def ask(port: int, request: dict[str, Any], client: str) -> tuple[int, dict[str, Any]]:
    """Send a request over a new connection; return the HTTP status and the answer."""
    body = json.dumps(request).encode()
    fields = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "X-Forwarded-For": client,
        "Connection": "close",
    }
    head = "\r\n".join(["POST /answer HTTP/1.1", *(": ".join(pair) for pair in fields.items()), "\r\n"])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head.encode() + body)
        reply = await reader.read()
    finally:
        writer.close()
    head, _, text = reply.decode().partition("\r\n\r\n")
    return int(head.split()[1]), json.loads(text)


async def half(port: int, number: int, bad: int) -> dict[str, float]:
    """Send requests from all clients for a fixed time, and return the counts and latencies."""
    counts: Counter[str] = Counter()
    times: list[float] = []
    end = time.monotonic() + SECONDS

    async def honest(seed: int) -> None:
        generator = random.Random(seed)
        await asyncio.sleep(generator.random())
        while time.monotonic() < end:
            by, started, right = generator.randrange(10**6), time.monotonic(), None
            action = "compile" if generator.random() < 0.2 else "run"
            request = {"action": action, "source": f"x = indices + {by};", "input": "abc"}
            for attempt in range(1, ATTEMPTS + 1):
                status, reply = await ask(port, request, f"10.{number}.1.{seed}")
                if status != 503:
                    right = reply["ok"] and answered(reply) == [str(by + i) for i in range(3)]
                    break
                await asyncio.sleep(attempt * (0.5 + generator.random()))
            counts["gave up" if right is None else "right" if right else "wrong"] += 1
            times.append(time.monotonic() - started)
            await asyncio.sleep(generator.uniform(0.2, 1.5))

    async def enemy(seed: int) -> None:
        generator = random.Random(-seed)
        while time.monotonic() < end:
            status, _ = await ask(port, hostile(generator), f"10.{number}.2.{seed}")
            counts["hostile answered" if status == 200 else "hostile rejected"] += 1
            if status == 503:
                await asyncio.sleep(0.2)

    enemies = [asyncio.create_task(enemy(seed)) for seed in range(bad)]
    await asyncio.gather(*(honest(seed) for seed in range(HONEST)))
    for task in enemies:
        task.cancel()
    await asyncio.gather(*enemies, return_exceptions=True)
    times.sort()
    return {
        **{
            name: counts[name]
            for name in ("right", "wrong", "gave up", "hostile answered", "hostile rejected")
        },
        "median ms": 1000 * statistics.median(times),
        "99 % ms": 1000 * times[int(0.99 * len(times))],
        "most ms": 1000 * times[-1],
    }


def measure(sizes: list[int], repeats: int) -> list[Row]:
    """Start the playground, and alternate measurements without and with hostile clients."""
    command = [sys.executable, "-m", "locum", "playground", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(json.loads(process.stdout.readline())["address"].split(":")[2].strip("/"))
        rows: list[Row] = []
        try:
            for number in range(repeats):
                alone = asyncio.run(half(port, 2 * number, 0))
                attacked = asyncio.run(half(port, 2 * number + 1, HOSTILE))
                rows.append({"what": f"{HONEST} honest clients", **alone})
                rows.append({"what": f"{HONEST} honest and {HOSTILE} hostile clients", **attacked})
                rows[-1]["ratio of right answers"] = attacked["right"] / alone["right"]
        finally:
            process.terminate()
    return rows


def lines(rows: list[Row]) -> list[str]:
    """Format each row as one line of text."""
    return [
        f"{row['what']}: " + ", ".join(f"{k} {v:,.4g}" for k, v in row.items() if k != "what")
        for row in rows
    ]


if __name__ == "__main__":
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--seconds", type=float, default=SECONDS)
    chosen, sys.argv[1:] = own.parse_known_args()
    SECONDS = chosen.seconds
    main("playground_fairness", __doc__ or "", "1", measure, "Fairness of the playground", lines)
