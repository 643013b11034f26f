"""Directives for reference pages, and docstrings in numpydoc's form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from reference_text import commands_text, numpydoc_lines, write_api
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from cmdplab.settings import settings_table


def as_numpydoc(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Rewrite a docstring while it is read."""
    lines[:] = numpydoc_lines(lines, obj if what == "class" else None)


def skip(app: Sphinx, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out fields, which the section above lists, and what tuples inherit."""
    if name in ("count", "index") or type(obj).__name__ in ("_tuplegetter", "member_descriptor"):
        return True
    return None


class Commands(SphinxDirective):
    """Every command of the command line with all its arguments and options, from the program."""

    def run(self) -> list[nodes.Node]:
        """Make the sections."""
        return self.parse_text_to_nodes(commands_text(), allow_section_headings=True)


class SettingsTable(SphinxDirective):
    """The settings of algorithms, as the package declares them."""

    def run(self) -> list[nodes.Node]:
        """Make the table."""
        return self.parse_text_to_nodes("\n".join(settings_table()))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register all of it."""
    app.add_directive("commands", Commands)
    app.add_directive("settings-table", SettingsTable)
    app.connect("config-inited", lambda *_: write_api())
    # The theme copies its logo into this folder before anybody has made it.
    (Path(app.outdir) / "_static").mkdir(parents=True, exist_ok=True)
    app.connect("autodoc-process-docstring", as_numpydoc, priority=100)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
