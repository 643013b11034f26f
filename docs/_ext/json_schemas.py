"""docs/json.md and the JSON Schemas in docs/schemas/, printed from the results of the commands.

`python docs/_ext/json_schemas.py docs` writes them. Tests hold the output of every command to the
models. Types are words: `text`, `list of (number or null)`, `map to Unit`.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import NoneType
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from cmdplab.cli.output import Field as Declared, Result, results, stamp

_WORDS = {"text": str, "whole number": int, "number": float, "boolean": bool, "null": NoneType}
_LEFT_OUT = " (may be left out)"
_PART = re.compile(r"\b([A-Z]\w+)\b")


class Strict(BaseModel):
    """An object with nothing but its fields, each of its very type."""

    model_config = ConfigDict(extra="forbid", strict=True)


def tables() -> str:
    """Return the page below its introduction: a table for each result."""
    return "\n".join(_table(title, result) for title, result in results().items())


def _table(title: str, result: Result) -> str:
    links = [f"[`{stamp(name)}`](schemas/{name}.json)" for name in result.versions]
    about = f": {result.about}" if result.about else "."
    head = (
        [f"## {result.command}", f"{', '.join(links)}, `{title}`{about}"]
        if result.command
        else [f"### {title}", result.about]
    )
    rows = [_row(name, field) for name, field in result.fields.items()]
    header = "| field | type | meaning | unit |\n|---|---|---|---|"
    return "\n\n".join([*head, "\n".join([header, *rows])]) + "\n"


def _row(name: str, field: Declared) -> str:
    cells = (name, _linked(field.type), field.meaning.replace("|", "\\|"), field.unit)
    return f"| {' | '.join(cells)} |"


def _linked(words: str) -> str:
    return _PART.sub(lambda part: f"[{part[1]}](#{part[1].lower()})", words)


def models(base: type[BaseModel] = Strict) -> dict[str, type[BaseModel]]:
    """Return the model of each schema, by its name, with its field `schema`."""

    @cache
    def part(title: str) -> type[BaseModel]:
        result = results()[title]
        fields: Any = {name: _field(field) for name, field in result.fields.items()}
        return create_model(title, __base__=base, __doc__=_about(result), **fields)

    def _field(field: Declared) -> tuple[Any, Any]:
        more: dict[str, Any] = {"json_schema_extra": {"unit": field.unit}} if field.unit else {}
        if field.meaning.endswith(_LEFT_OUT):
            more["default"] = [] if field.type.startswith("list of") else None
        return _type(field.type), Field(description=field.meaning.removesuffix(_LEFT_OUT), **more)

    def _type(words: str) -> Any:
        if words.startswith("map to "):
            return dict[str, _type(words.removeprefix("map to "))]  # type: ignore[misc]
        several = re.split(r" or (?![^(]*\))", words)  # outside parentheses
        if len(several) > 1:
            return reduce(or_, map(_type, several))
        if words.startswith("list of "):
            return list[_type(words.removeprefix("list of ").strip("()"))]  # type: ignore[misc]
        return _WORDS[words] if words in _WORDS else part(words)

    def whole(name: str, title: str) -> type[BaseModel]:
        first: Any = (Literal[stamp(name)], Field(alias="schema", description="what this is"))
        about = _about(results()[title])
        return create_model(title, __base__=part(title), __doc__=about, schema_=first)

    return {name: whole(name, title) for title, each in results().items() for name in each.versions}


def _about(result: Result) -> str:
    if not result.command:
        return result.about
    return f"{result.command}: {result.about}" if result.about else f"{result.command}."


def json_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each object, `schema` first; unknown fields may come."""
    found = {name: model.model_json_schema() for name, model in models(BaseModel).items()}
    for schema in found.values():
        fields = schema["properties"]
        schema["properties"] = {"schema": fields.pop("schema"), **fields}
    draft = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return {name: draft | schema for name, schema in found.items()}


def page(text: str) -> str:
    """Return the page with new tables; its introduction ends at the first heading of two signs."""
    return text[: text.index("\n## ") + 1] + tables()


def write(docs: Path) -> None:
    """Write the tables of json.md, and the JSON Schemas."""
    file, folder = docs / "json.md", docs / "schemas"
    file.write_text(page(file.read_text(encoding="utf-8")), encoding="utf-8")
    folder.mkdir(exist_ok=True)
    for name, schema in json_schemas().items():
        text = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
