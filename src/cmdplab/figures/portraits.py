"""Portraits of one run: the randomness of its policy on the way, and its states in the end.

Records hold no policies. The run is played again, in pieces, and its policy is read between them.
The drawings have column width, and are legible in grey.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.row import Row
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import policy_of
from cmdplab.errors import InputError
from cmdplab.experiments.play import Entry, OnProgress, Playing, check_counts, play_on
from cmdplab.figures.style import COLUMN, in_house_style, legend_below, literal, save, styles_of
from cmdplab.solvers import solve_feasible
from cmdplab.theory.soft import entropy
from cmdplab.types import Array, Indices

POINTS = 120  # episodes at which a run is looked at
MOST_STATES = 60  # more are not drawn all
VISITED_STATES = 40  # then only so many of the most visited
TICKS = 10
COLOURS = "magma_r"  # perceptually uniform, its lightness falls steadily: the same order in grey


class EntropyCurve(NamedTuple):
    """Entropy and temperature at some episodes k of a run, after the update of episode k."""

    row: Row
    seed: int
    episode: Array  # [T], whole numbers, the last one of the run included
    entropy: Array  # [T], in [0, 1]: see `policy_entropy`
    temperature: Array | None  # [T], tau_k; None for a family that has none: see `no_temperature`


class Portrait(NamedTuple):
    """Occupancies w_h(x, a) of a learned policy and of an optimal one, [H, X, A]."""

    learned: Array
    optimal: Array

    @property
    def distance(self) -> float:
        """Return the total-variation distance of the two: see `total_variation`."""
        return total_variation(self.learned, self.optimal)


def policy_entropy(problem: CMDP, policy: Array) -> float:
    """Return the entropy of a policy [H, X, A] where it goes, between 0 and 1.

    E[ sum_h -sum_a pi_h(a | x_h) ln pi_h(a | x_h) ] / (H ln A), with the states x_h that the policy
    itself visits. 1: uniform in them; 0: deterministic in them.
    """
    most = problem.horizon * math.log(problem.actions)
    if most == 0.0:
        raise InputError(f"{problem.name} has one action: every policy has entropy 0 of at most 0")
    visits = exact.occupancy(problem, policy).sum(axis=-1)
    return float(np.sum(visits * entropy(policy)) / most)


def total_variation(first: Array, second: Array) -> float:
    """Return (1 / 2H) sum_{h,x,a} |w_h(x, a) - w'_h(x, a)| of occupancies [H, X, A]: in [0, 1]."""
    return float(np.abs(first - second).sum() / (2 * len(first)))


def no_temperature(row: Row) -> str:
    """Return the reason why a row has no temperature, as one sentence; empty if it has one."""
    if not isinstance(row, PrimalDual):
        return f"{row.name} has no temperature: only primal-dual rows weigh entropy"
    return ""


def entropy_curve(
    entry: Entry, episodes: int, points: int = POINTS, on_progress: OnProgress | None = None
) -> EntropyCurve:
    """Play a run, and read its policy at most `points` times, at log-spaced episodes.

    At episode k the curve has the entropy of the policy after k updates, which episode k + 1 plays,
    and tau_k, the temperature of the last update. Reading changes nothing: the run is that of
    `experiments.run.run`.
    """
    stops, row = looked_at(episodes, points), entry.algorithm
    values = [
        policy_entropy(entry.problem, policy) for policy in policies(entry, stops, on_progress)
    ]
    k = np.array(stops, dtype=np.float64)
    temperature = None
    if isinstance(row, PrimalDual):
        temperature = row.temperature(k, row.setting(entry.task))
    return EntropyCurve(row, entry.seed, k, np.array(values), temperature)


def occupancy_portrait(
    entry: Entry, episodes: int, on_progress: OnProgress | None = None
) -> Portrait:
    """Return the occupancies of the policy after the last episode and of `solve`'s policy.

    There may be other optimal policies: a distance above zero does not mean that a policy is bad.
    """
    optimum = solve_feasible(entry.problem)
    assert optimum.occupancy is not None
    (last,) = policies(entry, [episodes], on_progress)
    return Portrait(exact.occupancy(entry.problem, last), optimum.occupancy)


def looked_at(episodes: int, points: int) -> list[int]:
    """Return at most `points` of the episodes 1, ..., log-spaced, with the first and the last."""
    check_counts(episodes, 0)
    if points < 2:
        raise InputError(f"points is {points}: the first and the last episode make two")
    return [int(k) for k in np.unique(np.rint(np.geomspace(1, episodes, points)))]


def policies(entry: Entry, stops: Sequence[int], on_progress: OnProgress | None) -> Iterator[Array]:
    """Play a run, and yield its policy [H, X, A] after each episode of `stops`, which increase."""
    check_counts(stops[-1], entry.seed)
    playing = Playing(entry)

    def after() -> None:
        if on_progress:
            on_progress(playing.standing())

    for episodes in stops:
        play_on(playing, episodes, lambda: False, after)
        yield policy_of(entry.algorithm, entry.task, playing.reached().state)


def draw_entropy(curves: Sequence[EntropyCurve], title: str, path: Path) -> Path:
    """Draw entropy above and temperature below, against the episode on a logarithmic axis."""
    cooled = [c for c in curves if c.temperature is not None and c.temperature.max() > 0.0]
    panels = 2 if cooled else 1
    figure = Figure(figsize=(COLUMN[0], 0.4 + 1.5 * panels), layout="constrained")
    axes = figure.subplots(panels, sharex=True, squeeze=False)[:, 0]
    styles = styles_of([c.row.name for c in curves])
    for c in curves:
        axes[0].plot(c.episode, c.entropy, label=literal(c.row.name), **styles[c.row.name])
    axes[0].set_ylim(-0.02, 1.02)
    axes[0].set_ylabel("policy entropy\n/ (H ln A)")
    if cooled:
        for c in cooled:
            axes[1].plot(c.episode, c.temperature, **styles[c.row.name])
        axes[1].set_yscale("log")
        axes[1].set_ylabel("temperature τ")
    axes[-1].set_xscale("log")
    points = max(len(c.episode) for c in curves)
    axes[-1].set_xlabel(f"episode ({points} of {curves[0].episode[-1]:,.0f} looked at)")
    for panel in axes:
        in_house_style(panel)
    legend_below(figure, axes[0], "\n".join([title, *_without(curves)]))
    return save(figure, path)


def _without(curves: Sequence[EntropyCurve]) -> list[str]:
    """Return the lines that the lower panel lacks, with the reason."""
    none = [c.row.name for c in curves if c.temperature is None]
    zero = [c.row.name for c in curves if c.temperature is not None and not c.temperature.any()]
    lines = [f"no temperature: {', '.join(none)}"] if none else []
    return lines + ([f"temperature 0: {', '.join(zero)}"] if zero else [])


def draw_occupancy(portrait: Portrait, title: str, path: Path) -> Path:
    """Draw sum_a w_h(x, a) of both policies side by side: steps across, states down.

    Both have one colour scale, of square roots, because the first step has all its mass in one
    state.
    """
    learned, optimal = (occupancy.sum(axis=-1).T for occupancy in portrait)  # [X, H]
    rows = shown_states(learned, optimal)
    most = float(max(learned.max(), optimal.max()))
    norm = PowerNorm(0.5, vmin=0.0, vmax=most)
    height = min(4.2, 1.8 + 0.07 * max(len(rows), 10))
    figure = Figure(figsize=(COLUMN[0], height), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    image: Any = None
    for panel, mass, name in zip(axes, (learned, optimal), ("learned", "optimal"), strict=True):
        image = panel.imshow(mass[rows], aspect="auto", cmap=COLOURS, norm=norm)
        panel.set_title(name, fontsize=8)
        panel.set_xlabel("step", fontsize=8)
        _ticks(panel, rows, mass.shape[1])
    axes[0].set_ylabel(_states_label(rows, learned, optimal), fontsize=8)
    bar = figure.colorbar(image, ax=list(axes), ticks=_levels(most))
    bar.set_label("Σₐ w(x, a), square-root scale", fontsize=7)
    bar.ax.tick_params(labelsize=7)
    distance = f"total-variation distance {portrait.distance:.3g}, mean over steps"
    figure.suptitle(f"{literal(title)}\n{distance}", fontsize=7)
    return save(figure, path)


def shown_states(learned: Array, optimal: Array) -> Indices:
    """Return the states to draw, in order: all of [X, H], or the most visited by both together."""
    X = len(learned)
    if X <= MOST_STATES:
        return np.arange(X, dtype=np.int64)
    visits = (learned + optimal).sum(axis=1)
    return np.sort(np.argsort(-visits, kind="stable")[:VISITED_STATES])


def _states_label(rows: Indices, learned: Array, optimal: Array) -> str:
    X = len(learned)
    if len(rows) == X:
        return "state"
    share = (learned[rows] + optimal[rows]).sum() / (learned + optimal).sum()
    return f"state: the {len(rows)} most visited of {X:,} ({100 * share:.0f} % of visits)"


def _levels(most: float) -> list[float]:
    """Return round numbers that lie apart on a square-root scale."""
    return [level for level in (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0) if level <= most]


def _ticks(panel: Axes, rows: Indices, steps: int) -> None:
    """Mark a few of the steps, counted from 1, and of the states, counted from 0."""
    at = np.arange(0, steps, max(1, -(-steps // 5)))
    panel.set_xticks(at, [str(h + 1) for h in at])
    at = np.arange(0, len(rows), max(1, -(-len(rows) // TICKS)))
    panel.set_yticks(at, [str(rows[n]) for n in at])
    panel.tick_params(labelsize=7)
