"""JSON of `cmdplab theory`."""

from __future__ import annotations

from cmdplab.schemas.fields import EPISODES, PRICE, RETURN, Part, field

LOG10 = "powers of ten"


class TheoryTerms(Part):
    """A bound of Theorem 4.1, without constants and logarithms."""

    optimisation: float = field("term (i), of learning", LOG10)
    bias: float = field("term (ii), of the regularisation", LOG10)
    burn_in: float = field("term (iii), of what comes before k*", LOG10)
    powers: list[float] = field("of 1 / epsilon, or of K, in (i) and in (ii)")


class TheorySaddle(Part):
    """The saddle point of the regularised Lagrange function, and stability there."""

    temperature: float = field("tau")
    multiplier: list[float] = field("of each constraint, at the saddle point", PRICE)
    multiplier_bound: float = field("of their sum (Lemma F.4)", PRICE)
    gap: float = field("V* less the value of its policy", RETURN)
    gap_bound: float = field("tau H_ent (Lemma F.5)", RETURN)
    violation: list[float] = field("of each constraint; tau times its multiplier if > 0", RETURN)
    violation_bound: float = field("of each (Lemma F.4)", RETURN)
    residual: float = field("how far the point found is from stationary", RETURN)
    coupling: float = field("C, the largest eigenvalue of the utilities' covariance")
    largest_step: float = field("2 tau / (C + tau^2): known-kernel updates settle below")
    step: float = field("eta")
    growth: float = field("by what one update with that step multiplies a perturbation")


class TheoryPage(Part):
    """`cmdplab theory`: what the paper's theory says of a problem."""

    name: str = field("of the problem")
    states: int = field("how many")
    actions: int = field("how many")
    horizon: int = field("steps of an episode", "steps")
    constraints: int = field("how many")
    optimum: float = field("V*", RETURN)
    multiplier: list[float] = field("of each constraint", PRICE)
    slater_gap: float | None = field("b_gap; null without a constraint", RETURN)
    delta: float = field("probability to fail")
    alpha_eta: float = field("exponent of the step")
    alpha_tau: float = field("exponent of the temperature")
    outside: str = field("why Theorem 4.1 is not about these exponents; empty if it is")
    epsilon: float = field("of the mistakes", RETURN)
    episodes: int = field("K of the regret", EPISODES)
    entropy_horizon: float = field("H_ent = H (1 + ln A)", RETURN)
    visits_log: float = field("ln(4 X A H / delta)")
    first: float = field("C_1 (Lemma H.7)")
    second: float = field("C_2 (Lemma H.7)")
    third: float = field("C_3 (Lemma H.8)")
    combined: float = field("C = C_1 + C_2 + C_3 (Appendix H.4)")
    summed_over_steps: float = field("H (C_1 + C_2) + C_3: Lemma H.7 with the H that it drops")
    first_potential: float = field("a bound on Phi^1 (proof of Lemma H.9)")
    log10_burn_in: float | None = field("log10 k* (Lemma H.9); null outside the theorem", LOG10)
    mistakes: TheoryTerms | None = field("episodes worse than epsilon; null outside the theorem")
    regret: TheoryTerms | None = field("strong regret; null outside the theorem")
    saddle: TheorySaddle = field("at tau")
