"""Measure the playground: latencies, and the behaviour under load with hostile programs.

Latencies are measured for requests through the server and its workers. If Playwright and Chromium are
installed, the latency of keystrokes in the browser is also measured. Users send requests with known
results, so wrong answers are counted. Each user has a separate address, as with a proxy. Two additional
clients send hostile programs, and workers are killed at random.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Row, main
from locum.interface.playground.example_programs import examples
from locum.interface.playground.requests import tokens

#: Duration of the load in seconds, and number of hostile programs during the load.
SECONDS, HOSTILE = 120.0, 200


def ask(address: str, request: dict[str, Any], client: str = "10.0.0.1") -> tuple[int, dict[str, Any]]:
    """Send a request to the server; return the HTTP status and the answer."""
    body = json.dumps(request).encode()
    headers = {"Content-Type": "application/json", "X-Forwarded-For": client}
    message = urllib.request.Request(f"{address}answer", body, headers)
    try:
        with urllib.request.urlopen(message, timeout=120) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def latency(address: str, action: str, repeats: int) -> dict[str, float]:
    """Return the minimum time in milliseconds for each example that the playground supports."""
    times = {}
    for example in examples():
        request = {"action": action, "source": example["source"], "input": example["input"]}
        if action == "compile":
            request["length"] = max(12, len(tokens(example["input"])))
        if not ask(address, request)[1]["ok"]:
            continue
        best = 1e9
        for _ in range(repeats):
            started = time.perf_counter()
            ask(address, request)
            best = min(best, 1000 * (time.perf_counter() - started))
        times[f"{example['group']}: {example['name']}"] = best
    return times


def hostile(generator: random.Random) -> dict[str, Any]:
    """Draw a request whose program is likely to exceed a limit of the playground."""
    size = generator.randrange(1_000, 9_000)
    source = generator.choice(
        [
            f"x = 0; for i in range({size * 10**5}) {{ x = x + i; }}",
            f"x = 0;\nfor i in range({size}) {{ for j in range({size}) {{ x = x + i * j; }} }}",
            f"x = 9 ^ (9 ^ (9 ^ {size}));",
            "x = indices + 3;\n" + "x = x * x;\n" * (size // 100),
            f"x = sum l in range({size}) {{ aggregate(select(indices, l, ==), indices) }};",
            "x = " + "(" * size + "1" + ")" * size + ";",
            "x = indices;\n" + "x = aggregate(select(x, indices, <=), x, 0) + 1;\n" * (size // 30),
        ]
    )
    if generator.random() < 0.5:
        source += "\nreverse = aggregate(select(indices, length - 1 - indices, ==), tokens);"
        return {"action": "exercise", "exercise": "reverse", "source": source[:20_000]}
    action = generator.choice(["run", "draw", "compile"])
    return {"action": action, "source": source[:20_000], "input": "a" * generator.randrange(1, 65)}


def answered(reply: dict[str, Any]) -> list[str]:
    """Return the values at all positions from an answer to ``run`` or ``compile``."""
    values: list[str] = reply["run"]["output"] if "run" in reply else reply["statements"][0]["values"]
    return values


def load(address: str, pid: int, users: int) -> Row:
    """Send requests of honest users and hostile programs, kill workers at random, and return a row."""
    counts: Counter[str] = Counter({"wrong": 0, "killed": 0})
    times: list[float] = []
    slowest = [0.0]
    lock = threading.Lock()
    end = time.monotonic() + SECONDS

    def verdict(reply: dict[str, Any], right: bool) -> str:
        if not reply["ok"]:
            return "the worker was ended" if "was ended" in reply["error"] else "wrong"
        return "right" if right else "wrong"

    def user(seed: int) -> None:
        generator = random.Random(seed)
        while time.monotonic() < end:
            by = generator.randrange(10**6)
            request = {"action": "run", "source": f"x = indices + {by};", "input": "abc"}
            if generator.random() < 0.2:
                request["action"] = "compile"
            started = time.perf_counter()
            status, reply = ask(address, request, f"10.0.1.{seed}")
            spent = time.perf_counter() - started
            right = bool(reply.get("ok")) and answered(reply) == [str(by + i) for i in range(3)]
            with lock:
                times.append(spent)
                counts["503" if status == 503 else verdict(reply, right)] += 1
            if status == 503:
                time.sleep(1.0)
            time.sleep(generator.random())

    def stranger(seed: int) -> None:
        generator = random.Random(seed)
        for _ in range(HOSTILE // 2):
            request, status = hostile(generator), 503
            while status == 503:
                started = time.perf_counter()
                status, reply = ask(address, request, f"10.0.2.{-seed}")
                time.sleep(0.2)
            with lock:
                slowest[0] = max(slowest[0], time.perf_counter() - started - 0.2)
                counts["hostile, ended"] += 1
                counts["tracebacks"] += "Traceback" in str(reply)

    threads = [threading.Thread(target=user, args=(seed,)) for seed in range(users)]
    threads += [threading.Thread(target=stranger, args=(-seed,)) for seed in (1, 2)]
    most = 0.0
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        rows = processes(pid)
        most = max(most, sum(rss for _, rss, _ in rows) / 1024)
        workers = [own for own, _, command in rows if "playground_worker" in command]
        if workers and random.random() < 0.1 and time.monotonic() < end:
            os.kill(random.choice(workers), signal.SIGKILL)
            counts["killed"] += 1
        time.sleep(1.0)
    times.sort()
    return {
        "what": f"{users} users, {SECONDS:.0f} s, {HOSTILE} hostile programs",
        **counts,
        "median ms": 1000 * statistics.median(times),
        "99 % ms": 1000 * times[int(0.99 * len(times))],
        "slowest hostile s": slowest[0],
        "server and workers MB": most,
    }


def processes(pid: int) -> list[tuple[int, int, str]]:
    """Return the id, the memory in kB and the command of a process and of its children."""
    command = ["ps", "-eo", "pid,ppid,rss,args"]
    table = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split(maxsplit=3) for line in table.stdout.splitlines()[1:]]
    return [(int(own), int(rss), args) for own, parent, rss, args in rows if str(pid) in (own, parent)]


def keystrokes(address: str) -> Row | None:
    """Return a row with the median and largest time from a keystroke to new values.

    The page measures the time from its request to the new values.

    Return None if Playwright or Chromium is not installed.
    """
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return None
    if chromium is None:
        return None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        page.locator("#heads .head").first.wait_for()
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        page.evaluate("performance.clearMeasures()")
        page.locator(".cm-content").click()
        for letter in "\nx = indices + length;":
            page.keyboard.type(letter)
            page.wait_for_timeout(250)
        spent = page.evaluate("performance.getEntriesByName('locum-values').map((e) => e.duration)")
        browser.close()
    # The page sends a request 40 ms after the last keystroke.
    return {
        "what": "keystroke to values in the browser, ms",
        "median": 40 + statistics.median(spent),
        "most": 40 + max(spent),
        "first paint ms": paint,
    }


def measure(sizes: list[int], repeats: int) -> list[Row]:
    """Start the playground, measure latencies and load, and return all rows."""
    command = [sys.executable, "-m", "locum", "playground", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        try:
            rows: list[Row] = []
            for action in ("run", "draw", "compile"):
                times = latency(address, action, repeats)
                what = f"{action} of {len(times)} examples, ms"
                slowest = max(times, key=lambda name: times[name])
                middle = statistics.median(times.values())
                rows.append({"what": what, "median": middle, "most": times[slowest], "of": slowest})
            typed = keystrokes(address)
            rows += [typed] if typed else []
            rows += [load(address, process.pid, users) for users in sizes]
        finally:
            process.terminate()
    return rows


def lines(rows: list[Row]) -> list[str]:
    """Format each row as one line of text."""
    return [
        f"{row['what']}: "
        + ", ".join(
            f"{k} {v if isinstance(v, str) else f'{v:,.0f}'}" for k, v in row.items() if k != "what"
        )
        for row in rows
    ]


def shortened_to(seconds: float) -> None:
    """Set the duration of the load in seconds, and the number of hostile programs in proportion."""
    global SECONDS, HOSTILE
    SECONDS, HOSTILE = seconds, max(10, round(HOSTILE * seconds / SECONDS))


if __name__ == "__main__":
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument("--seconds", type=float, default=SECONDS)
    chosen, sys.argv[1:] = own.parse_known_args()
    shortened_to(chosen.seconds)
    main("playground", __doc__ or "", "100", measure, "The playground", lines)
