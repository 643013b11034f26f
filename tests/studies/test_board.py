"""The board: numbers, tuning, rows that are whole or not there, and a visitor's line."""

from __future__ import annotations

import csv
import json
import os
import shlex
import sys

import numpy as np
import pytest
from conftest import ROOT

import cmdplab
from cmdplab.errors import InputError
from cmdplab.files import read_table
from cmdplab.studies import board as protocol
from cmdplab.studies.board import (
    REFERENCE,
    THEORY,
    TUNED,
    Entrant,
    Line,
    Place,
    entered,
    experiment,
    lines_of,
    named,
    places_named,
    read_board,
    registered,
    standard_places,
    tuning_cells,
)
from cmdplab.studies.board_runs import NUMBERS, Ledger, play, standing, tuned
from cmdplab.studies.board_table import NUMBERS as SIX, board_markdown, gather_board

pytestmark = pytest.mark.usefixtures("one_process")

THREE = ("UOpt-RPGPD", "OptCMDP", "Triple-Q")
PLACES = [Place("three-state"), Place("six-state")]
STEPS, SEEDS = 600, 7  # the fewest seeds on which two comparisons can be told apart
PATH = "visitor.learner:PricedPlanner"


@pytest.fixture(scope="module", autouse=True)
def short_tuning():
    """Two scales, one instance and one seed: tuning is the same, and quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "SCALES", (1.0, 1e-2))
        patch.setattr(protocol, "TUNING_INSTANCES", range(100, 101))
        patch.setattr(protocol, "TUNING_SEEDS", 1)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("board") / "b"
    played = play(path, entered(path, STEPS, SEEDS, THREE, PLACES), workers=2)
    assert played == ([], [])
    return path


@pytest.fixture
def copy(folder, tmp_path):
    """A board of one's own, with the lines alone: all that a page needs."""
    for name in ("board.json", NUMBERS):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    return tmp_path


def row_of(data, *key):
    (found,) = (r for r in data["rows"] if (r["algorithm"], r["scale"], r["problem"]) == key)
    return found


def test_the_standard_board_has_the_protocol_s_problems():
    places = standard_places()
    assert len(places) == len(set(places)) == 34
    assert {p.instance for p in places if p.environment == "random-independent-binding"} == {
        *range(10)
    }
    assert not {p.environment for p in places} & {"triple-q-grid", "slippery-grid", "random-tight"}


RARE = ("OptCMDP", "OptCMDP-bonus", "OptPress-LP", "DOPE", "OPSE", "Ghosh-Zhou-Shroff")


def test_theory_is_as_printed_at_scale_1_and_only_programs_and_searches_plan_rarely():
    for name in (*registered(), "Safe(No-regularization)"):
        theory, tuned = lines_of(Entrant(name=name, tuned=1e-3))
        assert (theory.scale, tuned.scale) == (THEORY, TUNED)
        assert theory.row.preset == "printed"
        assert theory.settings(99)["bonus_scale"] == 1.0
        assert tuned.settings(99)["bonus_scale"] == 1e-3
        rare = "replan" in theory.settings(99)
        assert rare == (name in (*RARE, "Safe(OptCMDP)"))


def test_a_run_of_the_plan_is_the_run_of_its_experiment():
    from cmdplab.experiments.experiment import problems, resolve

    place = Place("three-state")
    problem = cmdplab.make(*place)
    for name in registered():
        entrant = Entrant(name=name, tuned=1e-2)
        mark = next(iter(problems(experiment("x", [_run(entrant, problem)], [place]), ROOT)))
        runs = [line.run(problem, mark, 40, 3) for line in lines_of(entrant)]
        asked = experiment("x", runs, [place])
        assert {r.folder for r in resolve(asked, {mark: problem})} == {r.folder for r in runs}


def _run(entrant, problem):
    return Line(entrant, THEORY, 1.0).run(problem, "0" * 32, 40, 3)


def test_the_numbers_of_a_run_are_those_of_its_episodes(folder):
    data = gather_board(folder)
    for name, scale in (("UOpt-RPGPD", THEORY), ("OptCMDP", TUNED)):
        row = row_of(data, name, scale, "six-state")
        told = cmdplab.algorithm(name, row["preset"]).with_settings(
            bonus_scale=row["factor"],
            **({"replan": "doubling", "tuned_for": row["episodes"]} if name == "OptCMDP" else {}),
        )
        problem = cmdplab.make("six-state")
        for seed in (0, 5):
            run = cmdplab.run(problem, told, row["episodes"], seed)  # so short that all is kept
            curves, K = run.curves, row["episodes"]
            assert len(curves["episode"]) == K == STEPS // 3
            gap, violation = (np.maximum(curves[each], 0.0) for each in ("gap", "violation"))
            tenth = curves["episode"] > 0.9 * K
            regret, harm, last_gap, last_violation, unsafe, _ = row["numbers"][seed]
            assert regret == pytest.approx(gap.sum(), rel=1e-12)
            assert harm == pytest.approx(violation.sum(), rel=1e-12)
            assert last_gap == pytest.approx(gap[tenth].mean(), rel=1e-9, abs=1e-12)
            assert last_violation == pytest.approx(violation[tenth].mean(), rel=1e-9, abs=1e-12)
            assert unsafe == (curves["violation"] > 0.03).sum() / K
        for n, field in enumerate(SIX):
            assert row[field] == np.median([each[n] for each in row["numbers"]])


def test_differences_are_claimed_by_the_sign_test_with_holm_over_the_other_two(folder):
    data = gather_board(folder)
    told = 0
    for row in data["rows"]:
        if row["algorithm"] == REFERENCE:
            assert row["regret_against"]["outcome"] == ""
            continue
        base = row_of(data, REFERENCE, row["scale"], row["problem"])
        for n, against in enumerate((row["regret_against"], row["violation_against"])):
            less = sum(a[n] < b[n] for a, b in zip(row["numbers"], base["numbers"], strict=True))
            more = sum(a[n] > b[n] for a, b in zip(row["numbers"], base["numbers"], strict=True))
            if 0 < less < SEEDS and more:
                assert against["outcome"] in ("not told apart", "same")
            elif less == SEEDS or more == SEEDS:  # 2 / 2^7, and at most twice that
                assert against["holm_p"] in (pytest.approx(2**-6), pytest.approx(2**-5))
                assert against["outcome"] == ("smaller" if less else "larger")
                told += 1
    assert told > 4


def test_the_tuned_scale_lost_least_and_of_equals_it_is_the_largest(folder):
    board, ledger = read_board(folder), Ledger(folder)
    tuning = tuning_cells(board)
    assert {cell.place for cell in tuning} == {Place("random-independent-binding", 100)}
    for entrant in board.algorithms:
        losses = {}
        for cell in tuning:
            if cell.line.entrant.name != entrant.name:
                continue
            (run,) = cell.runs
            line = ledger.done(run)
            losses[cell.line.factor] = line["strong_regret"] + line["strong_violation_regret"]
        assert entrant.losses == pytest.approx({f"{k:g}": v for k, v in losses.items()}, abs=1e-6)
        assert losses[entrant.tuned] == min(losses.values())

    class Same:
        def done(self, run):
            return {"strong_regret": 1.0, "strong_violation_regret": 2.0}

        failed = staticmethod(lambda run: "")

    fresh = board.model_copy(update={"algorithms": [Entrant(name="OptCMDP")]})
    assert tuned(fresh, tuning, Same()).algorithms[0].tuned == 1.0


def test_a_board_that_is_done_is_left_as_it_is(folder):
    before = {name: (folder / name).read_bytes() for name in ("board.json", NUMBERS)}
    assert play(folder, entered(folder), workers=1).missing == 0
    assert before == {name: (folder / name).read_bytes() for name in before}
    assert not [*folder.glob("*/runs/*")]  # curves were not asked for


def test_a_line_that_was_cut_off_is_the_only_run_that_is_played_again(copy):
    file = copy / NUMBERS
    text = file.read_bytes().rstrip(b"\n")
    lost = json.loads(text.rpartition(b"\n")[2].partition(b" ")[2])
    file.write_bytes(text[:-20])
    assert lost["run"] not in Ledger(copy).lines
    assert play(copy, entered(copy), workers=1).missing == 0
    again = file.read_bytes()
    assert again.startswith(text[:-20])
    known = Ledger(copy).lines[lost["run"]]
    assert {**known, "seconds": 0} == {**lost, "seconds": 0}
    assert again.count(b'"run"') == text.count(b'"run"') + 1


def without(folder, wanted) -> None:
    """Lose the lines of which something holds."""
    kept = []
    for text in (folder / NUMBERS).read_bytes().split(b"\n"):
        line = json.loads(text.partition(b" ")[2]) if text else {}
        kept += [] if text and wanted(line) else [text]
    (folder / NUMBERS).write_bytes(b"\n".join(kept))


def test_half_a_row_is_named_and_not_shown(copy, call):
    def lost(line):
        where = (line["algorithm"], line["problem"], line["bonus_scale"], line["seed"])
        return where == ("Triple-Q", "three-state", 1.0, 3) and line["preset"] == "printed"

    without(copy, lost)
    code, _, err = call("board", "--out", copy, "--page", copy / "page")
    sentence = "Triple-Q (theory) on three-state: 1 missing of 7 runs"
    assert code == 0
    assert sentence in err.replace("\n", " ")
    data = gather_board(copy)
    assert data["troubles"] == [sentence]
    assert len(data["rows"]) == 11
    assert not [r for r in data["rows"] if (r["algorithm"], r["scale"]) == ("Triple-Q", THEORY)][1:]
    found = json.loads(call("board", "--out", copy, "--page", copy, "--json")[1])
    assert (found["rows"], found["missing"], found["troubles"]) == (11, 1, [sentence])
    assert f'"troubles":["{sentence}"]' in (copy / "page" / "board.html").read_text()


def test_where_no_row_is_whole_there_is_no_page(copy, call):
    without(copy, lambda line: line["seed"] == 0)
    code, _, err = call("board", "--out", copy, "--page", copy)
    assert code == 2
    assert "no whole row" in err
    assert not (copy / "board.html").exists()


def test_the_table_is_the_same_as_csv_and_as_parquet(copy, call):
    assert call("board", "--out", copy, "--page", copy)[0] == 0
    data = gather_board(copy)
    with (copy / "board.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    words = [name for name in rows[0] if not _is_number(rows[0][name])]
    table = read_table(copy / "board.parquet", words).to_pydict()
    assert list(table) == list(rows[0])
    assert len(rows) == len(data["rows"]) == 12
    for n, (row, known) in enumerate(zip(rows, data["rows"], strict=True)):
        assert float(row["strong_regret"]) == table["strong_regret"][n] == known["strong_regret"]
        assert (
            row["regret_outcome"]
            == table["regret_outcome"][n]
            == known["regret_against"]["outcome"]
        )
    assert board_markdown(data) == (copy / "board.md").read_text()
    assert len(board_markdown(data).splitlines()) == 2 + 6


def _is_number(text: str) -> bool:
    try:
        float(text or "0")
    except ValueError:
        return False
    return True


def test_the_command_of_a_cell_plays_its_run_again(folder, call):
    row = row_of(gather_board(folder), "OptCMDP", TUNED, "three-state")
    words = [*shlex.split(row["command"])[1:], "--seed", "2", "--json"]
    found = json.loads(call(*words)[1])
    assert found["strong_regret"] == row["numbers"][2][0]


def test_a_visitor_s_line_is_one_command_that_plays_their_runs_alone(copy, call, monkeypatch):
    before = (copy / NUMBERS).read_bytes()
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "visitor"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    code, out, err = call("board", "--out", copy, "--algorithms", PATH, "--workers", "1")
    assert code == 0, err
    after = (copy / NUMBERS).read_bytes()
    assert after.startswith(before)
    new = [line for line in Ledger(copy).lines.values() if line["algorithm"] == PATH]
    assert len(new) == 2 * SEEDS
    data = gather_board(copy)
    assert len(data["rows"]) == 14
    row = row_of(data, PATH, "own", "six-state")
    assert (row["preset"], row["factor"]) == ("custom", None)
    assert row["regret_against"]["outcome"]
    assert f"| {PATH} ~" in (copy / "board.md").read_text()
    assert PATH in out
    # Whoever makes the page, or goes on with the board, needs no learner of somebody else's.
    for name in [each for each in sys.modules if each.split(".")[0] == "visitor"]:
        del sys.modules[name]
    assert call("board", "--out", copy, "--page", copy)[0] == 0
    assert play(copy, entered(copy), workers=1).missing == 0
    assert "visitor" not in sys.modules


def test_a_visitor_that_breaks_the_contract_fails_alone(copy, call, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "visitor"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    asked = ("--algorithms", "visitor.broken:Negative", "--problems", "three-state")
    code, _, err = call("board", "--out", copy, *asked, "--workers", "1")
    assert code == 2
    assert "7 runs failed" in err
    data = gather_board(copy)
    assert len(data["rows"]) == 12
    lacking = standing(read_board(copy), Ledger(copy)).lacking[0]
    assert lacking.failed == 7
    assert "broke the contract in episode 4" in lacking.why


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--steps", "700"), "a board of 600 steps and 7 seeds, not of 700 steps and 7 seeds"),
        (("--problems", "three-state:4"), "three-state has no instance 4"),
        (("--problems", "nowhere"), "unknown environment"),
        (("--algorithms", "Triple-X"), "did you mean 'Triple-Q'"),
        (("--workers", "0"), "workers is 0"),
    ],
)
def test_what_no_board_can_take_is_one_sentence(copy, call, given, words):
    before = (copy / "board.json").read_bytes()
    code, _, err = call("board", "--out", copy, *given)
    assert code == 2
    assert words in err.replace("\n", " ")
    assert (copy / "board.json").read_bytes() == before


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="other files and no board"):
        entered(tmp_path)
    with pytest.raises(InputError, match="is no board"):
        read_board(tmp_path)


def test_names_are_written_as_the_board_has_them():
    assert [named(n) for n in ("optcmdp", "Triple-Q:printed")] == [
        ["OptCMDP"],
        ["Triple-Q:printed"],
    ]
    every = dict.fromkeys(each["name"] for each in cmdplab.list_algorithms())
    free = ("UCBVI-CH", "UCBVI-BF", "UCRL2")  # they are for problems without constraints
    for reference in (*free, "RPG-PD"):
        del every[reference]
    assert named("all") == [*every, "Safe(UOpt-RPGPD)", "Safe(OptCMDP)"]
    with pytest.raises(InputError, match="is told the kernel, which all on a board must learn"):
        named("RPG-PD")
    assert places_named(["random-independent-binding:3", "six-state"]) == [
        Place("random-independent-binding", 3),
        Place("six-state"),
    ]
