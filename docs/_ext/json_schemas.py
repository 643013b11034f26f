"""The tables of docs/json.md as models, and the JSON Schemas in docs/schemas/ that say the same.

`python docs/_ext/json_schemas.py docs` writes them; tests hold what commands print to the models.

A heading of two signs is a command; the line below names its schemas, the title of the object and
what it is. A heading of three is an object that others hold. Types are words: `text`,
`list of (number or null)`, `map to [Unit](#unit)`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, create_model

from cmdplab.cli.output import stamp

_WORDS = {"text": str, "whole number": int, "number": float, "boolean": bool, "null": NoneType}
_LEFT_OUT = " (may be left out)"
_COMMAND = re.compile(r"(?P<stamps>\[`cmdplab\..*\)), `(?P<title>\w+)`(?:: (?P<about>.*)|\.)")

Part = Callable[[str], type[BaseModel]]  # the object of that title


class Strict(BaseModel):
    """An object with nothing but its fields, each of its very type."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Line(NamedTuple):
    """One line of a table, as it is written."""

    field: str
    type: str
    meaning: str
    unit: str


class Section(NamedTuple):
    """One table of the page."""

    title: str  # of the object
    about: str  # a sentence
    names: list[str]  # of the schemas; none of a part of other objects
    rows: list[Line]


def sections(page: str) -> list[Section]:
    """The tables of the page, in their order."""
    found = []
    for level, heading, about, table in re.findall(
        r"^(##+) (.*)\n\n(.*)\n\n((?:\|.*\n)+)", page, re.MULTILINE
    ):
        rows = [_line(line) for line in table.splitlines()[2:]]
        if level == "###":
            found.append(Section(heading, about, [], rows))
        elif said := _COMMAND.fullmatch(about):
            what = f"{heading}: {said['about']}" if said["about"] else f"{heading}."
            names = re.findall(r"`cmdplab\.([\w-]+)/", said["stamps"])
            found.append(Section(said["title"], what, names, rows))
    return found


def _line(text: str) -> Line:
    cells = re.split(r"(?<!\\)\|", text)[1:-1]  # a bar in a cell has a stroke before it
    return Line(*(cell.strip().replace("\\|", "|") for cell in cells))


def models(page: str, base: type[BaseModel] = Strict) -> dict[str, type[BaseModel]]:
    """The whole object of each schema, by its name, with its field `schema`."""
    tables = {section.title: section for section in sections(page)}

    @cache
    def part(title: str) -> type[BaseModel]:
        section = tables[title]
        fields: Any = {line.field: _field(line, part) for line in section.rows}
        return create_model(title, __base__=base, __doc__=section.about, **fields)

    def whole(name: str, title: str) -> type[BaseModel]:
        first: Any = (Literal[stamp(name)], Field(alias="schema", description="what this is"))
        about = tables[title].about
        return create_model(title, __base__=part(title), __doc__=about, schema_=first)

    return {name: whole(name, each.title) for each in tables.values() for name in each.names}


def _field(line: Line, part: Part) -> tuple[Any, Any]:
    more: dict[str, Any] = {"json_schema_extra": {"unit": line.unit}} if line.unit else {}
    if line.meaning.endswith(_LEFT_OUT):
        more["default"] = [] if line.type.startswith("list of") else None
    meaning = line.meaning.removesuffix(_LEFT_OUT)
    return _type(line.type, part), Field(description=meaning, **more)


def _type(words: str, part: Part) -> Any:
    """The type that words say; a link is a part."""
    if words.startswith("map to "):
        return dict[str, _type(words.removeprefix("map to "), part)]  # type: ignore[misc]
    several = re.split(r" or (?![^(]*\))", words)  # outside parentheses
    if len(several) > 1:
        return reduce(or_, (_type(each, part) for each in several))
    if words.startswith("list of "):
        inner = words.removeprefix("list of ")
        inner = inner[1:-1] if inner.startswith("(") else inner
        return list[_type(inner, part)]  # type: ignore[misc]
    return part(words[1:].partition("]")[0]) if words.startswith("[") else _WORDS[words]


def json_schemas(page: str) -> dict[str, dict[str, Any]]:
    """The JSON Schema of each object, its field `schema` first; fields that it lacks may come."""
    found = {name: model.model_json_schema() for name, model in models(page, BaseModel).items()}
    for schema in found.values():
        fields = schema["properties"]
        schema["properties"] = {"schema": fields.pop("schema"), **fields}
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {name: draft | schema for name, schema in found.items()}


def write(docs: Path) -> None:
    """Write the JSON Schemas."""
    folder = docs / "schemas"
    folder.mkdir(exist_ok=True)
    for name, schema in json_schemas((docs / "json.md").read_text(encoding="utf-8")).items():
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
