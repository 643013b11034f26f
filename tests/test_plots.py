"""Figures from records: every kind in every format, what their shades are, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from cmdplab.compare import Comparison, compare
from cmdplab.middles import (
    GEOMETRIC_MEAN,
    MEAN,
    POINTS,
    geometric_mean_curve,
    spread_out,
    summarised,
    words,
)
from cmdplab.plots import KINDS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("plots")
    names = ("UOpt-RPGPD", "No-regularization", "OptCMDP")
    compare(Comparison(problem="three-state", episodes=300, seeds=2, algorithms=names, out=out))
    return out


@pytest.fixture(scope="module")
def many_seeds(tmp_path_factory):
    out = tmp_path_factory.mktemp("many")
    names = ("UOpt-RPGPD", "No-regularization")
    compare(Comparison(problem="three-state", episodes=300, seeds=6, algorithms=names, out=out))
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_every_format(call, folder, kind, tmp_path):
    for suffix in ("png", "pdf", "svg"):
        path = tmp_path / f"f.{suffix}"
        code, out, _ = call("plot", folder, kind, "--out", path)
        assert (code, out.strip()) == (0, str(path))
        assert path.stat().st_size > 3000
    code, out, _ = call("plot", folder, kind)
    assert (code, (folder / f"{kind}.pdf").exists()) == (0, True)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_with_bands(call, many_seeds, kind, tmp_path):
    path = tmp_path / "f.png"
    assert call("plot", many_seeds, kind, "--out", path)[0] == 0
    assert path.stat().st_size > 3000


@pytest.mark.parametrize(("kind", "shades"), [("gap", (3, 4)), ("regret", (0, 2))])
def test_bands_come_with_five_seeds(folder, many_seeds, kind, shades):
    """Two seeds: an envelope for each algorithm. Six: a band more."""
    from matplotlib.figure import Figure

    from cmdplab.records import read_curves

    drawing, file = KINDS[kind]
    for where, number, dark in ((folder, shades[0], False), (many_seeds, shades[1], True)):
        axes = Figure().subplots()
        title = drawing(axes, read_curves(where / file))
        assert len(axes.collections) == number
        assert ("dark: 95 % band" in title) == dark


def walks(seeds: int, seed: int = 0) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).normal(size=(seeds, 40)), axis=1)


def test_the_line_is_what_its_band_is_about():
    few, five, many = walks(4), walks(5), walks(40)
    for tables, name, banded in (
        ({"a": few}, "median", []),
        ({"a": walks(1)}, "median", []),
        ({"a": five}, "mean", ["a"]),
        ({"a": many}, "median", ["a"]),
        ({"a": many, "b": five, "c": few}, "mean", ["a", "b"]),
        ({"a": many, "c": few}, "median", ["a"]),
    ):
        summary = summarised(tables, MEAN)
        assert (summary.middle.name, list(summary.bands)) == (name, banded)
        for each, band in summary.bands.items():
            np.testing.assert_allclose(band.middle, summary.middle.curve(tables[each]), atol=1e-12)
            assert np.all((band.low <= band.middle) & (band.middle <= band.high))


def test_counts_have_a_geometric_mean():
    counts = np.array([[0.0, 3.0], [0.0, 15.0]])
    assert geometric_mean_curve(counts) == pytest.approx([0.0, 7.0])  # (4 * 16)^(1/2) - 1
    table = np.random.default_rng(0).integers(0, 50, (5, 20)).astype(float)
    summary = summarised({"a": table}, GEOMETRIC_MEAN)
    assert summary.bands["a"].middle == pytest.approx(geometric_mean_curve(table))


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
        return words(summarised(tables, MEAN), tables, envelope)

    assert said(False, a=walks(1)) == "one seed"
    assert said(True, a=walks(2)) == "median over 2 seeds; light: every episode"
    expected = "mean over 2 or 5 seeds\ndark: 95 % band of the mean, at 40 points at once"
    assert said(False, a=walks(5), b=walks(2)) == expected


def test_what_cannot_be_drawn(call, folder, tmp_path):
    for arguments, sentence in (
        ((folder, "birds"), "choose one of gap, violation"),
        ((folder, "gap", "--out", tmp_path / "f.txt"), "is no .png"),
        ((tmp_path, "gap"), "has no curves.parquet"),
    ):
        code, _, err = call("plot", *arguments)
        assert (code, sentence in err) == (2, True)
