"""JSON of the commands about policies: evaluate and explain."""

from __future__ import annotations

from cmdplab.schemas.fields import EPISODES, PRICE, RETURN, Part, Unit, field


class SimulatedReturn(Part):
    """A mean over episodes, with an interval of level 0.95 for its expectation."""

    low: float = field("the lower end", RETURN)
    mean: float = field("over the episodes", RETURN)
    high: float = field("the upper end", RETURN)
    episodes: int = field("how many", EPISODES)


class EvaluatePage(Part):
    """`cmdplab evaluate`: what a policy earns on a problem."""

    problem: str = field("its name")
    policy: str = field("its name")
    signals: list[str] = field("names of the objective and of each constraint")
    returns: list[float] = field("exact, of the objective and of each utility", RETURN)
    threshold: list[float] = field("of each constraint", RETURN)
    violation: list[float] = field("threshold less return; above 0 is missing", RETURN)
    meets_every_threshold: bool = field("but for rounding")
    episodes: int | None = field("played, with --episodes", EPISODES)
    seed: int | None = field("of the episodes")
    simulated: list[SimulatedReturn] | None = field("in the order of `signals`")
    units: list[Unit] = field("what leads from these numbers to those of the labels; may be empty")
    cut: list[float] | None = field("what paths without an end leave out at most", RETURN)


class ExplainedAction(Part):
    """One action that is open in the state."""

    action: str = field("its name, or its number")
    probability: float = field("with which it is played")
    values: list[float] = field("from here to the end, in the order of `signals`", RETURN)
    total: float = field("objective plus every utility times its price", RETURN)


class ExplainPage(Part):
    """`cmdplab explain`: what a policy does in a state and why."""

    problem: str = field("its name")
    state: str = field("its name, or its number")
    step: str = field("its name, or its number; empty where there are no steps")
    visits: float = field("how likely an episode comes here, or the share of time spent here")
    played: str = field("the actions with their shares")
    signals: list[str] = field("names of the objective and of each constraint")
    costs: list[bool] = field("for each signal, whether less of it is better")
    prices: list[float] = field("the multipliers, in the units of the signals", PRICE)
    actions: list[ExplainedAction] = field("open ones, the best in total first")
    given_up: float = field("objective that the best action for it would have more", RETURN)
    gained: list[float] = field("by how much each utility is better than with that action", RETURN)
    worth: list[float] = field("the same at the prices", RETURN)
    beside: bool = field("whether values are differences from what is played")
    text: str = field("all of it in words")
