"""Figures from records: every kind in every format, what their shades are, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from conftest import random_problem
from made_up_records import records

from cmdplab import sweep
from cmdplab.algorithms import ALGORITHMS, algorithm
from cmdplab.algorithms.table1 import TABLE_1
from cmdplab.audit import audit, gather
from cmdplab.audit.files import SATURATED, draw, visible
from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import CURVES, MISTAKES
from cmdplab.experiments.experiment import parse_experiment
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.records.groups import units_of
from cmdplab.experiments.records.tables import read_curves
from cmdplab.figures.bands import (
    GEOMETRIC_MEAN,
    HEAVY,
    POINTS,
    middle_of,
    spread_out,
    summarised,
    words,
)
from cmdplab.figures.palette import COLOURS, DASHES, LOOKS, looks
from cmdplab.figures.plots import KINDS, draw_frontier
from cmdplab.figures.portraits import EntropyCurve, Portrait, draw_entropy, draw_occupancy
from cmdplab.figures.sources import per_instance, records_of
from cmdplab.figures.studies import MUTED, comparison, figure_1, highlighted, line_styles
from cmdplab.figures.style import literal, spread, styles_of
from cmdplab.solvers.thresholds.frontier import frontier
from cmdplab.statistics import Band
from cmdplab.studies.predefined import Comparison, carry_out

pytestmark = pytest.mark.usefixtures("one_process")

DOLLARS = r"cost $\frac$ x"
NASTY = "_" + DOLLARS + "\x1b[31m\u202e\ud800 $ \\$"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("plots")
    names = ("UOpt-RPGPD", "No-regularization", "OptCMDP")
    carry_out(Comparison(problem="three-state", episodes=300, seeds=2, algorithms=names, out=out))
    return out


@pytest.fixture(scope="module")
def many_seeds(tmp_path_factory):
    out = tmp_path_factory.mktemp("many")
    names = ("UOpt-RPGPD", "No-regularization")
    carry_out(Comparison(problem="three-state", episodes=300, seeds=6, algorithms=names, out=out))
    return out


def each_kind(*choices: str):
    """Kinds and choices: each kind with one choice in turn, the other pairs are slow."""
    return [
        pytest.param(
            kind,
            choice,
            id=f"{kind}-{choice or 'usual'}",
            marks=[] if n % len(choices) == m else [pytest.mark.slow],
        )
        for n, kind in enumerate(KINDS)
        for m, choice in enumerate(choices)
    ]


@pytest.mark.parametrize(("kind", "suffix"), each_kind("png", "pdf", "svg", ""))
def test_every_kind_in_every_format(call, folder, kind, suffix, tmp_path):
    path = tmp_path / f"f.{suffix}" if suffix else folder / f"{kind}.pdf"
    code, out, _ = call("plot", folder, kind, *(["--out", path] if suffix else []))
    assert code == 0
    assert not suffix or out.strip() == str(path)
    assert path.stat().st_size > 3000


@pytest.mark.parametrize(("kind", "line"), each_kind("median", "mean"))
def test_every_kind_with_bands(call, many_seeds, kind, line, tmp_path):
    path = tmp_path / "f.png"
    assert call("plot", many_seeds, kind, "--out", path, "--line", line)[0] == 0
    assert path.stat().st_size > 3000


@pytest.mark.parametrize(("kind", "shades"), [("gap", (3, 4)), ("regret", (0, 2))])
def test_bands_come_with_six_seeds(folder, many_seeds, kind, shades):
    """Two seeds: an envelope for each algorithm. Six: a band more."""
    from matplotlib.figure import Figure

    drawing, file, _ = KINDS[kind]
    for where, number, dark in ((folder, shades[0], False), (many_seeds, shades[1], True)):
        axes = Figure().subplots()
        title = drawing(axes, read_curves(where / file), "median")
        assert len(axes.collections) == number
        assert ("dark: 95 % band" in title) == dark


def walks(seeds: int, seed: int = 0) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).normal(size=(seeds, 40)), axis=1)


def test_the_line_is_a_median_and_its_band_as_strong_as_the_seeds_carry():
    few, six, many = walks(5), walks(6), walks(40)
    for tables, banded, at_once in (
        ({"a": few}, [], None),
        ({"a": walks(1)}, [], None),
        ({"a": six}, ["a"], False),
        ({"a": many}, ["a"], True),
        ({"a": many, "b": six, "c": few}, ["a", "b"], False),
        ({"a": many, "c": few}, ["a"], True),
    ):
        summary = summarised(tables)
        assert (summary.middle.name, list(summary.bands)) == ("median", banded)
        for each, band in summary.bands.items():
            assert band.at_once == at_once
            np.testing.assert_array_equal(band.middle, np.median(tables[each], axis=0))
            assert np.all((band.low <= band.middle) & (band.middle <= band.high))


def test_a_mean_is_asked_for_and_warned_of():
    heavy = np.exp(2.0 * walks(12))
    summary = summarised({"a": heavy, "b": walks(12)}, middle_of("mean"))
    assert [each.split(":")[0] for each in summary.cautions] == ["a"]
    assert HEAVY in words(summary, {"a": heavy}, False)
    assert summarised({"a": heavy}).cautions == []
    with pytest.raises(InputError, match="choose median or mean"):
        middle_of("mode")


def test_counts_have_a_geometric_mean():
    counts = np.array([[0.0, 3.0], [0.0, 15.0]])
    assert GEOMETRIC_MEAN.curve(counts) == pytest.approx([0.0, 7.0])  # (4 * 16)^(1/2) - 1
    table = np.random.default_rng(0).integers(0, 50, (6, 20)).astype(float)
    summary = summarised({"a": table}, middle_of("mean", counts=True))
    assert summary.bands["a"].middle == pytest.approx(GEOMETRIC_MEAN.curve(table))


@pytest.mark.parametrize("spacing", [np.linspace, np.geomspace])
def test_a_band_holds_at_a_hundred_points_with_both_ends(spacing):
    x = np.arange(1.0, 5001.0)
    at = spread_out(x, spacing)
    assert (at[0], at[-1]) == (0, len(x) - 1)
    assert 50 < len(at) <= POINTS
    assert np.all(np.diff(at) > 0)
    assert list(spread_out(x[:1], spacing)) == [0]


def test_words_say_what_lines_and_shades_are():
    def said(envelope, **tables):
        return words(summarised(tables), tables, envelope)

    assert said(False, a=walks(1)) == "one seed"
    assert said(True, a=walks(2)) == "median over 2 seeds; light: every episode"
    expected = "median over 2 or 6 seeds\ndark: 95 % band of the median, at each point on its own"
    assert said(False, a=walks(6), b=walks(2)) == expected
    assert said(False, a=walks(40)).endswith("of the median, at 40 points at once")


def test_what_cannot_be_drawn(call, folder, tmp_path):
    for arguments, sentence in (
        ((folder, "birds"), "choose one of gap, violation"),
        ((folder, "gap", "--out", tmp_path / "f.txt"), "is no .png"),
        ((tmp_path, "gap"), "has no curves.parquet"),
    ):
        code, _, err = call("plot", *arguments)
        assert (code, sentence in err) == (2, True)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Three instances of `maze` and one of `lake`, two settings, two seeds."""
    base = tmp_path_factory.mktemp("sweep")
    for n in range(3):
        replace(random_problem(3, 2, 2, 1, n), name=f"maze (seed {n})").save(base / f"{n}.npz")
    replace(random_problem(4, 2, 2, 1), name="lake").save(base / "lake.npz")
    values = {
        "name": "two",
        "episodes": 300,
        "seeds": 2,
        "problems": [{"file": f"{n}.npz"} for n in (0, 1, 2, "lake")],
        "algorithms": [{"name": "UOpt-RPGPD", "bonus_scale": [1e-3, 1e-2]}],
    }
    sweep(parse_experiment(values, "here"), base / "out", base=base, workers=2)
    return base / "out"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_a_sweep(call, swept, kind, tmp_path):
    path = tmp_path / "f.svg"
    code, out, err = call("plot", swept, kind, "--environment", "maze", "--out", path)
    assert (code, out.strip(), err) == (0, str(path), "")
    text = path.read_text()
    assert "maze, medians over the seeds of each instance" in text
    assert ("over 3 instances" in text) == (kind != "phase")
    assert "UOpt-RPGPD (bonus_scale 0.01)" in text


def test_a_sweep_s_lines_are_its_runs(swept):
    found = records_of(swept, CURVES, "lake")
    assert (found.sample, found.about) == ("seed", "lake")
    labels = ["UOpt-RPGPD (bonus_scale 0.001)", "UOpt-RPGPD (bonus_scale 0.01)"]
    assert list(found.curves) == labels
    for label, scale in zip(labels, (1e-3, 1e-2), strict=True):
        mine = [w for w in works_of(swept)
                if (w.settings.problem, w.settings.bonus_scale) == ("lake", scale)]  # fmt: skip
        for work, columns in zip(mine, found.curves[label], strict=True):
            (of_run,) = read_curves(work.folder / CURVES).values()
            np.testing.assert_array_equal(columns["gap"], of_run[0]["gap"])
    over = records_of(swept, MISTAKES, "maze")
    assert (over.sample, {len(runs) for runs in over.curves.values()}) == ("instance", {3})


def test_an_instance_counts_once_by_the_median_of_its_seeds():
    runs = [{"gap": np.array([v]), "gap_min": np.array([v - 1]), "gap_max": np.array([v + 1])}
            for v in (1.0, 9.0, 2.0, 6.0)]  # fmt: skip
    first, second = per_instance(runs, units_of(["a", "b", "a", "a"]))
    assert [first[name][0] for name in ("gap", "gap_min", "gap_max")] == [2.0, 0.0, 7.0]
    assert [second[name][0] for name in ("gap", "gap_min", "gap_max")] == [9.0, 8.0, 10.0]
    assert per_instance(runs, units_of("aaaa")) == runs


def test_which_part_of_a_sweep(call, swept, folder, tmp_path):
    one = works_of(folder)[0].folder
    for arguments, sentence in (
        ((swept, "gap"), "choose one --environment of"),
        ((swept, "gap"), "maze, lake"),
        ((swept, "gap", "--environment", "sea"), "has no environment 'sea': choose maze or lake"),
        ((folder, "gap", "--environment", "maze"), "has no environment 'maze': choose three-st"),
        ((one, "gap", "--environment", "maze"), "--environment chooses from a sweep"),
    ):
        code, _, err = call("plot", *arguments, "--out", tmp_path / "f.png")
        assert (code, sentence in err.replace("\n", " ")) == (2, True)


def test_what_a_sweep_lacks_is_said(call, swept, tmp_path):
    last = works_of(swept)[-1].folder
    record = manifest.read(last)
    manifest.write(last, record.model_copy(update={"status": "failed", "error": "boom"}))
    path = tmp_path / "f.png"
    code, _, err = call("plot", swept, "gap", "--environment", "lake", "--out", path)
    manifest.write(last, record)
    assert (code, path.exists()) == (0, True)
    assert "on lake has 1 of its 2 runs" in err


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_drawn_as_they_are(call, kind, tmp_path):
    names = (DOLLARS, "_under", "UOpt-RPGPD")
    made = records(tmp_path / "made", names=names, seeds=2, episodes=1200)
    assert call("plot", made, kind, "--out", tmp_path / "f.svg")[0] == 0
    text = (tmp_path / "f.svg").read_text()
    assert all(name in text for name in names)  # Matplotlib writes every text as a comment


def test_literal_texts():
    assert literal("a: b_c (1e-3)") == "a: b_c (1e-3)"
    assert literal("x\x1b\x00y\u2028\nz") == "xy\nz"
    from matplotlib.text import Text

    for name in (DOLLARS, "$", r"\$", "$$", "a$b"):
        assert Text()._preprocess_math(literal(name)) == (name, False)


@pytest.mark.slow
def test_no_name_breaks_a_figure(swept, two_state, tmp_path):
    draw_frontier(frontier(two_state, points=5), NASTY, tmp_path / "f.svg")
    assert DOLLARS in (tmp_path / "f.svg").read_text()
    row = replace(algorithm("UOpt-RPGPD"), name=NASTY)
    x = np.array([1.0, 2.0, 3.0])
    curves = [EntropyCurve(row, 0, x, x / 3, x), EntropyCurve(row, 0, x, x / 3, None)]
    draw_entropy(curves, NASTY, tmp_path / "e.svg")
    pairs = np.full((2, 2, 2), 0.25)
    draw_occupancy(Portrait(pairs, pairs), NASTY, tmp_path / "o.svg")
    findings = [audit(group)._replace(label=NASTY, environment=NASTY) for group in gather(swept)[0]]
    made = records(tmp_path / "made", names=(NASTY.replace("\ud800", ""),), episodes=1200)
    named = {NASTY: next(iter(read_curves(made / CURVES).values()))}
    written = [
        *draw(findings, tmp_path),
        *figure_1(named, NASTY, tmp_path, {NASTY}),
        *comparison(named, NASTY, tmp_path, {NASTY}),
    ]
    assert all(path.stat().st_size > 3000 for path in written)


def grey(colour: str) -> float:
    """The lightness of Rec. 601, 0 to 255: what a grey printer makes of it."""
    return float(np.dot([0.299, 0.587, 0.114], [int(colour[n : n + 2], 16) for n in (1, 3, 5)]))


def test_every_algorithm_has_a_look_of_its_own():
    assert set(LOOKS) == {name for name, _ in ALGORITHMS}
    assert len({(look.colour, look.dash) for look in LOOKS.values()}) == len(LOOKS)


def test_the_ten_of_table_1_are_apart_in_grey():
    for n, one in enumerate(TABLE_1):
        for other in list(TABLE_1)[:n]:
            a, b = LOOKS[one], LOOKS[other]
            assert a.dash != b.dash or abs(grey(a.colour) - grey(b.colour)) > 30, (one, other)


def test_a_look_does_not_depend_on_what_else_is_drawn():
    every = list(LOOKS)
    for name, own in LOOKS.items():
        assert looks([name])[name] == looks(every[::-1])[name] == own
        assert looks(["stranger", f"{name}:printed", "x"])[f"{name}:printed"] == own


def test_lines_of_one_figure_are_apart():
    labels = [f"UOpt-RPGPD (bonus scale {n})" for n in range(len(COLOURS) * len(DASHES))]
    assert len({(look.colour, look.dash) for look in looks(labels).values()}) == len(labels)
    mixed = looks(["DOPE:released", "DOPE:printed", "OptCMDP", "mine"])
    assert len({(look.colour, look.dash) for look in mixed.values()}) == 4
    assert mixed["OptCMDP"] == LOOKS["OptCMDP"]


def test_figures_and_the_page_draw_an_algorithm_alike(folder, swept, tmp_path, monkeypatch):
    """PNG, PDF and HTML: one colour for one algorithm, and epsilon stricter to the right."""
    from matplotlib.figure import Figure

    from cmdplab.report import gather as gather_report
    from cmdplab.report.page import content

    for where, environment in ((folder, None), (swept, "lake")):
        problems = content(gather_report(where))["problems"]
        (page,) = [each for each in problems if environment in (None, each["name"])]
        colours = [each["colour"] for each in page["algorithms"]]
        curves = records_of(where, CURVES, environment).curves
        assert [style["color"] for style in styles_of(list(curves)).values()] == colours
        axes = Figure().subplots()
        KINDS["gap"].drawing(axes, curves, "median")
        assert [line.get_color() for line in axes.lines[: len(colours)]] == colours
    axes = Figure().subplots()
    KINDS["mistakes"].drawing(axes, records_of(folder, MISTAKES, None).curves, "median")
    left, right = axes.get_xlim()
    assert left > right
    drawn = []
    monkeypatch.setattr("cmdplab.audit.files.save", lambda figure, _: drawn.append(figure))
    draw([audit(group) for group in gather(swept)[0]], tmp_path)
    assert all(a.get_xlim()[0] > a.get_xlim()[1] for p in drawn[0].subfigs for a in p.axes)


def test_nothing_lies_over_the_curves_of_figure_1(tmp_path, monkeypatch):
    """What is enlarged has a panel of its own, which overlaps no other."""
    drawn = []
    monkeypatch.setattr("cmdplab.figures.studies.save", lambda figure, path: drawn.append(figure))
    names = ("UOpt-RPGPD", "No-regularization")
    made = read_curves(records(tmp_path / "made", names=names, seeds=2, episodes=1200) / CURVES)
    for run in made["UOpt-RPGPD"]:
        for column in [c for c in run if c.startswith(("gap", "violation"))]:
            run[column] = np.full_like(run[column], -0.01)
    for run in made["No-regularization"]:
        run["gap_max"] = run["violation_max"] = run["gap_max"] + 1.0
    figure_1(made, "title", tmp_path, ())
    figure = drawn[0]
    figure.draw_without_rendering()
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert len(panels) == 4
    assert not any(axes.child_axes for axes in panels)
    boxes = [axes.get_position() for axes in panels]
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
    assert [len(axes.lines) - 1 for axes in panels] == [2, 2, 1, 1]


def test_a_line_ends_where_all_episodes_are_mistakes():
    counts = np.array([1000.0, 1000.0, SATURATED * 1000.0, 400.0, 3.0, 0.0])
    np.testing.assert_array_equal(visible(counts, 1000), [np.nan, np.nan, 999.0, 400, 3, np.nan])


def test_an_audit_s_bands_stay_below_the_episodes(swept, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr("cmdplab.audit.files.save", lambda figure, _: drawn.append(figure))
    (finding, *_) = [audit(group) for group in gather(swept)[0]]
    band = Band(*(np.full(len(finding.epsilon), v) for v in (0.0, 200.0, 900.0)), 0.95, 6)
    draw([finding._replace(mistakes=dict.fromkeys(finding.mistakes, band))], tmp_path)
    left, right = (axes for part in drawn[0].subfigs for axes in part.axes)
    (shade,) = left.collections
    assert shade.get_paths()[0].vertices[:, 1].max() == finding.episodes == 300
    assert "median" in left.get_ylabel()
    assert "median" in right.get_ylabel()
    assert "probability 0.95" in drawn[0].get_suptitle()
    assert drawn[0].get_size_inches()[0] * 200 <= 1800


def test_names_at_line_ends_lie_apart_inside_and_in_order():
    for heights in ([0.5] * 10, [0.0, 0.01, 0.02], [0.98, 0.99, 1.0], [0.1, 0.5, 0.9]):
        places = spread(np.array(heights), 0.05)
        assert np.all(np.diff(places) >= 0.05 - 1e-12)
        assert places.min() >= 0.0
        assert places.max() <= 1.0
    np.testing.assert_array_equal(spread(np.array([0.1, 0.5, 0.9]), 0.05), [0.1, 0.5, 0.9])


def test_of_many_lines_a_few_are_in_colour_and_apart_without_it():
    ends = {f"line {n}": float(n) for n in range(20)} | {"UOpt-RPGPD": 50.0, "mine": 60.0}
    shown = highlighted(ends, ["mine"])
    assert shown == ["line 0", "line 1", "line 2", "UOpt-RPGPD", "mine"]
    styles = line_styles(list(ends), shown)
    assert len({styles[name]["marker"] for name in shown}) == len(shown)
    assert {styles[name]["color"] for name in ends if name not in shown} == {MUTED}
    few = dict(list(ends.items())[:6])
    assert highlighted(few) == list(few)
