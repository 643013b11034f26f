"""`cmdplab theory`: the numbers of the paper's theory for a problem, each with its lemma.

And the part of `cmdplab audit` that counts the failure events of the proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cmdplab.cli.options import Finite, Json, asked_with_horizon, count, given, option
from cmdplab.cli.output import errors, print_json, print_line, print_note, print_rows, print_table

if TYPE_CHECKING:
    from cmdplab.audit.events import OnProgress
    from cmdplab.theory.summary import Terms, Theory

Lines = list[list[str]]
EVENTS = Path("runs/failure-events")


@given(asked_with_horizon)
def theory_command(
    problem: Finite,
    alpha_eta: Annotated[float, option("eta_k = (k + 3)^-alpha_eta.")] = 0.53,
    alpha_tau: Annotated[float, option("tau_k = (k + 3)^-alpha_tau.")] = 0.4,
    epsilon: Annotated[float, option("Accuracy at which mistakes are bounded.")] = 0.1,
    episodes: Annotated[int, count("K, at which regret is bounded, such as 1e5.")] = 100_000,
    temperature: Annotated[
        float | None, option("tau of the saddle point; by default tau_K.")
    ] = None,
    step: Annotated[
        float | None, option("eta of which stability is asked; by default eta_K.")
    ] = None,
    delta: Annotated[float, option("Probability with which all may fail.")] = 0.1,
    as_json: Json = False,
) -> None:
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
    if as_json:
        print_json("theory", found)
        return
    _print(found)


def _print(t: Theory) -> None:

    sizes = f"X = {t.states}, A = {t.actions}, H = {t.horizon}, N = {t.constraints}"
    header = ["", "where", "value"]
    for title, rows in (
        (f"{t.name}: {sizes}", _problem(t)),
        ("constants of the proofs", _constants(t)),
        (f"Theorem 4.1 at eta_k = (k+3)^-{t.alpha_eta:g}, tau_k = (k+3)^-{t.alpha_tau:g}", _of(t)),
        (f"saddle point of L_tau, tau = {t.saddle.temperature:.4g}", _saddle(t)),
        (f"Eqs. 4 and 5 with a known kernel, eta = {t.saddle.step:.4g}", _stability(t)),
    ):
        if rows:
            print_table(title, header, rows, left=2)
    if t.outside:
        print_note(f"no bound: {t.outside}")
    print_note(
        "orders without constants and logarithms; as claimed: docs/errata.md says what does not "
        "hold as printed"
    )


def _problem(t: Theory) -> Lines:
    from cmdplab.display.terminal import number, numbers

    return [
        ["optimal value V*", "Section 2.1", number(t.optimum, 6)],
        ["multipliers lambda*", "Eq. 9", numbers(t.multiplier)],
        ["Slater gap b_gap", "Assumption 2.1", number(t.slater_gap, 6)],
    ]


def _constants(t: Theory) -> Lines:
    return [
        ["H_ent = H (1 + ln A)", "Appendix E", f"{t.entropy_horizon:.5g}"],
        ["ln(4 X A H / delta)", "Appendix H.1, F^N", f"{t.visits_log:.5g}"],
        ["C_1, of squared action values", "Lemma H.7", f"{t.first:.4g}"],
        ["C_2, of squared logarithms", "Lemma H.7", f"{t.second:.4g}"],
        ["C_3, of squared dual gradients", "Lemma H.8", f"{t.third:.4g}"],
        ["C = C_1 + C_2 + C_3", "Appendix H.4", f"{t.combined:.4g}"],
        ["H (C_1 + C_2) + C_3", "Lemma H.7 corrected", f"{t.summed_over_steps:.4g}"],
        ["Phi^1, at most", "proof of Lemma H.9", f"{t.first_potential:.4g}"],
    ]


def _of(t: Theory) -> Lines:
    if t.mistakes is None or t.regret is None or t.log10_burn_in is None:
        return []
    burn_in = [["k*, from where the bounds hold", "Lemma H.9", _power(t.log10_burn_in)]]
    mistakes = _terms(t.mistakes, f"mistakes of {t.epsilon:g}", "Theorem 4.1", "eps^-")
    regret = _terms(t.regret, f"regret, K = {t.episodes:,}", "Theorem 2.3 (3)", "K^")
    return burn_in + mistakes + regret


def _terms(terms: Terms, what: str, where: str, power: str) -> Lines:
    first, second = (f"{power}{each:.4g}" for each in terms.powers)
    return [
        [f"{what}: (i) learning, {first}", f"{where}, (i)", _power(terms.optimisation)],
        [f"{what}: (ii) bias, {second}", f"{where}, (ii)", _power(terms.bias)],
    ]


def _power(log10: float) -> str:
    return f"{10.0**log10:.3g}" if log10 < 6.0 else f"10^{log10:.1f}"


def _saddle(t: Theory) -> Lines:
    from cmdplab.display.terminal import numbers

    s = t.saddle
    return [
        ["multipliers", "Lemma 3.1", numbers(s.multiplier)],
        ["their sum, at most", "Lemma F.4", f"{s.multiplier_bound:.4g}"],
        ["violation = tau multiplier", "proof of Lemma F.4", numbers(s.violation)],
        ["violation, at most", "Lemma F.4", f"{s.violation_bound:.4g}"],
        ["gap", "Section 2.2", f"{s.gap:.6f}"],
        ["gap, at most tau H_ent", "proof of Lemma F.5", f"{s.gap_bound:.4g}"],
    ]


def _stability(t: Theory) -> Lines:
    s = t.saddle
    word = "settles" if s.growth < 1.0 else "is driven away"
    return [
        ["coupling C", "not in the paper", f"{s.coupling:.4g}"],
        ["settles below eta =", "2 tau / (C + tau^2)", f"{s.largest_step:.4g}"],
        [f"one update multiplies by: it {word}", "its linearisation", f"{s.growth:.6f}"],
    ]


def count_events(
    source: Path | None,
    out: Path | None,
    delta: float,
    seeds: int | None,
    episodes: int | None,
    instance_seed: int,
    as_json: bool,
) -> None:
    """Play, count the failure events and print them; None stands for a default."""
    from cmdplab.audit.events import EPISODES, NAME, SEEDS, SMALL, failure_events, problem_of

    problem = problem_of(SMALL if source is None else str(source), instance_seed)
    folder = EVENTS if out is None else out
    runs = SEEDS if seeds is None else seeds
    length = EPISODES if episodes is None else episodes
    with _shown() as on_progress:
        sizes = {"seeds": runs, "episodes": length, "delta": delta}
        found = failure_events(problem, folder, **sizes, on_progress=on_progress)  # type: ignore[arg-type]
    if as_json:
        fields = {"problem": problem.name, **sizes, "bonus_scale": 1.0, "events": found}
        print_json("failure-events", fields)
        return
    title = f"{problem.name}: {runs:,} runs of {length:,} episodes, delta {delta:g}, bonus scale 1"
    print_rows(
        title,
        "Event Frequency",
        "event successes middle low lemma against_lemma union_bound against_union_bound",
        [event._asdict() | event.frequency._asdict() for event in found],
        low=lambda row: f"[{row['low']:.4f}, {row['high']:.4f}]",
    )
    print_note(
        "asked after every episode; exact 95 % intervals, one for each event; lemma: its share of "
        "delta as printed; union: as a union bound gives it; undecided: too few runs to tell"
    )
    print_line(f"the first failure of every run is in {folder / NAME}")


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
