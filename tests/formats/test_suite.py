"""The data set of environments, read without cmdplab: its optima are those of a linear program."""

from __future__ import annotations

import csv
import hashlib
import json

import numpy as np
import pytest
from scipy.optimize import linprog

import cmdplab
from cmdplab.environments import ENVIRONMENTS
from cmdplab.errors import InputError
from cmdplab.formats import read_drn
from cmdplab.formats.suite import export_suite

SOME = ("three-state", "inventory", "job-scheduling", "cost-chain-3", "paradox")


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    out = tmp_path_factory.mktemp("suite") / "here"
    told: list[str] = []
    found = export_suite(out, SOME, told.append)
    assert told == found.environments == list(SOME)
    return out


def records(suite):
    return json.loads((suite / "suite.json").read_text())["environments"]


def optimum_of_the_table(rows, record):
    """Solve the linear program over visits of (step, state, action), from the rows alone."""
    signals = ["objective", *(f"utility_{n + 1}" for n in range(record["constraints"]))]
    pairs: dict[tuple, dict] = {}
    for row in rows:
        steps = [int(row["step"])] if "step" in row else range(record["horizon"])
        for h in steps:
            pair = pairs.setdefault((h, row["state"], row["action"]), {"next": []})
            pair["next"].append((row["next"], float(row["probability"])))
            pair["pays"] = [float(row[name]) for name in signals]
    column = {pair: n for n, pair in enumerate(pairs)}
    places = {(h, x): n for n, (h, x) in enumerate(dict.fromkeys((h, x) for h, x, _ in pairs))}
    flow, comes = np.zeros((len(places), len(pairs))), np.zeros(len(places))
    comes[places[0, record["start"]]] = 1.0
    for (h, x, a), n in column.items():
        flow[places[h, x], n] += 1.0
        for y, p in pairs[h, x, a]["next"]:
            if h + 1 < record["horizon"]:
                flow[places[h + 1, y], n] -= p
    pays = np.array([pair["pays"] for pair in pairs.values()]).T
    limits = {"A_ub": -pays[1:], "b_ub": -np.array(record["thresholds"])}
    return -linprog(-pays[0], A_eq=flow, b_eq=comes, **limits, method="highs").fun


@pytest.mark.parametrize("name", SOME)
def test_the_table_alone_has_the_certified_optimum(suite, name):
    (record,) = (each for each in records(suite) if each["name"] == name)
    with (suite / name / "transitions.csv").open() as stream:
        value = optimum_of_the_table(list(csv.DictReader(stream)), record)
    assert value == pytest.approx(record["optimum"], abs=1e-7)
    assert record["optimum"] == pytest.approx(ENVIRONMENTS[name].certified.optimum, abs=1e-6)
    assert record["certificate"] < 1e-9


@pytest.mark.parametrize("name", SOME)
def test_every_format_is_the_same_problem(suite, name):
    problem = cmdplab.make(name)
    again = cmdplab.CMDP.load(suite / name / "problem.npz")
    np.testing.assert_array_equal(again.reward, problem.reward)
    np.testing.assert_array_equal(again.transition, problem.transition)
    drn = suite / name / "problem.drn"
    assert drn.exists() == (name != "job-scheduling")  # whose rewards change with the step
    if drn.exists():
        value = cmdplab.solve(read_drn(drn)).value
        assert value == pytest.approx(cmdplab.solve(problem).value, abs=1e-9)


def test_checksums_are_those_of_all_files(suite):
    lines = (suite / "checksums.sha256").read_text().splitlines()
    listed = dict(reversed(line.split("  ", 1)) for line in lines)
    there = {str(path.relative_to(suite)) for path in suite.rglob("*") if path.is_file()}
    assert set(listed) == there - {"checksums.sha256"}
    for name, digest in listed.items():
        assert hashlib.sha256((suite / name).read_bytes()).hexdigest() == digest


def test_the_readme_and_the_table_name_every_environment_with_its_source(suite):
    text = (suite / "README.md").read_text()
    with (suite / "suite.csv").open() as stream:
        lines = {row["name"]: row for row in csv.DictReader(stream)}
    for record in records(suite):
        assert f"`{record['name']}` v{record['version']} |" in text
        assert record["source"] in text
        assert record["licence"].startswith("MIT")
        assert float(lines[record["name"]]["optimum"]) == record["optimum"]
    assert "job-scheduling has no problem.drn" in text


def test_a_folder_with_something_in_it_and_a_random_environment_are_refused(suite, tmp_path):
    with pytest.raises(InputError, match="is not empty"):
        export_suite(suite, ["paradox"])
    for name in ("random-printed", "nothing"):
        with pytest.raises(InputError, match="is no fixed environment"):
            export_suite(tmp_path / "new", [name])
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_without_names_every_fixed_environment_is_written(tmp_path):
    found = export_suite(tmp_path / "all")
    assert found.environments == [name for name, each in ENVIRONMENTS.items() if not each.random]
    for record in records(tmp_path / "all"):
        certified = ENVIRONMENTS[record["name"]].certified
        assert record["optimum"] == pytest.approx(certified.optimum, abs=1e-6)
        assert record["slater_gap"] == pytest.approx(certified.slater_gap, abs=1e-6)
