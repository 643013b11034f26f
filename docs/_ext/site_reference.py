"""Reference pages that are made from the package: its names, its commands, its settings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import cmdplab
from cmdplab.cli import app as cli
from cmdplab.settings import settings_table

DOCS = Path(__file__).parents[1]
OTHER = "and also"


def groups() -> dict[str, list[str]]:
    """The public names by what they are for, as docs/python.md has them; none is left out."""
    text = (DOCS / "python.md").read_text()
    table = text.partition("| to | names |")[2].partition("\n\n")[0]
    found: dict[str, list[str]] = {}
    left = set(cmdplab.__all__)
    for line in table.splitlines()[2:]:
        purpose, names = line.strip("| ").split(" | ", 1)
        listed = [name for name in re.findall(r"`(\w+)`", names) if name in left]
        found[purpose] = list(dict.fromkeys(listed))
        left -= set(listed)
    errors = [n for n in sorted(left) if n.endswith("Error")]
    found["catch what goes wrong"] = [*found.get("catch what goes wrong", []), *errors]
    found[OTHER] = sorted(left - set(errors))
    return {purpose: names for purpose, names in found.items() if names}


def exported(room: str) -> list[str]:
    """The names that a room exports and that are no names of `cmdplab` itself."""
    module = import_module(f"cmdplab.{room}")
    names = getattr(module, "__all__", [])
    same = {name for name in cmdplab.__all__ if name in names}
    return [name for name in names if name not in same and (callable(getattr(module, name)))]


def modules(room: str) -> list[tuple[str, str]]:
    """The modules of a room, each with the first sentence of its docstring."""
    home = Path(str(import_module(f"cmdplab.{room}").__file__))
    if home.name != "__init__.py":
        return []
    found = []
    for file in sorted(home.parent.glob("*.py")):
        text = ast.get_docstring(ast.parse(file.read_text())) or ""
        if file.stem != "__init__":
            found.append((f"cmdplab.{room}.{file.stem}", " ".join(text.split("\n\n")[0].split())))
    return found


def write_api() -> None:
    """Write docs/api/: a page of the names, a page of the rooms; autosummary makes the rest."""
    lines = [
        "API",
        "===",
        "",
        "Every public name. The examples are on :doc:`one page that is run",
        "at every build </reference/examples>`.",
        "",
    ]
    for purpose, names in groups().items():
        lines += ["", f"To {purpose}" if purpose != OTHER else "And also"]
        lines += ["-" * 60, "", ".. autosummary::", "   :toctree: .", "   :nosignatures:", ""]
        lines += [f"   cmdplab.{name}" for name in names]
    lines += [
        "",
        "Rooms",
        "-----",
        "",
        "What is less often needed lives in rooms: ``cmdplab.theory``,",
        "``cmdplab.solvers`` and so on. :doc:`They have a page of their own <rooms>`.",
        "",
        ".. toctree::",
        "   :hidden:",
        "",
        "   rooms",
        "",
    ]
    _write(DOCS / "api" / "index.rst", lines)
    lines = [
        "Rooms",
        "=====",
        "",
        "``import cmdplab`` reaches every room: ``cmdplab.theory``,",
        "``cmdplab.statistics``. Names of ``cmdplab`` itself are on :doc:`index`.",
        "",
    ]
    for room in cmdplab._ROOMS:
        about = inspect.getdoc(import_module(f"cmdplab.{room}")) or ""
        lines += ["", f"cmdplab.{room}", "-" * 40, "", first_paragraph(about), ""]
        if names := exported(room):
            lines += [".. autosummary::", "   :toctree: .", "   :nosignatures:", ""]
            lines += [f"   cmdplab.{room}.{name}" for name in names]
        if files := modules(room):
            lines += ["", ".. list-table::", "   :header-rows: 0", "   :widths: 35 65", ""]
            for name, words in files:
                lines += [f"   * - ``{name}``", f"     - {escaped(words)}"]
    _write(DOCS / "api" / "rooms.rst", lines)


def first_paragraph(text: str) -> str:
    """The first paragraph of a docstring, on one line."""
    return escaped(" ".join(text.split("\n\n")[0].split()))


def escaped(text: str) -> str:
    """Text whose stars and bars mean themselves; `name` stays code."""
    return re.sub(r"([*|_])(?![^`]*`(?:[^`]*`[^`]*`)*[^`]*$)", r"\\\1", text)


def _write(path: Path, lines: list[str]) -> None:
    """Write a page if it is another, so that nothing is built twice."""
    path.parent.mkdir(exist_ok=True)
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def fields_of(cls: type) -> list[tuple[str, str, str]]:
    """Fields of a tuple or dataclass: name, type, and the comment behind it in the source."""
    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):
        return []
    body, lines = ast.parse(source).body[0], source.splitlines()
    found = []
    for node in getattr(body, "body", []):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        if node.target.id.startswith("_"):
            continue
        comment = lines[(node.end_lineno or node.lineno) - 1].partition("  # ")[2]
        found.append((node.target.id, ast.unparse(node.annotation), comment.strip()))
    return found


def add_fields(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Give the docstring of a record a numpydoc section of its fields."""
    record = hasattr(obj, "_fields") or hasattr(obj, "__dataclass_fields__")
    if what != "class" or not record:
        return
    if (fields := fields_of(obj)) and "Attributes" not in lines:
        lines += ["", "Attributes", "----------"]
        for field, kind, comment in fields:
            lines += [f"{field} : {kind}", f"    {comment.replace('*', chr(92) + '*')}"]
        lines += [""]


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


def commands_text() -> str:
    """The commands as Markdown: a section each."""
    group: Any = typer.main.get_command(cli)
    return "\n".join(_command(name, each) for name, each in group.commands.items())


def _command(name: str, command: Any) -> str:
    about = inspect.cleandoc(command.help or "")
    head, _, rest = about.partition("\n\n")
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join(["cmdplab", name, *[_argument(each) for each in arguments], "[options]"])
    lines = [f"## cmdplab {name}", "", head, "", rest, "", "```text", usage, "```", ""]
    lines += ["| argument or option | takes | default | meaning |", "|---|---|---|---|"]
    for each in arguments:
        lines.append(f"| `{_argument(each)}` | {_kind(each)} | | {_cell(each.help)} |")
    for each in options:
        names = ", ".join(f"`{opt}`" for opt in each.opts)
        lines.append(f"| {names} | {_kind(each)} | {_default(each)} | {_cell(each.help)} |")
    return "\n".join(lines) + "\n"


def _argument(each: Any) -> str:
    return str(each.name).upper() if each.required else f"[{str(each.name).upper()}]"


def _kind(each: Any) -> str:
    choices = getattr(each.type, "choices", None)
    if choices:
        return ", ".join(f"`{getattr(choice, 'value', choice)}`" for choice in choices)
    if getattr(each, "is_flag", False):
        return "nothing"
    return "whole number" if each.metavar == "INTEGER" else str(each.type.name).lower()


def _default(each: Any) -> str:
    value = each.default
    if value is None or value is False or callable(value):
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")


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
    app.connect("autodoc-process-docstring", add_fields, priority=100)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
