"""JSON of the commands about problems: solve, describe and list."""

from __future__ import annotations

from cmdplab.schemas.fields import EPISODES, PRICE, RETURN, Part, Unit, field


class Solve(Part):
    """`cmdplab solve`: the certified optimum of a problem."""

    value: float | None = field("the optimal value V*", RETURN)
    multiplier: list[float] | None = field("of each constraint", PRICE)
    slater_gap: float | None = field("the largest slack that all constraints can have", RETURN)
    primal: float | None = field("the value that the policy found attains", RETURN)
    dual: float | None = field("the bound that the multipliers prove", RETURN)
    gap: float | None = field("|dual - primal|: the certificate", RETURN)
    feasible: bool = field("whether there is an optimum")
    message: str = field("why there is none, or that there is no slack; empty else")
    without_guarantee: list[str] = field("algorithms that need a slack, where there is none")
    published_value: float | None = field("the value in the units of the environment's source")
    published_unit: str | None = field("what that counts")


class ThresholdRange(Part):
    """How the threshold of one constraint may be chosen."""

    constraint: int = field("which, counted from 1")
    smallest: float = field("the least utility of any policy", RETURN)
    largest_alone: float = field("the most utility of any policy", RETURN)
    reward_optimal: float = field("the most utility of policies optimal without it", RETURN)
    threshold: list[float] | None = field("thresholds from free to impossible", RETURN)
    value: list[float] | None = field("the optimal values there", RETURN)
    multiplier: list[float] | None = field("the prices there", PRICE)


class Describe(Part):
    """`cmdplab describe`: what a problem is like."""

    name: str = field("of the problem")
    states: int = field("how many")
    actions: int = field("how many")
    horizon: int | None = field("steps of an episode; null without an end", "steps")
    criterion: str = field("how rewards add up")
    constraints: int = field("how many")
    start: int | None = field("the first state, counted from 0; null where it is random")
    stationary: bool = field("whether the kernel is the same at every step")
    threshold: list[float] = field("of each constraint", RETURN)
    largest_utility: list[float] = field("the most that each can reach alone", RETURN)
    unconstrained_optimum: float = field("without constraints", RETURN)
    feasible: bool = field("whether there is an optimum")
    optimum: float | None = field("V*", RETURN)
    multiplier: list[float] | None = field("of each constraint", PRICE)
    binding: list[bool] | None = field("whether each costs anything")
    slater_gap: float | None = field("the largest slack that all constraints can have", RETURN)
    certificate: float | None = field("|dual - primal|", RETURN)
    message: str = field("why there is no optimum; empty if there is one")
    without_guarantee: list[str] = field("algorithms that need a slack, where there is none")
    ranges: list[ThresholdRange] = field("of each constraint")
    units: list[Unit] = field("of the objective, then of each utility; empty if as here")


class TableLine(Part):
    """A line of the paper's Table 1, as formulas."""

    kind: str = field("of algorithm")
    regret: str | None = field("its order")
    regret_strong: bool = field("whether it is strong regret")
    violation: str = field("same as the regret, zero, constant or none")
    violation_strong: bool = field("whether it is strong violation")
    pac: str | None = field("the order of mistakes")
    last_iterate: bool = field("whether the last policy is near-optimal")
    corrected_regret: str | None = field("where the table has a slip")
    corrected_pac: str | None = field("where the table has a slip")
    slip: str = field("what is wrong in the table; empty if nothing")


class ListedAlgorithm(Part):
    """One algorithm."""

    name: str = field("as options take it, in any case")
    presets: list[str] = field("`released`, `printed` or both; `custom` for one from outside")
    summary: str = field("one line")
    paper: str = field("where it is from")
    needs: dict[str, list[str]] = field("what it must be told, by preset")
    guarantee: str = field("as its paper claims, at scale 1; empty if none")
    unknown_rewards: str = field("whether the paper treats rewards that are only observed")
    provenance: dict[str, str] = field("where each constant comes from, by preset")
    unverified: dict[str, str] = field("constants that no source confirms, by preset")
    page: str = field("of the documentation; empty for one from outside")
    table_1: TableLine | None = field("its line of Table 1")


class OrderAt(Part):
    """Table 1's orders at the sizes of a problem, without constants and logarithms."""

    name: str = field("of the algorithm")
    regret: float | None = field("order of the regret", RETURN)
    violation: float | str = field("order of the violation, or zero, constant, none", RETURN)
    pac: float | None = field("order of the mistakes", EPISODES)


class ListAlgorithms(Part):
    """`cmdplab list algorithms`."""

    algorithms: list[ListedAlgorithm] = field("every one that is registered")
    table_1_at: list[OrderAt] | None = field("with --at; else null")


class PublishedNumbers(Part):
    """Certified numbers in the units of the source."""

    optimum: float = field("V*", "the source's")
    multipliers: list[float] = field("of each constraint", "the source's")
    unconstrained: float = field("without constraints", "the source's")


class ListedEnvironment(Part):
    """One environment."""

    name: str = field("as options take it, in any case")
    version: int = field("grows when results on it would change")
    random: bool | None = field("whether --instance-seed chooses an instance; null: see source")
    summary: str = field("one line")
    states: int | None = field("how many; null for one from outside, which listing does not make")
    actions: int | None = field("how many")
    horizon: int | None = field("steps of an episode", "steps")
    constraints: int | None = field("how many")
    sense: str | None = field("costs or utilities: what the source constrains")
    optimum: float | None = field("V* as `solve` certifies it; null where it is random", RETURN)
    multipliers: list[float] | None = field("of each constraint", PRICE)
    slater_gap: float | None = field("the largest slack of all constraints", RETURN)
    unconstrained: float | None = field("without constraints", RETURN)
    published: PublishedNumbers | None = field("the same in the units of the source")
    units: list[Unit] = field("of the objective, then of each utility; empty if as here")
    tail_bound: float | None = field("what a cut infinite horizon loses at most", "the source's")
    source: str = field("where it is from")
    unverified: str = field("what no source confirms; empty if nothing")


class ListEnvironments(Part):
    """`cmdplab list environments`."""

    environments: list[ListedEnvironment] = field("every one that is registered")
