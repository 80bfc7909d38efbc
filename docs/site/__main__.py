"""Build the site: ``python -m docs.site [--json]`` writes build/docs/html, and prints broken links."""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path

from docs.site import links, notebooks, reference
from docs.site.contents import ROOT, complaints
from docs.site.staging import stage

BUILD = ROOT / "build" / "docs"


def main() -> int:
    """Build and check the site; return 0 for success, 1 for broken links, 2 if the site cannot be built."""
    try:
        from sphinx.cmd.build import build_main
    except ModuleNotFoundError:
        print("the site needs Sphinx: pip install '.[docs]', or make docs", file=sys.stderr)
        return 2
    begun = time.perf_counter()
    if wrong := complaints():
        print("\n".join(wrong), file=sys.stderr)
        return 2
    source, html = BUILD / "source", BUILD / "html"
    stage(source, generated())
    shutil.rmtree(html, ignore_errors=True)
    options = ["-q", "-W", "--keep-going", "-E", "-c", str(Path(__file__).parent)]
    if build_main([*options, "-d", str(BUILD / "doctrees"), "-b", "html", str(source), str(html)]):
        return 2
    wrong, count, elsewhere = links.check(html)
    pages = len(list(html.rglob("*.html")))
    if "--json" in sys.argv:
        facts = {"pages": pages, "links": count, "elsewhere": sorted(elsewhere), "wrong": wrong}
        print(json.dumps(facts))
    else:
        print("\n".join(wrong) or f"{pages} pages, {count:,} links, all links correct,", end=" ")
        print(f"in {time.perf_counter() - begun:.0f} s: {html.relative_to(ROOT) / 'index.html'}")
        print("External addresses (not checked):", *sorted(elsewhere), sep="\n  ")
    return 1 if wrong else 0


def generated() -> dict[str, str]:
    """Return the texts of all generated pages, by their paths in docs/."""
    return {**reference.pages(), **notebooks.pages()}


if __name__ == "__main__":
    raise SystemExit(main())
