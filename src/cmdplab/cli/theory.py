"""`cmdplab theory`: the numbers of the paper's theory for a problem, each with its meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cmdplab.cli.options import Finite, asked_with_horizon, command
from cmdplab.cli.output import Answer, print_note, print_numbers, print_rows

if TYPE_CHECKING:
    from cmdplab.theory.summary import Theory


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
    """Print the numbers in tables, each with the meaning that `results.toml` declares."""
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
