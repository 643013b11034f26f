"""The JSON of every command has the declared fields, which the page and the schemas show."""

from __future__ import annotations

import json
import re

import pytest
import typer.main
from conftest import ROOT, random_problem
from json_schemas import json_schemas, models, page

from cmdplab import cli, make, solve
from cmdplab.cli.output import FORMS, results, stamp

pytestmark = pytest.mark.usefixtures("one_process")

MODELS, SCHEMAS = models(), json_schemas()
SHORT = ("--episodes", "40", "--seeds", "1")
# Each form of each command: what it writes goes below OUT; the order matters.
CALLS: dict[str, list[tuple[str, ...]]] = {
    "solve": [("solve", "three-state", "--policy", "OUT/policy.csv"), ("solve", "media-streaming"),
              ("solve", "OUT/none.npz"), ("solve", "OUT/free.npz")],
    "theory": [("theory", "three-state"), ("theory", "OUT/free.npz", "--alpha-tau", "0.9")],
    "describe": [("describe", "three-state"), ("describe", "OUT/none.npz"),
                 ("describe", "OUT/free.npz")],
    "sensitivity": [("sensitivity", "three-state"), ("sensitivity", "OUT/none.npz")],
    "frontier": [("frontier", "three-state", "--points", "3"), ("frontier", "three-state")],
    "convert": [("convert", "three-state", "OUT/p.npz")],
    "advise": [("advise", "three-state"), ("advise", "three-state", "--safe", "--episodes", "9")],
    "evaluate": [("evaluate", "three-state", "OUT/policy.csv"),
                 ("evaluate", "three-state", "OUT/policy.csv", "--episodes", "100")],
    "explain": [("explain", "three-state", "0"), ("explain", "three-state", "1", "--step", "1")],
    "list-algorithms": [("list", "algorithms"), ("list", "algorithms", "--at", "three-state")],
    "list-environments": [("list", "environments")],
    "run": [
        ("run", "three-state", "--episodes", "40"),
        ("run", "OUT/free.npz", "--episodes", "40"),
        ("run", "three-state", "--algorithm", "DOPE", "--episodes", "40"),
        ("run", "three-state", "--episodes", "40", "--out", "OUT/run"),
        ("run", "three-state", "--algorithm", "DOPE", "--episodes", "40", "--out", "OUT/dope"),
    ],
    "reproduce": [("reproduce", *SHORT, "--out", "OUT/r")],
    "compare": [("compare", *SHORT, "--problem", "three-state", "--out", "OUT/c",
                 "--algorithms", "UOpt-RPGPD,DOPE,OptCMDP,Triple-Q")],
    "sweep-plan": [("sweep", "OUT/x.toml", "--dry-run")],
    "sweep": [("sweep", "OUT/x.toml", "--out", "OUT/s")],
    "resume": [("resume", "OUT/s")],
    "status": [("status", "OUT/s"), ("status", "OUT/run")],
    "audit": [("audit", "OUT/s", "--epsilon", "0.5")],
    "failure-events": [("audit", "--failure-events", "--seeds", "2", "--episodes", "9",
                        "--out", "OUT/f")],
    "board": [("board", "--out", "OUT/b", "--algorithms", "UOpt-RPGPD", "--problems",
               "three-state", "--steps", "60", "--seeds", "1"),
              ("board", "--out", "OUT/b", "--page", "OUT/b2")],
    "report": [("report", "OUT/s")],
    "plot": [("plot", "OUT/c", "gap", "--out", "OUT/g.svg"),
             ("plot", "OUT/run", "entropy", "--out", "OUT/p.svg")],
    "export": [("export", "OUT/s", "--out", "OUT/all.csv")],
}  # fmt: skip
EXPERIMENT = """name = "x"
episodes = 40
[[problems]]
environment = "three-state"
[[algorithms]]
name = "UOpt-RPGPD"
bonus_scale = [1e-3, 1e-5]
[[algorithms]]
name = "DOPE"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    out = tmp_path_factory.mktemp("json")
    (out / "x.toml").write_text(EXPERIMENT)
    impossible = random_problem(3, 2, 2, 1)
    type(impossible)(impossible.transition, impossible.reward, [2.0]).save(out / "none.npz")
    random_problem(3, 2, 2, 0).save(out / "free.npz")
    solve(make("three-state")).policy.save(out / "policy.csv")
    return out


@pytest.mark.parametrize("name", CALLS)
def test_what_a_command_writes_is_of_its_schema(call, place, name):
    for arguments in CALLS[name]:
        code, out, err = call(*(a.replace("OUT", str(place)) for a in arguments), "--json")
        assert code == 0, err
        found = json.loads(out)
        assert next(iter(found)) == "schema"
        assert found["schema"] == stamp(name)
        MODELS[name].model_validate_json(out)  # every field is there, and no other


def test_every_command_has_a_schema_and_json():
    commands = typer.main.get_command(cli.app).commands
    named = {arguments[0] for calls in CALLS.values() for arguments in calls}
    assert named == set(commands), "commands without a schema, or schemas without a command"
    for name, command in commands.items():
        assert any("--json" in option.opts for option in command.params), f"{name} has no --json"
    assert set(CALLS) == set(MODELS)


def test_a_run_has_one_schema_with_and_without_a_record(call, tmp_path):
    given = ("run", "three-state", "--algorithm", "DOPE", "--episodes", "300", "--json")
    kept = json.loads(call(*given, "--out", tmp_path / "r")[1])
    plain = json.loads(call(*given)[1])
    assert list(plain.keys() ^ kept.keys()) == []
    different = {k for k in plain if plain[k] != kept[k]}
    assert different == {"folder", "us_per_episode"}
    assert plain["baseline_episodes"] is not None


@pytest.mark.parametrize(
    ("arguments", "titles"),
    [
        (("theory", "three-state"), ("TheoryPage", "TheoryTerms", "TheorySaddle")),
        (("describe", "three-state"), ("Describe", "ThresholdRange")),
        (("evaluate", "three-state", "OUT/policy.csv"), ("EvaluatePage",)),
    ],
)
def test_the_text_of_a_command_has_every_declared_header(
    call, place, monkeypatch, arguments, titles
):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = call(*(a.replace("OUT", str(place)) for a in arguments))
    assert code == 0
    fields = {name: field for title in titles for name, field in results()[title].fields.items()}
    absent = [n for n, field in fields.items() if field.header and field.header not in out]
    assert absent in ([], ["without_guarantee"])  # it is left out if no algorithm needs it


AGAIN = "run: python docs/_ext/json_schemas.py docs"


def test_the_page_and_the_json_schemas_are_printed_from_the_declarations():
    shown = (ROOT / "docs" / "json.md").read_text()
    assert shown == page(shown), AGAIN
    for name, schema in SCHEMAS.items():
        there = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
        assert there == schema, AGAIN
    files = {path.stem for path in (ROOT / "docs" / "schemas").iterdir()}
    assert files == set(MODELS)


def test_every_declaration_is_used_and_formats_its_cells():
    types = " ".join(field.type for each in results().values() for field in each.fields.values())
    for title, result in results().items():
        assert bool(result.command) == bool(result.versions)
        assert result.command or re.search(rf"\b{title}\b", types), f"nothing holds {title}"
        for field in result.fields.values():
            assert field.header or not field.form
            assert field.form in FORMS or format(0.0 if "f" in field.form else 0, field.form)


@pytest.mark.parametrize("name", MODELS)
def test_every_field_says_what_it_means(name):
    definitions = [SCHEMAS[name], *SCHEMAS[name].get("$defs", {}).values()]
    for each in definitions:
        for field, about in each["properties"].items():
            assert about.get("description"), f"{name}: {field}"
