"""JSON of the commands about thresholds: sensitivity and frontier."""

from __future__ import annotations

from cmdplab.schemas.fields import PRICE, RETURN, Part, Unit, field

OWN = "the labels'"


class Price(Part):
    """One constraint at the optimum, in the units of the labels."""

    constraint: int = field("which, counted from 1")
    name: str = field("what it counts")
    cost: bool = field("whether the limit is a budget, which must not be exceeded")
    limit: float = field("the threshold or the budget", OWN)
    reached: float = field("by the optimal policy", OWN)
    binds: bool = field("whether it costs anything")
    price_looser: float = field("what one unit looser buys", OWN)
    looser_until: float | None = field("up to which limit; null: for ever", OWN)
    price_tighter: float | None = field("what one unit tighter costs; null: impossible", OWN)
    tighter_until: float = field("up to which limit", OWN)
    free: float = field("the limit from which on it costs nothing", OWN)
    tightest: float = field("the tightest limit that can be met", OWN)
    costs: float = field("what the objective gains where it is dropped", OWN)
    room: float = field("some policy stays at least so far from every limit at once", OWN)
    limits_room: bool = field("whether it keeps all from having more room")


class Limit(Part):
    """One threshold of a conflict."""

    constraint: int = field("which, counted from 1")
    name: str = field("what it counts")
    cost: bool = field("whether it is a budget, which must not be exceeded")
    threshold: float = field("what is asked", OWN)
    reachable: float = field("the best where the others of the conflict are met", OWN)


class Conflict(Part):
    """Thresholds that cannot be met together; without any one of them the others can."""

    limits: list[Limit] = field("an irreducible set")
    short: float = field("the least by which the worst of them is missed", RETURN)
    nearest: list[float] = field("thresholds of all constraints that can be met", OWN)
    share: float = field("the largest change of these, as a share of its range")
    names: list[str] = field("of all constraints")
    costs: list[bool] = field("for each, whether it is a budget")


class SensitivityPage(Part):
    """`cmdplab sensitivity`: what thresholds cost."""

    problem: str = field("its name")
    objective: str = field("what it counts")
    cost: bool = field("whether less of it is better")
    feasible: bool = field("whether some policy meets all thresholds")
    optimum: float | None = field("the optimal value", OWN)
    unconstrained: float = field("without any constraint", OWN)
    certificate: float | None = field("how far the optimum may be off", OWN)
    prices: list[Price] = field("of each constraint; empty where there is a conflict")
    slater_gap: float = field("the largest slack that all constraints can have", RETURN)
    conflict: Conflict | None = field("why no policy meets the thresholds")
    message: str = field("of `solve`; empty if there is nothing to say")
    text: str = field("all of it in words")


class FrontierPage(Part):
    """`cmdplab frontier`: the optimal value against one threshold."""

    constraint: int = field("which, counted from 1")
    threshold: list[float] = field("every point asked for", RETURN)
    value: list[float] = field("the optimal values there", RETURN)
    multiplier: list[float] = field("the prices there", PRICE)
    certificate: float = field("the largest |dual - primal| along it", RETURN)
    given: float = field("the problem's own threshold", RETURN)
    free: float = field("up to here the constraint costs nothing", RETURN)
    exact: bool = field("whether the points are the breakpoints; lines lie in between")
    units: list[Unit] = field("of the objective and of the constraint: what leads to its numbers")
    largest: float = field("beyond here nothing is feasible", RETURN)
