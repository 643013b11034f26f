"""Links: those of pages that lead out of docs/ are led back; after the build all are checked.

Every link in the site must lead somewhere, and nothing may be loaded from elsewhere.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src")}
INSIDE = {  # pages that include them
    "../benchmarks/gpu.md": "reference/gpu-measurements.md",
    "../benchmarks/solvers.md": "reference/solver-measurements.md",
}
FOLDER = re.compile(r"\[([^\]]+)\]\([\w./-]+/\)")
NOT_LOADED = {"canonical", "prev", "next", "search", "index", "author"}


class Page(HTMLParser):
    """The identifiers of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at one tag."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        for name, value in given.items():
            if (tag, name) in LOADED and given.get("rel", "") not in NOT_LOADED:
                self.loaded.append(value)


def problems(folder: Path) -> list[str]:
    """Return a sentence for every link that leads nowhere, and for what is loaded from outside."""
    pages = {
        file: Page(file.read_text())
        for file in sorted(folder.rglob("*.html"))
        if "_static" not in file.parts
    }
    found = []
    for file, page in pages.items():
        where = file.relative_to(folder)
        for target in page.loaded:
            if urlsplit(target).netloc:
                found.append(f"{where} loads {target} from elsewhere")
            elif not urlsplit(target).scheme and not _file(file, target).exists():
                found.append(f"{where} loads {target}, which is not there")
        for target in page.links:
            found += _wrong(folder, pages, file, target)
    return found


def _wrong(folder: Path, pages: dict[Path, Page], file: Path, target: str) -> list[str]:
    parts = urlsplit(target)
    if parts.scheme or parts.netloc or target in ("", "#"):
        return []
    there = _file(file, target) if parts.path else file
    there = there / "index.html" if there.is_dir() else there
    if not there.exists():
        return [f"{file.relative_to(folder)} points to {target}, which is not there"]
    anchor = unquote(parts.fragment)
    if anchor and there in pages and anchor not in pages[there].ids:
        return [f"{file.relative_to(folder)} points to {target}: no such place on that page"]
    return []


def _file(page: Path, target: str) -> Path:
    return (page.parent / unquote(urlsplit(target).path)).resolve()


def lead_back(app: Sphinx, name: str, source: list[str]) -> None:
    """Let links out of docs/ lead to pages of the site, and name folders instead of linking."""
    for outside, inside in INSIDE.items():
        source[0] = source[0].replace(f"]({outside})", f"]({inside})")
    source[0] = FOLDER.sub(r"`\1`", source[0])


def check(app: Sphinx, error: Exception | None) -> None:
    """Warn of every problem, which `-W` makes an error."""
    if error is None and app.builder.format == "html":
        for sentence in sorted(set(problems(Path(app.outdir).resolve()))):
            logging.getLogger(__name__).warning(sentence, type="site", subtype="links")


def setup(app: Sphinx) -> dict[str, Any]:
    """Check when the build has ended."""
    app.connect("source-read", lead_back)
    app.connect("build-finished", check, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
