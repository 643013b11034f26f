"""A setting is declared once: every place that takes or shows settings follows the table."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest
from conftest import ROOT, random_problem
from pydantic import BaseModel

from cmdplab import settings
from cmdplab.algorithms import ALGORITHMS, algorithm
from cmdplab.algorithms.families.planner import REPLANS
from cmdplab.cli.output import results
from cmdplab.cli.run import run_command
from cmdplab.errors import InputError
from cmdplab.experiments.experiment import AlgorithmSpec
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.records.load import LABELS
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.settings import SETTINGS, Declared, with_fields

NAMES = [*SETTINGS]


def names_in(fields: object) -> list[str]:
    """The settings among names, in their order."""
    return [name for name in fields if name in SETTINGS]  # type: ignore[attr-defined]


def test_every_place_has_the_settings_of_the_declaration():
    for model in (AlgorithmSpec, RunSettings):
        assert names_in(model.model_fields) == NAMES
    assert names_in(LABELS) == NAMES
    assert names_in(inspect.signature(run_command).parameters) == NAMES
    assert set(REPLANS) == set(SETTINGS["replan"].choices)
    for row in ALGORITHMS.values():
        assert [*row.settings()] == NAMES


def test_the_documentation_has_the_table():
    assert (
        "\n".join(settings.settings_table()) in Path(ROOT / "docs" / "experiments.md").read_text()
    )


def test_the_results_declare_a_field_for_each_setting():
    words = {str: "text", int: "whole number", float: "number"}
    planned = results()["PlannedRun"].fields
    assert [name for name in planned if name in SETTINGS] == NAMES
    for name, declared in SETTINGS.items():
        assert planned[name].type == f"{words[declared.kind]} or null"
        assert planned[name].meaning.endswith("(may be left out)") != declared.written_empty


def test_one_more_declaration_is_one_more_field_and_line(monkeypatch):
    more = Declared(default=1.0, help="More of it.", none="none of it")
    monkeypatch.setitem(SETTINGS, "more", more)

    @with_fields(lambda declared: (declared.kind | None, None))
    class Model(BaseModel):
        """A model with settings."""

    assert Model(more=2.0).model_dump()["more"] == 2.0  # type: ignore[call-arg]
    assert any("More of it." in line for line in settings.settings_table())


@pytest.mark.parametrize("key", ALGORITHMS, ids="-".join)
def test_a_row_with_its_own_settings_is_the_row(key):
    row = ALGORITHMS[key]
    assert row.with_settings(**row.settings()) == row


@pytest.mark.parametrize(("name", "declared"), SETTINGS.items(), ids=NAMES)
def test_a_value_outside_the_range_is_refused_by_name(name, declared):
    rows = [row for row in ALGORITHMS.values() if row.reads(name)]
    bad = [float("nan"), declared.range.lowest - 1.0] if declared.range else ["never"]
    for row in rows[:3]:
        for value in bad:
            with pytest.raises(
                InputError, match=r"alpha is|unknown|outside|not a finite|not a whole"
            ):
                row.with_settings(**{name: value})


def test_what_a_row_lacks_is_refused():
    with pytest.raises(InputError, match="OptCMDP has no setting alpha_eta"):
        algorithm("OptCMDP").with_settings(alpha_eta=0.5)
    with pytest.raises(InputError, match="OptCMDP has no setting colour"):
        algorithm("OptCMDP").with_settings(**{"colour": 0.5})
    with pytest.raises(InputError, match="has no exponent alpha_tau: its schedule is not a power"):
        algorithm("No-regularization").with_settings(alpha_tau=0.5)


@pytest.mark.parametrize("key", ALGORITHMS, ids="-".join)
def test_names_of_folders_and_digests_of_records_stay(key):
    """As they were before settings were declared in one place: such folders exist."""
    known = json.loads((ROOT / "tests" / "data" / "folder-names.json").read_text())
    if "-".join(key) not in known:
        pytest.skip("a row that is newer than the record")
    run = RunSettings.of(random_problem(3, 2, 2, 1), ALGORITHMS[key], 100, 7, mark="0" * 32)
    record = Manifest(settings=run.model_copy(update={"problem": "p"}), status="done")
    assert [run.folder, record.own_digest()] == known["-".join(key)]
