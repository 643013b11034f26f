"""`cmdplab compare`: files, shapes, common random numbers, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest
from conftest import ROOT, random_problem

from cmdplab import compare
from cmdplab.algorithms import ALGORITHMS
from cmdplab.algorithms.table1 import TABLE_1
from cmdplab.cli.options import sentences
from cmdplab.cmdp import exact
from cmdplab.environments import ENVIRONMENTS
from cmdplab.experiments.records.tables import read_curves
from cmdplab.experiments.run import run
from cmdplab.measures.measures import Summary
from cmdplab.studies.predefined import Comparison, carry_out

pytestmark = pytest.mark.usefixtures("one_process")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    out = tmp_path_factory.mktemp("compare")
    settings = Comparison(problem="three-state", episodes=600, seeds=2, out=out)
    runs, summary = carry_out(settings)
    return out, runs, summary, settings


def test_everything_is_written(small):
    out, *_ = small
    names = {"compare.png", "compare.pdf", "curves.parquet", "mistakes.parquet", "report.html"}
    names |= {"summary.csv", "summary.json", "summary.tex"}
    names |= {"experiment.json", "problems", "runs"}  # the records, as those of any experiment
    assert {path.name for path in out.iterdir() if path.name[0] != "."} == names
    assert (out / "compare.png").read_bytes()[:4] == b"\x89PNG"


def test_the_default_is_all_of_table_1(small):
    _, _, summary, settings = small
    assert set(summary["algorithms"]) == set(TABLE_1)
    assert {row.tuned_for for row in settings.rows() if row.reads("tuned_for")} == {600}


def test_the_summary_has_the_shape_of_reproduce(small):
    out, _, summary, _ = small
    read = json.loads((out / "summary.json").read_text())
    assert read.keys() == summary.keys() | {"digest"}
    assert {"preset", "instance", "episodes", "seeds", "bonus_scale", "optimum"} <= read.keys()
    for numbers in read["algorithms"].values():
        for field in set(Summary._fields) - {"episodes"}:
            assert len(numbers[field]) == 2
        assert numbers["us_per_episode"] > 0.0
        assert {"needs", "heuristic", "unverified", "settings"} <= numbers.keys()
    dope = read["algorithms"]["DOPE"]
    assert dope["needs"] == ["number of episodes", "safe policy", "a constraint"]
    assert dope["baseline_returns"][1] > read["threshold"][0]
    assert len(dope["baseline_episodes"]) == 2
    lp = read["algorithms"]["OptPress-LP"]
    assert "zero violation is heuristic" in lp["heuristic"]
    assert "zero violation is heuristic" in dope["heuristic"]  # printed: released is told too much


def test_company_changes_nothing(small):
    out, runs, _, _ = small
    one = runs[3]
    from cmdplab import make

    alone = run(make("three-state"), one.algorithm, 600, one.seed)
    np.testing.assert_array_equal(alone.curves["gap"], one.curves["gap"])
    curves = read_curves(out / "curves.parquet")
    assert list(curves) == list(dict.fromkeys(r.algorithm.name for r in runs))
    assert all(len(seeds) == 2 for seeds in curves.values())


def test_the_problems_that_the_help_names_exist():
    named = sentences()["compare"]["problem"].partition("comparing: ")[2].rstrip(".").split(", ")
    assert len(named) == 6
    assert set(named) <= set(ENVIRONMENTS)


REFERENCES = {"UCBVI-CH", "UCBVI-BF", "UCRL2", "RPG-PD"}  # no rivals


@pytest.mark.parametrize(
    ("problem", "left_out"),
    [
        ("media-streaming", REFERENCES),
        ("queue", {*REFERENCES, "OPSE", "Ghosh-Zhou-Shroff"}),  # N = 2
    ],
)
def test_all_means_every_registered_name_once_that_is_meant_for_the_problem(problem, left_out):
    names = [
        row.name for row in Comparison(problem=problem, algorithms=("all", "UOpt-RPGPD")).rows()
    ]
    assert len(names) == len(set(names))
    assert set(names) == {name for name, _ in ALGORITHMS} - left_out


def test_without_constraints_all_are_those_that_need_none(tmp_path):
    random_problem(3, 2, 2, 0).save(tmp_path / "free.npz")
    names = {row.name for row in Comparison(str(tmp_path / "free.npz"), algorithms=("all",)).rows()}
    assert {"UCBVI-CH", "UCRL2", "UOpt-RPGPD", "OptCMDP"} <= names
    assert not names & {"DOPE", "OptPress-LP", "OPSE", "RPG-PD"}


@pytest.mark.slow
def test_two_presets_of_one_algorithm_are_told_apart(tmp_path):
    names = ("UOpt-RPGPD:printed", "UOpt-RPGPD:released")
    settings = Comparison(
        problem="three-state", episodes=50, seeds=1, algorithms=names, out=tmp_path
    )
    _, summary = carry_out(settings)
    assert set(summary["algorithms"]) == set(names)
    assert set(read_curves(tmp_path / "curves.parquet")) == set(names)


@pytest.mark.usefixtures("undrawn")
def test_the_command_prints_a_table(call, tmp_path):
    code, out, err = call(
        *("compare", "--problem", "three-state", "--episodes", "300", "--seeds", "1"),
        *("--algorithms", "OptCMDP,DOPE:printed", "--algorithms", "triple-q", "--out", tmp_path),
    )
    assert code == 0
    assert "OptCMDP~" in out
    assert "played its safe baseline in" in out
    assert "300 of 300" not in err or "episodes" in err


@pytest.mark.slow
def test_no_constraint_leaves_out_the_violation(call, tmp_path):
    random_problem(3, 2, 2, 0).save(tmp_path / "free.npz")
    arguments = ("--algorithms", "UOpt-RPGPD,OptCMDP", "--episodes", "50", "--seeds", "1")
    code, out, _ = call(
        "compare", "--problem", tmp_path / "free.npz", *arguments, "--out", tmp_path / "o", "--json"
    )
    assert code == 0
    assert json.loads(out)["algorithms"]["OptCMDP"]["final_violation"] == [None]


@pytest.fixture(scope="module")
def versus(tmp_path_factory):
    out = tmp_path_factory.mktemp("versus")
    names = ("UOpt-RPGPD", "No-regularization", "OptCMDP")
    given = {"problem": "three-state", "episodes": 200, "seeds": 8, "algorithms": names}
    return out, *carry_out(Comparison(**given, versus="uopt-rpgpd", out=out))


def test_all_are_held_against_one_in_summary_report_and_figure(versus):
    out, runs, summary = versus
    found = summary["versus"]
    assert found["label"] == "UOpt-RPGPD"
    pairs = found["comparisons"]
    assert [(p["first"], p["measure"]) for p in pairs] == [
        ("No-regularization", "strong regret"),
        ("OptCMDP", "strong regret"),
        ("No-regularization", "strong violation regret"),
        ("OptCMDP", "strong violation regret"),
    ]
    regrets = {
        name: [run.summary.strong_regret for run in runs if run.algorithm.name == name]
        for name in ("OptCMDP", "UOpt-RPGPD")
    }
    differences = np.subtract(regrets["OptCMDP"], regrets["UOpt-RPGPD"])
    assert pairs[1]["difference"] == np.median(differences)
    assert pairs[1]["smaller"] == (differences < 0).sum()
    assert all(p["holm_p"] >= p["p"] for p in pairs)
    page = (out / "report.html").read_text()
    assert all(p["words"].split(":")[0] in page for p in pairs)
    assert json.loads((out / "summary.json").read_text())["versus"] == found


@pytest.mark.usefixtures("undrawn")
def test_resuming_a_comparison_keeps_what_it_is_held_against(call, versus):
    out, _, summary = versus
    code, printed, _ = call("resume", out, "--json")
    assert (code, json.loads(printed)["versus"]) == (0, summary["versus"])
    assert "against UOpt-RPGPD, seed by seed" in call("resume", out)[1]


def test_in_memory_a_comparison_is_held_against_one_too():
    found = compare(
        "three-state", ["UOpt-RPGPD", "OptCMDP"], episodes=50, seeds=8, versus="OptCMDP"
    )
    assert {(p.first, p.second) for p in found.versus} == {("UOpt-RPGPD", "OptCMDP")}
    assert [p.words[:25] in repr(found) for p in found.versus] == [True, True]
    few = compare("three-state", ["UOpt-RPGPD", "OptCMDP"], episodes=50, seeds=3, versus="OptCMDP")
    assert {p.outcome for p in few.versus} <= {"undecided", "same"}


@pytest.mark.usefixtures("undrawn")
def test_too_few_seeds_are_said_before_anything_is_run(call, tmp_path):
    arguments = ("--problem", "three-state", "--episodes", "20", "--algorithms", "OptCMDP,DOPE")
    code, out, err = call(
        "compare", *arguments, "--seeds", "3", "--versus", "DOPE", "--out", tmp_path / "few"
    )
    assert code == 0
    assert "2 comparisons on 3 seeds can claim nothing: --seeds 7 could" in err
    assert "undecided" in out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--versus DOPE --algorithms OptCMDP,OPDOP", "versus DOPE is none of the algorithms"),
        ("--versus OptCMDP --algorithms OptCMDP", "takes at least one other algorithm"),
        (
            "--versus UOpt-RPGPD --algorithms UOpt-RPGPD:printed,UOpt-RPGPD:released",
            "is more than one: choose UOpt-RPGPD:printed or UOpt-RPGPD:released",
        ),
    ],
)
def test_what_cannot_be_held_against_is_refused(call, options, sentence):
    code, _, err = call("compare", *options.split())
    assert (code, sentence in err.replace("\n", " ")) == (2, True)


def test_a_run_beyond_k_is_warned_about_and_labelled(call):
    code, out, err = call(
        *("run", "three-state", "--algorithm", "OptCMDP"),
        *("--tuned-for", "100", "--episodes", "200"),
    )
    assert code == 0
    assert "tuned for 100 episodes, and this is 200 episodes" in err
    assert "tuned for 100 episodes" in out
    _, _, err = call("run", "three-state", "--algorithm", "UOpt-RPGPD", "--episodes", "200000")
    assert "tuned" not in err  # it reads no K


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--algorithms DOPPE", "did you mean 'DOPE'"),
        ("--algorithms OPDOP:released", "has only the preset 'printed'"),
        ("--algorithms OptCMDP:both", "unknown preset"),
        ("--bonus-scale 0", "bonus_scale is 0"),
        ("--margin-scale -1", "margin_scale is -1"),
        ("--problem median-streaming", "did you mean 'media-streaming'"),
        ("--episodes 0", "episodes is 0"),
        ("--algorithms ,", "name at least one algorithm"),
        ("--tuned-for 0", "tuned_for is 0"),
        ("--seeds 0", "seeds is 0"),
        ("--tuned-for -4", "tuned_for is -4"),
        ("--out /proc/nowhere", "cannot write"),
        ("--workers 0", "workers is 0"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(call, options, sentence):
    code, _, err = call("compare", *options.split())
    assert code == 2
    assert sentence in err
    assert len(err.strip().splitlines()) == 1


def test_what_an_algorithm_lacks_exits_with_2(call, tmp_path):
    free = random_problem(3, 2, 2, 0)
    free.save(tmp_path / "free.npz")
    code, _, err = call("run", tmp_path / "free.npz", "--algorithm", "DOPE")
    assert (code, "DOPE needs a constraint" in err) == (2, True)
    problem = random_problem(3, 2, 2, 1)
    problem.save(tmp_path / "p.npz")
    unsafe = exact.greedy(problem, -problem.reward[1])[1]
    np.save(tmp_path / "unsafe.npy", unsafe)
    arguments = ("run", tmp_path / "p.npz", "--algorithm", "OptPess-LP")
    code, _, err = call(*arguments, "--baseline", tmp_path / "unsafe.npy")
    assert (code, "the baseline is not safe" in err) == (2, True)
    (tmp_path / "no.npy").write_text("nothing")
    code, _, err = call(*arguments, "--baseline", tmp_path / "no.npy")
    assert (code, "cannot be read as a policy" in err) == (2, True)
    safe = exact.greedy(problem, problem.reward[1])[1]
    np.save(tmp_path / "safe.npy", safe)
    given = ("--baseline", tmp_path / "safe.npy", "--margin-scale", "1", "--episodes", "9")
    code, out, _ = call(*arguments, *given, "--json")
    assert (code, json.loads(out)["baseline_episodes"]) == (0, 9)
    np.savez(tmp_path / "several.npz", a=unsafe)
    np.save(tmp_path / "words.npy", np.full((2, 3, 2), "x"))
    np.save(tmp_path / "complex.npy", unsafe.astype(complex))
    for wrong in ("several.npz", "words.npy", "complex.npy"):
        code, _, err = call(*arguments, "--baseline", tmp_path / wrong)
        assert (code, len(err.strip().splitlines())) == (2, 1), err
    for epsilon in ("1e-200", "1e200", "0"):
        code, _, err = call("run", "--algorithm", "Online-CRL", "--epsilon", epsilon)
        assert (code, "outside 1e-9 to 1e9" in err) == (2, True)
    for option in ("--epsilon", "--tightening"):
        code, _, err = call("run", "--algorithm", "OptCMDP", option, "0.5")
        assert (code, f"OptCMDP has no {option[2:]}: " in err) == (2, True)
    code, _, err = call("list", "algorithms", "--at", tmp_path / "free.npz")
    assert (code, "has no constraint" in err) == (2, True)
    for option in ("--epsilon", "--replan", "--alpha-eta"):
        value = "doubling" if option == "--replan" else "0.5"
        code, _, err = call("run", "--algorithm", "Triple-Q", option, value)
        assert (code, f"Triple-Q has no {option[2:].replace('-', '_')}: " in err) == (2, True)
    code, _, err = call("run", "--algorithm", "OptCMDP", "--replan", "never")
    assert (code, "choose one of every-episode, doubling" in err) == (2, True)


def test_the_listing_holds_table_1_and_every_page_exists(call):
    rows = {
        row["name"]: row
        for row in json.loads(call("list", "algorithms", "--json")[1])["algorithms"]
    }
    assert set(TABLE_1) <= set(rows)
    for name, row in rows.items():
        assert row["presets"]
        assert row["summary"]
        assert row["paper"]
        assert all(row["provenance"].values()), name
        assert (ROOT / row["page"]).exists(), row["page"]
        if name in TABLE_1:
            assert row["guarantee"]
            assert row["table_1"]["kind"] in ("LP", "PD")
    assert "H^5/2 should be H^3" in rows["OPDOP"]["table_1"]["slip"]
    code, out, _ = call("list", "algorithms", "--at", "three-state", "--json")
    assert code == 0
    at = {row["name"]: row for row in json.loads(out)["table_1_at"]}
    # X A^(1/2) H^2 K^(1/2) at X = 3, A = 2, H = 6, K = 1e5.
    assert at["OptCMDP"]["regret"] == pytest.approx(3 * 2**0.5 * 36 * 1e5**0.5)
    assert at["DOPE"]["violation"] == "zero"
