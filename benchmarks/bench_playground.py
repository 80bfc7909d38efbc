"""Measure the latencies of the playground.

Latencies are measured for requests through the server and its workers. If Playwright and Chromium are
installed, the latency of keystrokes in the browser is also measured.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.harness import Row, machine
from locum.interface.playground.example_programs import examples
from locum.interface.playground.requests import tokens

#: Number of measurements of a request, of which the minimum counts.
REPEATS = 3


def ask(address: str, request: dict[str, Any]) -> dict[str, Any]:
    """Send a request to the server, and return the answer."""
    headers = {"Content-Type": "application/json"}
    message = urllib.request.Request(f"{address}answer", json.dumps(request).encode(), headers)
    with urllib.request.urlopen(message, timeout=120) as reply:
        answer: dict[str, Any] = json.load(reply)
        return answer


def latency(address: str, action: str) -> dict[str, float]:
    """Return the minimum time in milliseconds for each example that the playground supports."""
    times = {}
    for example in examples():
        request = {"action": action, "source": example["source"], "input": example["input"]}
        if action == "compile":
            request["length"] = max(12, len(tokens(example["input"])))
        if not ask(address, request)["ok"]:
            continue
        best = 1e9
        for _ in range(REPEATS):
            started = time.perf_counter()
            ask(address, request)
            best = min(best, 1000 * (time.perf_counter() - started))
        times[f"{example['group']}: {example['name']}"] = best
    return times


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


def measure() -> list[Row]:
    """Start the playground, measure latencies, and return all rows."""
    command = [sys.executable, "-m", "locum", "playground", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        try:
            rows: list[Row] = []
            for action in ("run", "draw", "compile"):
                times = latency(address, action)
                what = f"{action} of {len(times)} examples, ms"
                slowest = max(times, key=lambda name: times[name])
                middle = statistics.median(times.values())
                rows.append({"what": what, "median": middle, "most": times[slowest], "of": slowest})
            typed = keystrokes(address)
            rows += [typed] if typed else []
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


if __name__ == "__main__":
    print(f"The playground ({machine()})")
    print("\n".join(lines(measure())))
