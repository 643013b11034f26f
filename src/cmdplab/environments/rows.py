"""The one list of environments: a row for each, with its function, source, units and values.

The docstring of the function gives the origin of every number. A row names the function by module
and name, so that listing environments imports none of them.
"""

from __future__ import annotations

from cmdplab.cmdp.horizons import steps_for, tail_bound
from cmdplab.environments.entry import Certified, Environment, Scale, row

_PAPER, _CODE = "Kitamura et al. (2024), Appendix D", "Kitamura et al. (2024), code"
_BURA, _SIMAO = "Bura et al. (2022), code", "Simão et al. (2021), code"
_WEI = "Wei, Liu & Ying (2022), code"
_JAIN = "Jain, Vaswani et al. (2022), code"
_DING = "Ding et al. (2020), as in the code of ARNPG"
_QVBS = "QVBS model resource-gathering; horizon and constraint ours"
_OPSE = "Kitamura et al. (2025), code"
_PAID = Scale("reward"), Scale("utility")
_GRID = Scale("pay", 100.0), Scale("steps off the obstacles")
_FIVE = tuple(Scale(f"discounted utility {n + 1}", most) for n, most in enumerate((1.0, 0.7, 1.5)))
_DENSE = Scale("discounted reward"), Scale("discounted utility")


def _costs(steps: float, of: str = "cost", reward: str = "reward") -> tuple[Scale, Scale]:
    """Return the units of a reward and of a cost of at most one at each step."""
    return Scale(reward), Scale(of, -1.0, steps)


def _tail(discount: float, accuracy: float) -> float:
    return tail_bound(discount, steps_for(discount, accuracy))


ENVIRONMENTS: dict[str, Environment] = {
    "published": row(
        "random_cmdp.published",
        "the CMDP behind the paper's Figure 1",
        _CODE,
        _PAID,
        Certified(5.18840027, (1.0,), 4.81160057, 9.18217215),
    ),
    "random-printed": row(
        "random_cmdp.printed", "rewards 0 or uniform, utility 1 - reward", _PAPER
    ),
    "random-released": row("random_cmdp.released", "rewards 0 or 1, utility 1 - reward", _CODE),
    "random-independent": row(
        "random_cmdp.independent", "reward and utility independent, each 0 or uniform", "ours"
    ),
    "random-printed-binding": row(
        "random_cmdp.printed_binding",
        "the first form, redrawn until it binds",
        f"{_PAPER}; redrawing ours",
    ),
    "random-independent-binding": row(
        "random_cmdp.independent_binding", "the third form, redrawn until it binds", "ours"
    ),
    "random-dann": row(
        "random_cmdp.random_dann",
        "sparse rewards and utilities, random start",
        "Dann et al. (2017), code; utility ours",
    ),
    "random-tight": row(
        "discounted.random_tight",
        "a goal hard to reach, costs redrawn until they bind",
        "after Lee et al. (2022), code",
        (
            Scale("discounted goal"),
            Scale("discounted cost", -1.0, (1.0 - 0.95**194) / (1.0 - 0.95)),
        ),
        tail=_tail(0.95, 1e-3),
    ),
    "media-streaming": row(
        "levels.media_streaming",
        "a buffer to be kept filled over two links",
        _BURA,
        (Scale("steps at level 0", -1.0, 10), Scale("steps on the fast link", -1.0, 10)),
        Certified(3.25329579, (0.49518978,), 5.0, 4.60686165),
    ),
    "three-state": row(
        "chains.three_state",
        "a ring of three states, with at most 3 advances",
        _BURA,
        _costs(6, "advances"),
        Certified(2.0, (2 / 3,), 3.0, 4.0),
    ),
    "three-state-uniform": row(
        "chains.three_state_uniform",
        "the ring from a uniform start",
        _SIMAO,
        (Scale("pay", 3), Scale("advances", -1.0, 6)),
        Certified(20 / 9, (2 / 3,), 3.0, 4.0),
    ),
    "inventory": row(
        "stocks.inventory",
        "orders under random demand, released reward",
        _BURA,
        _costs(7),
        Certified(6.66532153, (0.92121212,), 3.5, 7.0),
        version=1,  # 0 had aliases in the place of a mask
    ),
    "inventory-corrected": row(
        "stocks.corrected_inventory",
        "orders under random demand, expected revenue",
        "Bura et al. (2022), corrected",
        _costs(7),
        Certified(6.13551904, (1.440038,), 3.5, 7.0),
    ),
    "job-scheduling": row(
        "stocks.job_scheduling",
        "enough jobs done, in cheap hours",
        "Ghosh, Zhou & Shroff (2024), Appendix K",
        (Scale("reward"), Scale("half of the jobs done")),
        Certified(156 / 17, (4 / 17,), 0.999791255, 10.0),
        unverified="boundary rule, step indexing",
    ),
    "mars-rover": row(
        "mazes.mars_rover",
        "8 x 8 cells with slips; pits pay and cost",
        "Brantley et al. (2020), code, map 8x8rcpo",
        _costs(30, "pits", "goals and pits"),
        Certified(1.53628844, (0.19298178,), 0.299995994, 1.81682218),
    ),
    "box": row(
        "mazes.box",
        "reach the goal, keep the box out of corners",
        "Brantley et al. (2020), code",
        _costs(30, "share of the steps with the box stuck", "goals"),
        Certified(1.74967662, (0.078233174,), 0.066744801, 1.81576884),
    ),
    "triple-q-grid": row(
        "mazes.triple_q_grid",
        "18 x 18 cells with obstacles; it does not bind",
        _WEI,
        _GRID,
        Certified(9.63979997, (0.0,), 5.0, 9.63979997),
    ),
    "triple-q-grid-binding": row(
        "mazes.triple_q_grid",
        "the same with 23 of 25 steps off obstacles",
        f"{_WEI}; threshold ours",
        _GRID,
        Certified(8.74898845, (0.88229747,), 2.0, 9.63979997),
        given=(23.0, "triple-q-grid-binding"),
    ),
    "cliff": row(
        "mazes.cliff",
        "walk round a cliff; rows near it cost more",
        _SIMAO,
        (Scale("pay", 100.0, -1500.0), Scale("rows", -2.0, 30.0)),
        Certified(14.9, (0.01,), 1.0, 14.93),
    ),
    "six-state": row(
        "chains.six_state",
        "a bit says which action pays; one costs",
        _SIMAO,
        _costs(3),
        Certified(0.2, (1.0,), 0.1, 1.0),
    ),
    "cost-chain-3": row(
        "chains.cost_chain",
        "a chain of 3 with a reset that tempts",
        _SIMAO,
        _costs(4),
        Certified(1.36666667, (1 / 6,), 0.1, 1.5),
        version=1,  # 0 had a RESET at n - 1
        given=(3, 0.1),
    ),
    "cost-chain-11": row(
        "chains.cost_chain",
        "a chain of 11 with a reset that tempts",
        f"{_SIMAO}; budget ours",
        _costs(12),
        Certified(1.15909091, (1 / 22,), 1.0, 1.31818182),
        version=1,
        given=(11, 1.0),
    ),
    "river-swim": row(
        "levels.river_swim",
        "pay far upstream, where every step costs",
        "RNPG (2025), code; horizon, start and budget ours",
        _costs(20),
        Certified(2.44181083, (0.72834481,), 0.74028348, 2.79898156),
    ),
    "river-swim-osband": row(
        "levels.osband_river_swim",
        "pay far upstream, where every stroke costs",
        "Osband's RiverSwim, code; cost and budget ours",
        _costs(20, "strokes to the right"),
        Certified(2.01742965, (0.18264809,), 10.0, 3.39726396),
    ),
    "paradox": row(
        "chains.paradox",
        "two states: one pays, the other has the utility",
        "Ghosh, Zhou & Shroff (2024), code",
        _PAID,
        Certified(5.0, (1.0,), 5.0, 10.0),
        unverified="who named it",
    ),
    "five-by-five": row(
        "discounted.five_by_five",
        "a grid with two magic cells, discounted by 0.9",
        _JAIN,
        (Scale("discounted pay"), _FIVE[0]),
        Certified(1.65272163, (0.173230303,), 1.05727285, 1.73286146),
        version=1,  # 0 paid what the book pays, not what the release does
        tail=_tail(0.9, 1e-6),
        unverified="the list of authors",
    ),
    "five-by-five-3": row(
        "discounted.five_by_five",
        "the same with three constraints that bind",
        _JAIN,
        (Scale("discounted pay"), *_FIVE),
        Certified(1.39768777, (0.110979355, 0.251644779, 0.0647086573), 0.558015922, 1.73286146),
        version=1,
        tail=_tail(0.9, 1e-6),
        unverified="the list of authors",
        given=((1.5, 0.85, 2.7), 0.9, "five-by-five-3"),
    ),
    "uniform-random-3": row(
        "discounted.uniform_random",
        "dense, discounted by 0.8, mild constraint",
        _DING,
        _DENSE,
        Certified(4.46244278, (0.24266971,), 1.52502668, 4.51692282),
        tail=_tail(0.8, 1e-6),
        given=(3.0,),
    ),
    "uniform-random-4": row(
        "discounted.uniform_random",
        "the same with a higher threshold",
        f"{_DING}; threshold ours",
        _DENSE,
        Certified(4.00537433, (0.97229024,), 0.525026681, 4.51692282),
        tail=_tail(0.8, 1e-6),
        given=(4.0,),
    ),
    "queue": row(
        "levels.queue",
        "service and admission [unverified]",
        "after Altman (1999), chapter 5 [unverified]",
        (
            Scale("free places per step", 0.05),
            Scale("10 a - 5 per step", -0.1, 5.0),
            Scale("10 (1 - f)^2 - 2 per step", -0.1, 8.0),
        ),
        Certified(77.2410973, (1.29797, 1.3220033), 16.0, 93.6777137),
        unverified="service and flow levels, rewards, constraints and thresholds",
    ),
    "resource-attacks": row(
        "resource_gathering.resource_attacks",
        "fetch gold past enemies, with few attacks",
        _QVBS,
        _costs(50, "attacks", "gold"),
        Certified(4.43872485, (1.4624162,), 0.3, 5.22624883),
    ),
    "resource-gems": row(
        "resource_gathering.resource_gems",
        "fetch gold past enemies, and enough gems",
        _QVBS,
        (Scale("gold"), Scale("gems")),
        Certified(4.50733098, (0.45079983,), 3.0, 5.22624883),
    ),
    "slippery-grid": row(
        "mazes.slippery_grid",
        "ten thousand cells, and a swamp in the way",
        "ours",
        _costs(100.0, "steps in the swamp", "steps on the right"),
        Certified(41.872355, (1.5707824,), 2.0, 55.524691),
    ),
    "opse-streaming": row(
        "episode_wise.opse_streaming",
        "a short buffer, two links",
        f"{_OPSE}; rates ours",
        (Scale("steps at levels above 0"), Scale("steps on the slow link")),
        Certified(1.900171875, (0.3,), 1.6, 2.099671875),
    ),
    "opse-streaming-random": row(
        "episode_wise.random_streaming", "the same with random rates", _OPSE
    ),
    "opse-tabular": row("episode_wise.opse_tabular", "few rewards and utilities, 0 or 1", _OPSE),
    "opse-linear": row("episode_wise.opse_linear", "linear in five features, many states", _OPSE),
}
