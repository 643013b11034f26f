"""What the command line says: numbers in one piece, a sentence for what does nothing."""

from __future__ import annotations

import itertools
import json
import re
from io import StringIO

import numpy as np
import pytest
from conftest import random_problem
from faults import experiment_values
from rich.console import Console

from cmdplab import environments
from cmdplab.algorithms import ALGORITHMS, check_settings
from cmdplab.algorithms.row import STATIONARY
from cmdplab.checks import MOST_EPISODES, written_number
from cmdplab.display import terminal
from cmdplab.errors import InputError
from cmdplab.experiments.experiment import parse_experiment, problems, resolve
from cmdplab.experiments.run import run

pytestmark = pytest.mark.usefixtures("one_process")

EXPERIMENT = experiment_values(100, {"environment": "three-state"}, name="a")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"episodes": "many"}, "here: episodes is 'many', not a whole number from 1 to "),
        ({"episodes": 10**23}, '1,000,000,000,000, or "unlimited"'),
        ({"name": "a/b"}, "name is 'a/b', not text of at most 80 letters, digits, dots"),
        ({"seeds": [1, -2]}, "seeds.1 is -2, not a number of seeds from 1 to 1,000,000, or a list"),
        ({"preset": "new"}, 'preset is \'new\', not "released" or "printed"'),
        ({"problems": []}, "problems is [], not at least one [[problems]]"),
        ({"algorithms": [{}]}, "algorithms.0.name is missing: give the name of an algorithm"),
        (
            {"algorithms": [{"name": "DOPE", "bonus_scale": ["x"]}]},
            "algorithms.0.bonus_scale.0 is 'x', not a number, or a list of at least one",
        ),
    ],
)
def test_an_experiment_is_refused_in_words_of_its_own(change, sentence):
    with pytest.raises(InputError) as refused:
        parse_experiment(EXPERIMENT | change, "here")
    said = str(refused.value)
    assert sentence in said
    for leak in ("constrained", "literal[", "pattern", "function", "input should", "a-za-z"):
        assert leak not in said.lower()


def test_an_experiment_may_write_1e3():
    values = EXPERIMENT | {"episodes": 1e3, "seeds": 2.0}
    found = parse_experiment(values, "here")
    assert (found.episodes, found.seed_list()) == (1000, [0, 1])
    assert isinstance(found.episodes, int)


@pytest.mark.parametrize("given", ["three-state", "x.npz"])
def test_instance_seeds_of_one_instance_are_refused(given, tmp_path):
    random_problem(3, 2, 2, 1).save(tmp_path / "x.npz")
    where = "file" if given.endswith(".npz") else "environment"
    for seeds, refused in (([0], False), ([3], True), ([0, 1], True)):
        spec = {where: given, "instance_seeds": seeds}
        experiment = parse_experiment(EXPERIMENT | {"problems": [spec]}, "here")
        if refused:
            with pytest.raises(InputError, match=r"takes no instance seed .* random-printed, "):
                problems(experiment, tmp_path)
        else:
            assert len(problems(experiment, tmp_path)) == 1


OTHER = {
    "bonus_scale": 0.37,
    "margin_scale": 0.41,
    "delta": 0.01,
    "tuned_for": 37,
    "tightening": 0.9,
    "epsilon": 0.7,
    "replan": "doubling",
    "dynamics": "stationary",
    "alpha_eta": 0.77,
    "alpha_tau": 0.11,
}


@pytest.mark.parametrize("key", ALGORITHMS, ids="-".join)
def test_a_setting_that_changes_nothing_is_refused(key):
    """What is refused has no effect: the gaps of the run are the same to the last bit."""
    row = ALGORITHMS[key]
    problem = random_problem(4, 3, 4, 1, stationary=STATIONARY in row.needs)
    gaps = run(problem, row, 60, 0).curves["gap"]
    for name, value in OTHER.items():
        if row.reads(name):
            check_settings([row], {name: value})
            continue
        with pytest.raises(
            InputError, match=rf"{re.escape(row.name)} has no {name}: .* (have|has) one"
        ):
            check_settings([row], {name: value})
        try:
            changed = row.with_settings(**{name: value})
        except InputError:
            continue
        np.testing.assert_array_equal(run(problem, changed, 60, 0).curves["gap"], gaps)


def test_an_experiment_s_idle_setting_is_refused():
    specs = [{"name": "UOpt-RPGPD", "margin_scale": 0.1}]
    experiment = parse_experiment(EXPERIMENT | {"algorithms": specs}, "here")
    with pytest.raises(InputError, match="UOpt-RPGPD has no margin_scale: OptPress-LP, DOPE"):
        resolve(experiment, problems(experiment, None))


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("run --margin-scale 0.1", "UOpt-RPGPD has no margin_scale: OptPress-LP, DOPE"),
        ("run --baseline p.npy", "without --baseline: OptPress-LP, DOPE, OPSE"),
        ("run --tuned-for 1e4", "UOpt-RPGPD has no tuned_for: "),
        (
            "run --algorithm DOPE --baseline p.npy --tightening 0.3",
            "--tightening makes the default baseline",
        ),
        (
            "compare --algorithms UOpt-RPGPD,OptCMDP --margin-scale 1",
            "UOpt-RPGPD or OptCMDP has no margin_scale",
        ),
        ("list environments --at published", "--at is for `cmdplab list algorithms`"),
        ("list environments --epsilon 0.1", "--epsilon is for `cmdplab list algorith"),
        ("list algorithms --episodes 5", "--episodes needs --at"),
        ("audit x --delta 0.2", "--delta needs --epsilon or --failure-events"),
        ("audit x --workers 2", "--workers is for an experiment (TOML)"),
        ("solve ok.npz --horizon 5", "--horizon belongs to .drn files: ok.npz knows"),
        ("solve ok.npz --instance-seed 5", "ok.npz is one instance and takes no inst"),
        ("run --episodes 1e23", "above 1,000,000,000,000, the most that a run has"),
        ("run --episodes 1.5", "'1.5', neither a whole number nor `unlimited`"),
        ("compare --episodes 100000000000000000000000", "above 1,000,000,000,000"),
        ("reproduce --episodes 1e2.5", "'--episodes': '1e2.5' is no whole number"),
        ("reproduce --seeds 1e999999999", "is no whole number below 1e30"),
        ("run --algorithm OptCMDP --tuned-for 1e23", "outside 1 to 1,000,000,000"),
    ],
)
def test_what_does_nothing_or_is_absurd_is_refused(call, command, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    random_problem(3, 2, 2, 1).save(tmp_path / "ok.npz")
    code, out, err = call(*command.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err
    assert [each.name for each in tmp_path.iterdir()] == ["ok.npz"]


def test_whole_numbers_as_people_write_them():
    for text in ("1000", "1e3", "1_000", "1,000", "1.0e3", "+1000", "1E3", " 1000 "):
        assert written_number(text) == 1000
    assert written_number("-5") == -5
    assert written_number("1e12") == MOST_EPISODES
    for text in ("", "x", "1.5", "1e-3", "nan", "inf", "1e31", "0x10", "1e999999999999"):
        with pytest.raises(ValueError, match="no whole number"):
            written_number(text)


@pytest.mark.usefixtures("undrawn")
def test_episodes_may_be_written_1e2(call, tmp_path):
    for option in ("1e2", "100", "1_00"):
        out = call("run", "three-state", "--episodes", option, "--json")[1]
        assert json.loads(out)["episodes"] == 100
    out = call("compare", "--problem", "three-state", "--episodes", "1e2", "--seeds", "1e0",
               "--algorithms", "UOpt-RPGPD", "--out", tmp_path / "c", "--json")[1]  # fmt: skip
    assert (json.loads(out)["episodes"], json.loads(out)["seeds"]) == (100, 1)


@pytest.mark.parametrize("name", environments.ENVIRONMENTS)
def test_environment_names_have_no_case(name):
    found = environments.named(name)
    assert environments.named(name.upper()) is found
    assert environments.named(f"{name.title()}-V{found.version}") is found


def test_a_problem_and_an_algorithm_are_found_in_any_case(call):
    arguments = ("--algorithm", "uopt-rpgpd", "--episodes", "20", "--json")
    found = json.loads(call("run", "Three-State", *arguments)[1])
    assert (found["problem"], found["algorithm"]) == ("three-state", "UOpt-RPGPD")


@pytest.mark.parametrize("name", ["media-streaming", "queue", "published"])
def test_list_and_solve_show_one_optimum_in_the_same_units(call, name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    (line,) = [each.split() for each in call("list", "environments")[1].splitlines()
               if each.split()[:1] in ([name], [name + "*"])]  # fmt: skip
    answer = json.loads(call("solve", name, "--json")[1])
    printed = call("solve", name)[1]
    assert f"{answer['value']:.6g}" in line
    assert f"{answer['value']:.10f}" in printed
    if answer["published_value"] is not None:
        assert line[-1] == f"{answer['published_value']:.6g}"
        assert f"{answer['published_value']:.10f} ({answer['published_unit']})" in printed


def test_a_frontier_says_how_many_points_it_shows_and_has_both_ends(call):
    all_of_them = json.loads(call("frontier", "three-state", "--points", "41", "--json")[1])
    for points in (2, 14, 15, 41):
        out = call("frontier", "three-state", "--points", points)[1]
        rows = re.findall(r"^ *(\d+\.\d{4}) +\d+\.\d{4} +\d+\.\d{4} *$", out, flags=re.MULTILINE)
        assert len(rows) == min(points, 14)
        unit = all_of_them["units"][1]  # the table is in the units of the source
        ours = [all_of_them["threshold"][n] for n in (0, -1)]
        ends = [f"{unit['offset'] + unit['factor'] * each:.4f}" for each in ours]
        assert [rows[0], rows[-1]] == ends
        assert (f"14 of {points} points" in out) == (points > 14)


def numbers_in(text: str) -> list[str]:
    return re.findall(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", text)


GRID, FACTS = terminal.grid, terminal.facts


def shown(width: int, *given, show=GRID, **options) -> str:
    file = StringIO()
    show(Console(file=file, width=width), *given, **options)
    return file.getvalue()


@pytest.mark.parametrize("width", [10, 20, 40, 60, 80, 100, 200])
def test_a_grid_never_breaks_a_number(width):
    header = ["name", "what it is", "gap", "violation of it", "episodes", "interval"]
    rows = [
        ["UOpt-RPGPD-1/sqrt(k)", "eta = tau = k^-0.5 of 3 seeds", "-0.1881234", "1.5e-05",
         "1,000,000/10,000,000", "[0.0001, 0.1234]"],
        ["a", "b", "12345.6789", "-1.0", "7", "–"],
    ]  # fmt: skip
    text = shown(width, "a title of 1,234 runs", header, rows, left=2)
    cells = [cell for row in rows for cell in row[2:]]
    words = text.split()
    kept = [cell for cell in cells if cell.split()[0] in words]
    assert {"-0.1881234", "12345.6789"} <= set(kept)  # one column of numbers always stays
    hidden = re.search(r"(\d) columns? hidden \(([^)]*)\)", " ".join(text.split()))
    gone = hidden[2].split(", ") if hidden else []
    for n, name in enumerate(header):
        column = {row[n] for row in rows}
        if n >= 2:
            assert (name in gone) or all(each in text for each in column)
    assert int(hidden[1]) == len(gone) if hidden else width >= 100
    if width >= 40:
        assert all(len(line) <= width for line in text.splitlines())


def test_what_is_least_goes_first():
    header, rows = ["name", "long words", "gap", "us"], [["a", "word " * 12, "0.1881", "12.34"]]
    text = shown(50, "t", header, rows, left=2, least=("us", "long words"))
    assert "2 columns hidden (long words, us)" in " ".join(text.split())
    text = shown(50, "t", header, rows, left=2)
    assert "hidden" not in text


COMMANDS = {
    "environments": ("list", "environments"),
    "algorithms": ("list", "algorithms", "--at", "published"),
    "solve": ("solve", "five-by-five-3"),
    "describe": ("describe", "five-by-five-3"),
    "frontier": ("frontier", "media-streaming"),
    "sensitivity": ("sensitivity", "five-by-five-3"),
    "explain": ("explain", "media-streaming", "0"),
    "run": ("run", "three-state", "--algorithm", "UOpt-RPGPD-1/sqrt(k)", "--episodes", "300"),
    "compare": ("compare", "--problem", "three-state", "--episodes", "300", "--seeds", "2",
                "--out", "OUT/c", "--algorithms", "UOpt-RPGPD-1/sqrt(k),OptPress-LP,DOPE"),
    "reproduce": ("reproduce", "--episodes", "300", "--seeds", "2", "--out", "OUT/r"),
    "sweep": ("sweep", "OUT/x.toml", "--out", "OUT/s"),
    "status": ("status", "OUT/s"),
    "dry run": ("sweep", "OUT/x.toml", "--dry-run"),
    "audit": ("audit", "OUT/s", "--epsilon", "0.5"),
    "failure events": ("audit", "--failure-events", "--seeds", "5", "--episodes", "20",
                       "--out", "OUT/f"),
}  # fmt: skip


@pytest.mark.slow
def test_no_command_breaks_a_number_at_any_width(call, tmp_path, monkeypatch):
    """Every table of every command, at every width: its numbers are the cells', none a piece."""
    text = (
        'name = "x"\nepisodes = 300\nseeds = 2\n[[problems]]\nenvironment = "three-state"\n'
        '[[algorithms]]\nname = "UOpt-RPGPD-1/sqrt(k)"\nbonus_scale = [1e-3, 1e-5]\n'
    )
    (tmp_path / "x.toml").write_text(text)
    tables: list[tuple] = []

    def kept(_console, *given, **options):
        tables.append((given, options))

    monkeypatch.setattr(terminal, "grid", kept)
    monkeypatch.setattr(terminal, "facts", lambda _, *given: tables.append((given, None)))
    for name, arguments in COMMANDS.items():
        tables.clear()
        code, _, err = call(*(each.replace("OUT", str(tmp_path)) for each in arguments))
        assert (code, bool(tables)) == (0, True), (name, err)
        for (given, options), width in itertools.product(tables, (40, 60, 80, 100, 200)):
            if options is None:
                title, *cells = given[0], *(each for row in given[1] for each in row)
                out = shown(width, *given, show=FACTS)
            else:
                title, *cells = given[0], *given[1], *(each for row in given[2] for each in row)
                out = shown(width, *given, **options)
            out = re.sub(r"\d+\s+columns?\s+hidden.*?shows\s+(them|it)", "", out, flags=re.DOTALL)
            whole = set(numbers_in(" ".join([title, *cells])))
            assert set(numbers_in(out)) <= whole, f"{name} at {width}"


@pytest.mark.slow
def test_a_pipe_gets_every_column(call, monkeypatch, tmp_path):
    monkeypatch.delenv("COLUMNS", raising=False)
    given = ("compare", "--problem", "three-state", "--episodes", "40", "--seeds", "1")
    out = call(*given, "--algorithms", "UOpt-RPGPD", "--out", tmp_path / "c")[1]
    assert "needs" in out
    assert "hidden" not in out
    monkeypatch.setenv("COLUMNS", "50")
    assert "hidden" in call(*given, "--algorithms", "UOpt-RPGPD", "--out", tmp_path / "d")[1]


def test_a_negative_gap_is_explained_where_it_is_printed(call):
    words = "a negative gap means more reward than the optimum"
    out = call("run", "three-state", "--episodes", "30000")[1]
    assert "-0.00" in out
    assert words in out
    out = call("run", "three-state", "--algorithm", "DOPE", "--episodes", "5")[1]  # its baseline
    assert words not in out


def test_an_empty_list_of_settings_is_refused():
    specs = [{"name": "UOpt-RPGPD", "bonus_scale": []}]
    with pytest.raises(InputError, match="not a number, or a list of at least one"):
        parse_experiment(EXPERIMENT | {"algorithms": specs}, "here")
