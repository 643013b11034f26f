"""docs/json.md and the JSON Schemas in docs/schemas/, written from the models."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, Field, create_model

from cmdplab.schemas import checks, policies, problems, runs, stamp, theory, thresholds
from cmdplab.schemas.fields import Part

MODELS: dict[str, type[Part]] = {
    "reproduce": runs.Reproduce,
    "compare": runs.Compare,
    "run": runs.RunPage,
    "solve": problems.Solve,
    "describe": problems.Describe,
    "sensitivity": thresholds.SensitivityPage,
    "frontier": thresholds.FrontierPage,
    "theory": theory.TheoryPage,
    "convert": checks.Written,
    "advise": policies.AdvisePage,
    "evaluate": policies.EvaluatePage,
    "explain": policies.ExplainPage,
    "list-algorithms": problems.ListAlgorithms,
    "list-environments": problems.ListEnvironments,
    "verify-trace": checks.VerifyTrace,
    "bench": checks.Bench,
    "sweep": runs.Standings,
    "sweep-plan": runs.Plan,
    "resume": runs.Standings,
    "status": runs.Standings,
    "audit": checks.Audit,
    "failure-events": checks.FailureEvents,
    "board": runs.BoardStanding,
    "board-page": runs.BoardPage,
    "report": checks.ReportPage,
    "plot": checks.Written,
    "portrait": checks.Written,
    "export": checks.Written,
    "export-suite": checks.SuitePage,
}
_HEAD = """# JSON of the commands

Every command takes `--json` and then writes one object to standard output, and nothing else
there. Its first field, `schema`, names what it is and its version, for example
`"cmdplab.solve/1"`. The version grows when a field goes, or changes its type or its meaning; new
fields may come without that, so ignore what you do not know. `null` stands where there is no such
number; NaN and infinity are never written. Rewards are in [0, 1] a step, so that returns, values,
gaps and violations (unit "reward") are sums over the steps of one episode, from 0 to the horizon;
what an environment's source counts instead is called `published`. A negative gap means more
reward than the optimum, paid for by a violation.

The JSON Schemas are in [schemas/](schemas/). This page and they are made from
`src/cmdplab/schemas/` by `python -m cmdplab.schemas.page docs`.
"""


def model_of(name: str) -> type[BaseModel]:
    """The whole object, with its field `schema`."""
    first: Any = (Literal[stamp(name)], Field(alias="schema", description="what this is"))
    body = MODELS[name]
    return create_model(body.__name__, __base__=body, __doc__=body.__doc__, schema_=first)


def json_schema(name: str) -> dict[str, Any]:
    """As JSON Schema, the field `schema` first; fields that it does not know may come."""
    found: dict[str, Any] = _open(model_of(name).model_json_schema())
    fields = found["properties"]
    found["properties"] = {"schema": fields.pop("schema"), **fields}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | found


def _open(value: Any) -> Any:
    """Without `additionalProperties: false`, which our tests ask for and a reader should not."""
    if isinstance(value, list):
        return [_open(each) for each in value]
    if not isinstance(value, dict):
        return value
    closed = value.get("additionalProperties") is False
    return {k: _open(v) for k, v in value.items() if k != "additionalProperties" or not closed}


def page() -> str:
    """docs/json.md."""
    parts, shown = [_HEAD], set[type[Part]]()
    names: dict[type[Part], list[str]] = {}
    for name, model in MODELS.items():
        names.setdefault(model, []).append(name)
    for model, mine in names.items():
        stamps = ", ".join(f"[`{stamp(each)}`](schemas/{each}.json)" for each in mine)
        title, _, rest = str(model.__doc__).partition(": ")
        about = f"{stamps}: {rest}" if rest else f"{stamps}."
        parts.append(f"\n## {title.rstrip('.')}\n\n{about}\n\n{_table(model)}")
        for inner in _inside(model):
            if inner not in shown:
                shown.add(inner)
                parts.append(f"\n### {inner.__name__}\n\n{inner.__doc__}\n\n{_table(inner)}")
    return "".join(parts)


def _table(model: type[Part]) -> str:
    lines = ["| field | type | meaning | unit |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra
        unit = extra.get("unit", "") if isinstance(extra, dict) else ""
        meaning = str(field.description).replace("|", "\\|")
        optional = "" if field.is_required() else " (may be left out)"
        lines.append(f"| {name} | {_type(field.annotation)} | {meaning}{optional} | {unit} |")
    return "\n".join(lines) + "\n"


_WORDS = {str: "text", int: "whole number", float: "number", bool: "boolean", NoneType: "null"}


def _type(annotation: Any) -> str:
    inner = get_args(annotation)
    if get_origin(annotation) is list:
        return (
            f"list of ({_type(inner[0])})" if get_args(inner[0]) else f"list of {_type(inner[0])}"
        )
    if get_origin(annotation) is dict:
        return f"map to {_type(inner[1])}"
    if inner:
        return " or ".join(_type(each) for each in inner)
    return _WORDS.get(annotation) or f"[{annotation.__name__}](#{annotation.__name__.lower()})"


def _inside(model: type[Part]) -> list[type[Part]]:
    """The models that a model holds, in order, and what these hold."""
    found: list[type[Part]] = []
    waiting = [field.annotation for field in model.model_fields.values()]
    while waiting:
        each = waiting.pop(0)
        if isinstance(each, type) and issubclass(each, Part):
            found += [each, *_inside(each)]
        waiting += get_args(each)
    return list(dict.fromkeys(found))


def write(docs: Path) -> None:
    """Write the page and the JSON Schemas."""
    (docs / "schemas").mkdir(exist_ok=True)
    (docs / "json.md").write_text(page())
    for name in MODELS:
        text = json.dumps(json_schema(name), indent=1, ensure_ascii=False) + "\n"
        (docs / "schemas" / f"{name}.json").write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
