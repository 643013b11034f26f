"""What a notebook shows: figures as Matplotlib objects, bars in a cell, the report in a frame."""

from __future__ import annotations

import html
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console

import cmdplab
from cmdplab.display import bar
from cmdplab.experiments.play import Job
from cmdplab.experiments.progress import shown
from cmdplab.figures import figure
from cmdplab.figures.plots import KINDS
from cmdplab.report import show
from cmdplab.solvers.thresholds.frontier import frontier
from cmdplab.studies.predefined import Comparison, carry_out

pytestmark = pytest.mark.usefixtures("one_process")

PNG = b"\x89PNG\r\n\x1a\n"
PROBLEM = cmdplab.make("three-state")


@pytest.fixture(scope="module")
def compared():
    return cmdplab.compare(PROBLEM, ["UOpt-RPGPD", "OptCMDP"], episodes=60, seeds=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("notebook")
    names = ("UOpt-RPGPD", "OptCMDP")
    carry_out(Comparison(problem="three-state", episodes=60, seeds=2, algorithms=names, out=out))
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_a_figure_that_a_notebook_shows(compared, kind):
    drawn = figure(compared.runs, kind)
    assert isinstance(drawn, Figure)
    assert drawn._repr_png_().startswith(PNG)
    legend = {text.get_text().partition(":")[0] for text in drawn.legends[0].get_texts()}
    assert legend == {"UOpt-RPGPD", "OptCMDP"}


def test_runs_in_memory_and_in_a_folder_are_the_same_lines(compared, folder):
    mine, kept = (figure(each, "gap").axes[0].get_lines() for each in (compared.runs, folder))
    assert len(mine) == len(kept) == 3  # and the line at zero
    for one, other in zip(mine, kept, strict=True):
        np.testing.assert_array_equal(one.get_ydata(), other.get_ydata())


def test_a_run_is_drawn_as_it_is(compared):
    run = compared.runs["OptCMDP"][0]
    for given in (run, [run]):
        line = figure(given, "violation").axes[0].get_lines()[0]
        np.testing.assert_array_equal(line.get_ydata(), run.curves["violation"])
    assert figure(frontier(PROBLEM, points=3)).axes[0].get_ylabel() == "optimal value"


def test_what_cannot_be_drawn_is_refused(compared):
    with pytest.raises(cmdplab.InputError, match="choose one of gap, violation"):
        figure(compared.runs, "gaps")
    with pytest.raises(cmdplab.InputError, match="no run to draw"):
        figure([], "gap")
    with pytest.raises(cmdplab.InputError, match="these are runs"):
        figure(compared.runs, "gap", environment="three-state")


def test_a_report_sits_in_a_frame_and_keeps_to_it(folder):
    shown_there = show(folder, height=300)._repr_html_()
    assert len(re.findall("<", shown_there)) == 2  # the frame alone: the page is escaped
    page = html.unescape(shown_there.partition('srcdoc="')[2].rpartition('"')[0])
    assert page.startswith("<!") or page.startswith("<html")
    assert "OptCMDP" in page
    assert "height: 300px" in shown_there


@pytest.fixture
def cells(monkeypatch):
    """Every update that a notebook would show, from an IPython that only writes them down."""
    written: list[str] = []
    place = SimpleNamespace(update=written.append)
    fake = SimpleNamespace(HTML=str, display=lambda what, display_id: place)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(display=fake))
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    return written


def test_runs_show_a_bar_in_a_notebook_that_ends_full(cells):
    console = Console(force_jupyter=True)
    with shown([Job("UOpt-RPGPD", 0)], 400, console) as on_progress:
        cmdplab.run(PROBLEM, "UOpt-RPGPD", 400, on_progress=on_progress)
    assert "value='400' max='400'" in cells[-1]
    assert "1 of 1 runs" in cells[-1]


def test_live_learning_shows_a_bar_for_each_phase(cells):
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("cmdplab.gym:cmdplab/ThreeState-v0")
    with cmdplab.live.shown("here", Console(force_jupyter=True)) as on_progress:
        cmdplab.learn(
            env,
            "UOpt-RPGPD",
            episodes=20,
            horizon=6,
            budget=3.0,
            evaluate=10,
            on_progress=on_progress,
        )
    text = "".join(cells)
    assert "here learning" in text
    assert "here evaluating" in text
    assert "value='10' max='10'" in cells[-1]


def test_words_of_a_bar_are_escaped():
    assert bar(1, None, "<b>") == "<progress></progress> <small>&lt;b&gt;</small>"
