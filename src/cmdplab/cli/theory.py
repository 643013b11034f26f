"""`cmdplab theory`: the numbers of the paper's theory for a problem, each with its lemma.

And the part of `cmdplab audit` that counts the failure events of the proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cmdplab.cli.options import Finite, asked_with_horizon, command
from cmdplab.cli.output import Answer, errors, print_line, print_note, print_numbers, print_rows

if TYPE_CHECKING:
    from cmdplab.audit.events import OnProgress
    from cmdplab.theory.summary import Theory

EVENTS = Path("runs/failure-events")


@command(asked_with_horizon)
def theory_command(
    problem: Finite,
    alpha_eta: float = 0.53,
    alpha_tau: float = 0.4,
    epsilon: float = 0.1,
    episodes: int = 100_000,
    temperature: float | None = None,
    step: float | None = None,
    delta: float = 0.1,
) -> Answer:
    """Print the numbers of the paper's theory for a problem, each with its lemma.

    These are constants of the proofs, k*, the terms (i) and (ii) of the bounds, the saddle point at
    tau, and the longest stable step there. The defaults are those of the paper's experiment;
    Corollary 4.2 is --alpha-eta 0.785714 --alpha-tau 0.142857. Bounds are orders, without constants
    and logarithms: they give the growth of mistakes and regret, not their numbers.
    """
    from cmdplab.theory.bounds import Exponents
    from cmdplab.theory.summary import theory_of

    found = theory_of(
        problem,
        Exponents(alpha_eta, alpha_tau),
        epsilon=epsilon,
        episodes=episodes,
        temperature=temperature,
        step=step,
        delta=delta,
    )
    return Answer("theory", found, lambda: _print(found))


def _print(t: Theory) -> None:
    """Print the declared numbers of each part, with their meaning."""
    sizes = f"X = {t.states}, A = {t.actions}, H = {t.horizon}, N = {t.constraints}"
    solved = "optimum multiplier slater_gap"
    print_numbers(f"{t.name}: {sizes}", "TheoryPage", t, solved)
    constants = "entropy_horizon visits_log first second third combined summed_over_steps "
    first = " log10_burn_in" * (t.log10_burn_in is not None)
    constants += f"first_potential{first}"
    print_numbers("constants of the proofs", "TheoryPage", t, constants)
    if t.mistakes is not None and t.regret is not None:
        rows = [
            t.mistakes._asdict() | {"bound": f"mistakes of {t.epsilon:g}, in 1/eps"},
            t.regret._asdict() | {"bound": f"regret, K = {t.episodes:,}, in K"},
        ]
        title = f"Theorem 4.1 at eta_k = (k+3)^-{t.alpha_eta:g}, tau_k = (k+3)^-{t.alpha_tau:g}"
        print_rows(title, "TheoryTerms", "bound optimisation bias powers", rows)
    title = f"saddle point of L_tau, tau = {t.saddle.temperature:.4g}"
    point = "multiplier multiplier_bound violation violation_bound gap gap_bound"
    print_numbers(title, "TheorySaddle", t.saddle, point)
    title = f"Eqs. 4 and 5 with a known kernel, eta = {t.saddle.step:.4g}"
    print_numbers(title, "TheorySaddle", t.saddle, "coupling largest_step growth")
    if t.outside:
        print_note(f"no bound: {t.outside}")
    print_note(
        "orders without constants and logarithms; as claimed: docs/errata.md says what does not "
        "hold as printed"
    )


def count_events(
    source: Path | None,
    out: Path | None,
    delta: float,
    seeds: int | None,
    episodes: int | None,
    instance_seed: int,
) -> Answer:
    """Play, count the failure events and print them; None stands for a default."""
    from cmdplab.audit.events import EPISODES, NAME, SEEDS, SMALL, failure_events, problem_of

    problem = problem_of(SMALL if source is None else str(source), instance_seed)
    folder = EVENTS if out is None else out
    runs = SEEDS if seeds is None else seeds
    length = EPISODES if episodes is None else episodes
    with _shown() as on_progress:
        sizes = {"seeds": runs, "episodes": length, "delta": delta}
        found = failure_events(problem, folder, **sizes, on_progress=on_progress)  # type: ignore[arg-type]
    fields = {"problem": problem.name, **sizes, "bonus_scale": 1.0, "events": found}

    def show() -> None:
        size = f"{runs:,} runs of {length:,} episodes, delta {delta:g}, bonus scale 1"
        print_rows(
            f"{problem.name}: {size}",
            "Event Frequency",
            "event successes middle low lemma against_lemma union_bound against_union_bound",
            [event._asdict() | event.frequency._asdict() for event in found],
            low=lambda row: f"[{row['low']:.4f}, {row['high']:.4f}]",
        )
        print_note(
            "asked after every episode; exact 95 % intervals, one for each event; lemma: its share "
            "of delta as printed; union: as a union bound gives it; undecided: too few runs"
        )
        print_line(f"the first failure of every run is in {folder / NAME}")

    return Answer("failure-events", fields, show)


@contextmanager
def _shown() -> Iterator[OnProgress]:
    """Show a bar in a terminal, and a line for every tenth elsewhere."""
    if not errors().is_terminal:
        yield _line
        return
    from rich.progress import Progress

    with Progress(console=errors()) as bars:
        bar = bars.add_task("runs", total=None)
        yield lambda done, of: bars.update(bar, completed=done, total=of)


def _line(done: int, of: int) -> None:
    if done * 10 // of > max(done - 1, 0) * 10 // of:
        errors().print(f"{done:,} of {of:,} runs", highlight=False)
