"""The text of the reference pages, made from the package: names, commands, docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import typer

import cmdplab
from cmdplab.cli import app as cli

DOCS = Path(__file__).parents[1]
OTHER = "and also"


def groups() -> dict[str, list[str]]:
    """Return the public names by what they are for, as docs/python.md has them."""
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


def exported(subpackage: str) -> list[str]:
    """Return the names that a subpackage exports and that are no names of `cmdplab` itself."""
    module = import_module(f"cmdplab.{subpackage}")
    names = getattr(module, "__all__", [])
    same = {name for name in cmdplab.__all__ if name in names}
    return [name for name in names if name not in same and (callable(getattr(module, name)))]


def modules(subpackage: str) -> list[tuple[str, str]]:
    """Return the modules of a subpackage, each with the first sentence of its docstring."""
    home = Path(str(import_module(f"cmdplab.{subpackage}").__file__))
    if home.name != "__init__.py":
        return []
    found = []
    for file in sorted(home.parent.glob("*.py")):
        text = ast.get_docstring(ast.parse(file.read_text())) or ""
        if file.stem != "__init__":
            first = " ".join(text.split("\n\n")[0].split())
            found.append((f"cmdplab.{subpackage}.{file.stem}", first))
    return found


def write_api() -> None:
    """Write the pages of names and subpackages into docs/api/; autosummary makes the rest."""
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
        "Subpackages",
        "-----------",
        "",
        "Names that are needed less often live in subpackages: ``cmdplab.theory``,",
        "``cmdplab.solvers`` and so on. :doc:`They have a page of their own <subpackages>`.",
        "",
        ".. toctree::",
        "   :hidden:",
        "",
        "   subpackages",
        "",
    ]
    _write(DOCS / "api" / "index.rst", lines)
    lines = [
        "Subpackages",
        "===========",
        "",
        "``import cmdplab`` reaches every subpackage: ``cmdplab.theory``,",
        "``cmdplab.statistics``. Names of ``cmdplab`` itself are on :doc:`index`.",
        "",
    ]
    for subpackage in cmdplab._SUBPACKAGES:
        about = inspect.getdoc(import_module(f"cmdplab.{subpackage}")) or ""
        lines += ["", f"cmdplab.{subpackage}", "-" * 40, "", first_paragraph(about), ""]
        if names := exported(subpackage):
            lines += [".. autosummary::", "   :toctree: .", "   :nosignatures:", ""]
            lines += [f"   cmdplab.{subpackage}.{name}" for name in names]
        if files := modules(subpackage):
            lines += ["", ".. list-table::", "   :header-rows: 0", "   :widths: 35 65", ""]
            for name, words in files:
                lines += [f"   * - ``{name}``", f"     - {escaped(words)}"]
    _write(DOCS / "api" / "subpackages.rst", lines)
    wanted = {"index", "subpackages", *(f"cmdplab.{name}" for name in cmdplab.__all__)}
    for subpackage in cmdplab._SUBPACKAGES:
        wanted |= {f"cmdplab.{subpackage}.{name}" for name in exported(subpackage)}
    for file in (DOCS / "api").glob("*.rst"):
        if file.stem not in wanted:  # left by a build of another version
            file.unlink()


def first_paragraph(text: str) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return escaped(" ".join(text.split("\n\n")[0].split()))


def escaped(text: str) -> str:
    """Text whose stars, bars and underscores mean themselves; `name` stays code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if n % 2 else re.sub(r"([*|_\\])", r"\\\1", part) for n, part in enumerate(parts)
    )


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


ARGUMENT = re.compile(r"([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) : (.*)")


def numpydoc_lines(lines: list[str], cls: type | None = None) -> list[str]:
    """Turn a docstring of this package into numpydoc's form.

    Lines `name : meaning` become the section Parameters, behind the text; the fields of a tuple or
    a dataclass become Attributes; indented formulas become literal blocks.
    """
    if any(set(line) == {"-"} for line in lines):
        return lines  # it is in that form already
    text: list[str] = []
    arguments: list[tuple[str, list[str]]] = []
    for line in lines:
        found, inside = ARGUMENT.fullmatch(line), bool(arguments and arguments[-1][1])
        if found:
            arguments.append((found[1], [found[2]]))
        elif inside and line.startswith("    "):
            arguments[-1][1].append(line.strip())
        else:
            if arguments:
                arguments.append(("", []))  # what is indented from here on is no meaning
            text.append(line)
    arguments = [each for each in arguments if each[0]]
    made = [line for paragraph in paragraphs(text) for line in paragraph]
    if arguments:
        made += ["", "Parameters", "----------"]
        for argument, words in arguments:
            made += [argument, f"    {escaped(' '.join(words))}"]
    record = hasattr(cls, "_fields") or hasattr(cls, "__dataclass_fields__")
    said = {name for names, _ in arguments for name in names.split(", ")}
    fields = fields_of(cls) if cls is not None and record else []
    if fields := [each for each in fields if each[0] not in said]:
        made += ["", "Attributes", "----------"]
        for field, kind, comment in fields:
            made += [f"{field} : {kind}", f"    {escaped(comment)}"]
    return [*made, ""]


def paragraphs(text: list[str]) -> list[list[str]]:
    """Paragraphs of reStructuredText: prose with its stars escaped, the rest as literal blocks."""
    found = []
    for block in "\n".join(text).strip("\n").split("\n\n"):
        lines = [line for line in block.split("\n") if line.strip()]
        if not lines:
            continue
        if all(line.startswith("    ") for line in lines):
            found.append(["::", "", *lines, ""])
        elif any(line.startswith("- ") for line in lines):
            found.append([*map(escaped, _listed(lines)), ""])
        else:
            found.append([escaped(" ".join(line.strip() for line in lines)), ""])
    return found


def _listed(lines: list[str]) -> list[str]:
    """Return a list whose items stand on one line each, apart from what leads to it."""
    items: list[str] = []
    for line in lines:
        if line.startswith("- ") and items and not items[-1].startswith("- "):
            items += [""]
        if line.startswith("- ") or not items:
            items.append(line.strip())
        else:
            items[-1] = f"{items[-1]} {line.strip()}".strip()
    return items


def commands_text() -> str:
    """Return the commands as Markdown: a section each."""
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


KINDS = {str: "text", float: "number", int: "whole number", Path: "a path"}


def _kind(each: Any) -> str:
    if getattr(each, "is_flag", False):
        return "nothing"
    if each.metavar == "INTEGER":
        return "whole number"
    known = getattr(each, "type_descriptor", None)
    if known is None:  # an older Typer
        return str(each.type.name).lower()
    kind = known.annotation
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return ", ".join(f"`{choice.value}`" for choice in kind)
    several = [KINDS[arg] for arg in (kind, *get_args(kind)) if arg in KINDS]
    return several[0] if several else "text"


def _default(each: Any) -> str:
    value = each.default
    if value is None or value is False or callable(value):
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _cell(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")
