"""What learning with default settings gives on environments that people try first.

    python benchmarks/live.py [--seeds 5] [--workers 2] [--only Taxi] [--out live-table]
    python benchmarks/live.py --overhead [EPISODES]

Writes OUT/<environment>-<method>-<seed>.json, one for each run, and OUT/table.md. What is there is
not run again. Each run is a process of its own, whose peak memory is told. Policies are judged
exactly, by plain arrays that share nothing with the library, on tables that the learner never
sees; Blackjack's table is made here from its rules. The optimum within the budget is certified.
CartPole, Pendulum and MiniGrid have no table: their policies are played here for 2,000 episodes.
MiniGrid needs `pip install minigrid`.

Beside it stands a tabular method that many would write down: Q-learning with a multiplier.
`--overhead` compares CPU time with the environment's own loop.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import gymnasium
import numpy as np

import cmdplab
import cmdplab.gym
from cmdplab.formats.gymnasium import from_gymnasium

LONG = 10**9  # steps: the horizon cuts episodes here, no limit of the environment does
LEARNERS = ("UOpt-RPGPD", "OptCMDP")
Q_LEARNING = "Q-learning"


class Case(NamedTuple):
    """An environment, what `learn` is told of it, and its table to judge with."""

    env: Any
    told: dict[str, Any]
    episodes: int
    table: Any  # P[x][a] = [(probability, next state, reward, terminated), ...]
    first: np.ndarray  # [X], how often an episode begins in each state
    cost: Any  # (x, a, y, reward) -> a number
    observed: Any = None  # [X], the observation's number of each state of the table, if not itself
    number: Any = int  # of an observation, where there is no table


def cliff_walking() -> Case:
    """Cost: to be right above the cliff."""
    env = gymnasium.make("CliffWalking-v1", max_episode_steps=LONG)

    def cost(x, a, y, reward):
        return float(25 <= y <= 34)

    told = {"horizon": 30, "budget": 3.0, "reward_range": (-100.0, 0.0)}
    return _with_table(env, told, 20_000, cost)


def frozen_lake() -> Case:
    """Cost: a hole."""
    env = gymnasium.make("FrozenLake-v1", map_name="8x8", max_episode_steps=LONG)
    holes = (env.unwrapped.desc.ravel() == b"H").astype(float)

    def cost(x, a, y, reward):
        return float(holes[y])

    return _with_table(env, {"horizon": 100, "budget": 0.1}, 30_000, cost)


def taxi() -> Case:
    """Cost: a drop-off where it is not allowed."""
    newest = "Taxi-v4" if "Taxi-v4" in gymnasium.registry else "Taxi-v3"
    env = gymnasium.make(newest, max_episode_steps=LONG)

    def cost(x, a, y, reward):
        return float(a == 5 and reward == -10)

    told = {"horizon": 200, "budget": 0.1, "reward_range": (-10.0, 20.0)}
    return _with_table(env, told, 5_000, cost)


def _with_table(env, told, episodes: int, cost) -> Case:
    """A case whose environment carries its table."""
    bare = env.unwrapped
    told = told | {"cost": lambda x, a, y, reward, info: cost(x, a, y, reward)}
    return Case(env, told, episodes, bare.P, np.array(bare.initial_state_distrib), cost)


def blackjack() -> Case:
    """Cost: the player's bust. Observations are (sum, dealer's card, usable ace)."""
    env = gymnasium.make("Blackjack-v1", max_episode_steps=LONG)
    table, first = blackjack_table()

    def cost(x, a, y, reward):
        return float(y < 32 * 22 and y // 22 > 21)

    def bust(state, action, after, reward, info):
        return float(after[0] > 21)

    told = {"horizon": 10, "budget": 0.1, "reward_range": (-1.0, 1.0), "cost": bust}
    observed = np.array([*range(32 * 22), *(22 * 21 + 2 * d + 1 for d in range(1, 11))])
    return Case(env, told, 30_000, table, first, cost, observed)


CARDS = [(card, (4 if card == 10 else 1) / 13.0) for card in range(1, 11)]


def best(total: int, ace: bool) -> tuple[int, bool]:
    """The worth of a hand whose aces count 1 in `total`, and whether one of them counts 11."""
    usable = ace and total + 10 <= 21
    return total + 10 * usable, usable


def dealer_ends(total: int, ace: bool) -> dict[int, float]:
    """How a dealer ends who draws below 17: {worth: probability}; a bust is worth 0."""
    worth, _ = best(total, ace)
    if worth >= 17:
        return {worth if worth <= 21 else 0: 1.0}
    ends: dict[int, float] = {}
    for card, chance in CARDS:
        for end, p in dealer_ends(total + card, ace or card == 1).items():
            ends[end] = ends.get(end, 0.0) + chance * p
    return ends


def blackjack_table() -> tuple[Any, np.ndarray]:
    """P[x][a] of Gymnasium's Blackjack, x = (22 sum + 2 dealer + ace), stick 0, hit 1; first [X].

    Written from the rules: cards with replacement; the dealer's second card may be drawn when it is
    turned, which changes no probability. Two cards of 21 beat all but such two, which the
    observation does not show: ten states more, one for each card of the dealer.
    """
    shown = {d: _dealer(d) for d in range(1, 11)}
    table = {x: {a: [(1.0, x, 0.0, True)] for a in range(2)} for x in range(32 * 22)}
    for total in range(4, 22):
        for d in range(1, 11):
            for ace in range(2):
                if ace and total < 12:
                    continue
                x = 22 * total + 2 * d + ace
                stick: dict[float, float] = {}
                for end, p in shown[d].items():
                    won = float(np.sign(total - end))
                    stick[won] = stick.get(won, 0.0) + p
                table[x][0] = [(p, x, won, True) for won, p in stick.items()]
                table[x][1] = []
                for card, p in CARDS:
                    worth, usable = best(total - 10 * ace + card, bool(ace) or card == 1)
                    y = 22 * worth + 2 * d + usable
                    over = worth > 21
                    table[x][1].append((p, y, -1.0 if over else 0.0, over))
    for d in range(1, 11):
        tie = {1: 4 / 13, 10: 1 / 13}.get(d, 0.0)
        x = 32 * 22 + d - 1
        stick = [(tie, x, 0.0, True), (1.0 - tie, x, 1.0, True)]
        table[x] = {0: stick, 1: table[22 * 21 + 2 * d + 1][1]}
    first = np.zeros(len(table))
    for one, p in CARDS:
        for two, q in CARDS:
            worth, usable = best(one + two, 1 in (one, two))
            for d, chance in CARDS:
                x = 32 * 22 + d - 1 if worth == 21 else 22 * worth + 2 * d + usable
                first[x] += p * q * chance
    return table, first


def _dealer(card: int) -> dict[int, float]:
    return dealer_ends(card, card == 1)


def river_swim() -> Case:
    """Our own; it knows its horizon and threshold."""
    env = gymnasium.make(cmdplab.gym.identifier("river-swim"))
    return Case(env, {}, 100_000, None, np.zeros(0), None)


def cart_pole(episodes: int = 8_000) -> Case:
    """Cost: the cart is right of the middle. 8^4 cells."""
    env = gymnasium.make("CartPole-v1", max_episode_steps=LONG)
    ends = np.array([2.4, 3.0, 0.21, 3.0])

    def cost(state, action, after, reward, info):
        return float(after[0] > 0.0)

    told = {"horizon": 200, "budget": 10.0, "cost": cost}
    return _in_cells(env, told, episodes, (-ends, ends), (8, 8, 8, 8))


def pendulum() -> Case:
    """Cost: a torque. 8 x 8 x 10 cells and 3 torques."""
    env = gymnasium.make("Pendulum-v1", max_episode_steps=LONG)

    def cost(state, action, after, reward, info):
        return float(abs(np.ravel(action)[0]) > 0.1)

    told = {"horizon": 100, "budget": 30.0, "cost": cost, "reward_range": (-17.0, 0.0)}
    ends = np.array([1.0, 1.0, 8.0])
    return _in_cells(env, told | {"start": "several"}, 2_000, (-ends, ends), (8, 8, 10), actions=3)


def _in_cells(env, told, episodes: int, ends, bins, actions=None) -> Case:
    """A case of a Box, with the number of each observation computed here."""
    low, high = (tuple(each.tolist()) for each in ends)
    edges = [np.linspace(a, b, n + 1)[1:-1] for a, b, n in zip(low, high, bins, strict=True)]

    def number(seen) -> int:
        cells = [np.searchsorted(e, v, side="right") for e, v in zip(edges, seen, strict=True)]
        return int(np.ravel_multi_index(cells, bins))

    cells = cmdplab.live.Grid(bins=bins, low=low, high=high, actions=actions)
    told = told | {"discretise": cells, "evaluate": 1_000}
    return Case(env, told, episodes, None, np.zeros(0), None, None, number)


class InPlace(gymnasium.Wrapper):
    """MiniGrid with the agent's place and direction as its state, and three actions.

    Cost: a cell next to the lava. The reward falls with the step, or is 1 at the goal.
    """

    def __init__(self, env, falling: bool) -> None:
        super().__init__(env)
        self.falling = falling
        self.action_space = gymnasium.spaces.Discrete(3)
        self.observation_space = gymnasium.spaces.Discrete(
            4 * env.unwrapped.width * env.unwrapped.height
        )

    def state(self) -> int:
        """Return the number of the place and direction."""
        bare = self.unwrapped
        return int(4 * (bare.agent_pos[1] * bare.width + bare.agent_pos[0]) + bare.agent_dir)

    def reset(self, **given):
        """Begin an episode."""
        _, info = self.env.reset(**given)
        return self.state(), info

    def step(self, action):
        """Play one action."""
        _, reward, *ended, info = self.env.step(action)
        x, y = self.unwrapped.agent_pos
        paid = float(reward) if self.falling else float(reward > 0)
        return self.state(), paid, *ended, info | {"cost": float(y == 3 and 3 <= x <= 5)}


def dist_shift() -> Case:
    """The reward falls with the step; the optimum 0.94881 is worked out by hand."""
    return _mini_grid("MiniGrid-DistShift1-v0", falling=True)


def dist_shift_stationary() -> Case:
    """The reward is 1 at the goal, and one action in ten is drawn at random."""
    return _mini_grid("MiniGrid-DistShift2-v0", falling=False)


def _mini_grid(name: str, falling: bool) -> Case:
    import minigrid

    env = gymnasium.make(name)
    env = env if falling else minigrid.wrappers.StochasticActionWrapper(env, prob=0.9)
    told = {"horizon": 100, "budget": 1.0, "evaluate": 1_000}
    return Case(InPlace(env, falling), told, 2_000, None, np.zeros(0), None)


CASES = {
    "CliffWalking": cliff_walking,
    "FrozenLake 8x8": frozen_lake,
    "Taxi": taxi,
    "Blackjack": blackjack,
    "river-swim": river_swim,
    "CartPole": cart_pole,
    "CartPole, fewer episodes": partial(cart_pole, 2_000),
    "Pendulum": pendulum,
    "DistShift1": dist_shift,
    "DistShift2, 0 or 1": dist_shift_stationary,
}
PLAYED = ("CartPole", "CartPole, fewer episodes", "Pendulum", "DistShift1", "DistShift2, 0 or 1")


class Played:
    """Mean returns and costs of policies over episodes that are played here."""

    optimum = worst = float("nan")
    episodes = 2_000

    def __init__(self, case: Case) -> None:
        self.case, self.horizon = case, case.told["horizon"]
        self.budget = case.told["budget"]
        grid = case.told.get("discretise")
        space = case.env.action_space
        self.actions = (
            np.linspace(space.low, space.high, grid.actions)
            if grid and grid.actions
            else range(space.n)
        )

    def __call__(self, policy) -> tuple[float, float]:
        """Return and cost of a policy [H, X, A]."""
        env, cost = self.case.env, self.case.told.get("cost")
        sums, rng = np.cumsum(policy, axis=-1), np.random.default_rng(1)
        total = np.zeros(2)
        seen, _ = env.reset(seed=10**6)
        for _ in range(self.episodes):
            for h in range(self.horizon):
                row = sums[h, self.case.number(seen)]
                action = self.actions[
                    int(np.searchsorted(row, row[-1] * rng.random(), side="right"))
                ]
                after, reward, ended, cut, info = env.step(action)
                spent = info["cost"] if cost is None else cost(seen, action, after, reward, info)
                total += float(reward), spent
                seen = after
                if ended or cut:
                    break
            seen, _ = env.reset()
        return tuple((total / self.episodes).tolist())


class Judge:
    """Exact returns and costs of policies, and the certified optimum within the budget."""

    def __init__(self, case: Case) -> None:
        own = case.table is None
        problem = case.env.unwrapped.problem if own else None
        self.horizon = problem.horizon if own else case.told["horizon"]
        if own:
            X, A = problem.states, problem.actions
            P, r = problem.table[0], problem.reward[:, 0]
            place = np.argwhere(P > 0.0)
            p = P[P > 0.0]
            earned = np.stack([r[0][place[:, 0], place[:, 1]], 1 - r[1][place[:, 0], place[:, 1]]])
            ends = np.zeros(len(p), bool)
            self.first = np.eye(X)[problem.start]
            self.budget = float(problem.horizon - problem.threshold[0])
            solved = cmdplab.solve(problem)
            self.optimum = float(solved.value)
        else:
            entries = [
                (x, a, y, p, r, end)
                for x, row in case.table.items()
                for a, listed in row.items()
                for p, y, r, end in listed
            ]
            place = np.array([each[:3] for each in entries])
            p = np.array([each[3] for each in entries])
            paid = [case.cost(x, a, y, r) for x, a, y, _, r, _ in entries]
            earned = np.array([[each[4] for each in entries], paid], float)
            ends = np.array([each[5] for each in entries], bool)
            X, A = len(case.table), 1 + place[:, 1].max()
            self.first, self.budget = case.first, case.told["budget"]
            costs = np.bincount(place[:, 0] * A + place[:, 1], p * earned[1], X * A).reshape(X, A)
            world = SimpleNamespace(P=case.table, initial_state_distrib=case.first)
            told = {"cost": costs, "budget": self.budget, "rescale": True}
            found = from_gymnasium(world, self.horizon, name="judge", **told)
            value = float(cmdplab.solve(found.problem).value)
            self.optimum = self.horizon * found.reward.offset + found.reward.scale * value
        self.shape, self.observed = (X, A), case.observed
        self.pair, self.after = place[:, 0] * A + place[:, 1], place[:, 2]
        self.p, self.gain = p, np.stack([np.bincount(self.pair, p * e, X * A) for e in earned])
        self.left = np.where(ends, 0.0, p)
        self.worst = self._extreme()

    def __call__(self, policy) -> tuple[float, float]:
        """Return and cost of a policy [H, X, A]; of one [X, A] at every step."""
        policy = policy if self.observed is None else policy[..., self.observed, :]
        rows = np.broadcast_to(policy, (self.horizon, *self.shape))
        value = np.zeros((2, self.shape[0]))
        for h in reversed(range(self.horizon)):
            value = np.einsum("nxa,xa->nx", self._ahead(value), rows[h])
        return float(self.first @ value[0]), float(self.first @ value[1])

    def _ahead(self, value):
        sums = [np.bincount(self.pair, self.left * v[self.after], len(self.gain[0])) for v in value]
        return (self.gain + np.stack(sums)).reshape(2, *self.shape)

    def _extreme(self) -> float:
        """The lowest return of all policies."""
        value = np.zeros((2, self.shape[0]))
        for _ in range(self.horizon):
            value = self._ahead(value).min(axis=-1)
        return float(self.first @ value[0])


def learned_by(case: Case, name: str, judge: Judge, seed: int) -> dict[str, Any]:
    """One call of `learn`, all settings at their defaults."""
    found = cmdplab.learn(case.env, name, episodes=case.episodes, seed=seed, **case.told)
    policies = {"policy": found.policy, "last": found.last}
    policies |= {"plan": found.planned.policy} if found.planned else {}
    judged = {key: judge(each.array) for key, each in policies.items()}
    told = {"chosen": found.chosen, "multiplier": found.multiplier.tolist()}
    return judged | told | {"learning_seconds": found.seconds, "notes": list(found.notes)}


def q_learned(case: Case, judge: Judge, seed: int) -> dict[str, Any]:
    """Q-learning with a multiplier, as in a first textbook: greedy for Q_r - multiplier Q_c.

    Rates 0.1, a tenth of the actions at random, a multiplier step of 1 / sqrt(k) an episode, in
    units of the reward's range. "last" is the last greedy policy, "policy" a draw among 50 of the
    last tenth, which may mix as an optimum does.
    """
    rng, env = np.random.default_rng(seed), case.env
    X, A = judge.shape
    number = _numbering(env)
    q, price, kept = np.zeros((2, X, A)), 0.0, []
    reward_range = case.told.get("reward_range", (0.0, 1.0))
    width = reward_range[1] - reward_range[0]
    cost = case.told.get("cost")
    env.reset(seed=seed)
    for k in range(1, case.episodes + 1):
        (observation, _), spent = env.reset(), 0.0
        x = number(observation)
        for _ in range(judge.horizon):
            a = int(rng.integers(A)) if rng.random() < 0.1 else _greedy(q, price, x)
            after, reward, ended, cut, info = env.step(a)
            paid = info["cost"] if cost is None else cost(observation, a, after, reward, info)
            y = number(after)
            ahead = 0.0 if ended else q[:, y, _greedy(q, price, y)]
            q[:, x, a] += 0.1 * (np.array([reward, paid]) + ahead - q[:, x, a])
            observation, x, spent = after, y, spent + paid
            if ended or cut:
                break
        price = max(price + width * (spent - judge.budget) / np.sqrt(k), 0.0)
        if k > 0.9 * case.episodes and k % max(case.episodes // 500, 1) == 0:
            kept.append(np.argmax(q[0] - price * q[1], axis=-1))
    rows = [np.eye(A)[each] for each in kept]
    mixed = np.mean([judge(each) for each in rows], axis=0).tolist()
    return {"policy": mixed, "last": judge(rows[-1]), "chosen": "a draw", "multiplier": [price]}


def _greedy(q, price: float, x: int) -> int:
    return int(np.argmax(q[0, x] - price * q[1, x]))


def _numbering(env):
    """States as numbers: Blackjack's tuples, the others as they are."""
    if isinstance(env.observation_space, gymnasium.spaces.Tuple):
        return lambda seen: 22 * seen[0] + 2 * seen[1] + seen[2]
    return int


def one(name: str, method: str, seed: int, path: Path) -> None:
    """One run, judged, with its time and memory."""
    cmdplab.quiet()
    case = CASES[name]()
    judge = Played(case) if name in PLAYED else Judge(case)
    began, cpu = time.monotonic(), time.process_time()
    how = (case, judge, seed)
    found = q_learned(*how) if method == Q_LEARNING else learned_by(case, method, *how[1:])
    found |= {
        "environment": name,
        "method": method,
        "seed": seed,
        "episodes": case.episodes,
        "seconds": time.monotonic() - began,
        "cpu_seconds": time.process_time() - cpu,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
        "optimum": judge.optimum,
        "worst": judge.worst,
        "budget": judge.budget,
        "horizon": judge.horizon,
    }
    part = path.with_suffix(".part")
    part.write_text(json.dumps(found, indent=1))
    part.replace(path)


def run_all(out: Path, names, methods, seeds: int, workers: int) -> None:
    """All runs that are not there yet, the longest first, then the table."""
    out.mkdir(parents=True, exist_ok=True)
    jobs = [
        (name, method, seed, out / f"{name.replace(' ', '-')}-{method}-{seed}.json")
        for name in sorted(names, key=["river-swim", "FrozenLake 8x8", "Taxi"].__contains__)[::-1]
        for method in methods
        for seed in range(seeds)
    ]
    if any(not path.exists() for *_, path in jobs):  # compiled once, not by every worker
        cmdplab.quiet()
        env = gymnasium.make(cmdplab.gym.identifier("three-state"))
        for method in set(methods) - {Q_LEARNING}:
            cmdplab.learn(env, method, episodes=3, evaluate=2)

    def start(job) -> None:
        name, method, seed, path = job
        if path.exists():
            return
        single = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        told = [name, method, str(seed), str(path)]
        command = [sys.executable, __file__, "--one", *told]
        done = subprocess.run(command, env=os.environ | single, capture_output=True, text=True)
        said = f"{name}, {method}, seed {seed}"
        print(said if done.returncode == 0 else f"{said} FAILED:\n{done.stderr}", flush=True)

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(start, jobs))
    words = table(out)
    (out / "table.md").write_text(words)
    print(words)


def table(out: Path) -> str:
    """Markdown: a line for each environment and method, means over seeds and the worst seed."""
    runs = [json.loads(each.read_text()) for each in sorted(out.glob("*.json"))]
    lines = [
        "| environment, episodes | optimum, budget | method | seeds | policy | last | plan "
        "| short of the range, worst seed | beyond the budget / H, worst seed | s | MB |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in CASES:
        for method in (*LEARNERS, Q_LEARNING):
            mine = [r for r in runs if (r["environment"], r["method"]) == (name, method)]
            if not mine:
                continue
            any_of = mine[0]
            wide = any_of["optimum"] - any_of["worst"]
            short = max((r["optimum"] - r["policy"][0]) / wide for r in mine)
            best, far = f"{any_of['optimum']:.4g}", f"{max(short, 0.0):.1%}"
            best, far = ("-", "-") if name in PLAYED else (best, far)
            beyond = max((r["policy"][1] - r["budget"]) / r["horizon"] for r in mine)
            lines.append(
                f"| {name}, {any_of['episodes']:,} | {best}, "
                f"{any_of['budget']:.3g} | {method} | {len(mine)} | {_mean(mine, 'policy')} "
                f"| {_mean(mine, 'last')} | {_mean(mine, 'plan')} | {far} "
                f"| {max(beyond, 0.0):.4f} | {np.mean([r['cpu_seconds'] for r in mine]):.0f} "
                f"| {max(r['megabytes'] for r in mine):.0f} |"
            )
    return "\n".join(lines) + "\n"


def _mean(runs, key: str) -> str:
    if any(key not in each for each in runs):
        return "-"
    value, cost = np.mean([each[key] for each in runs], axis=0)
    return f"{value:.4g} at {cost:.3g}"


# Overhead.

HORIZON = 20


def energy(state, action, next_state, reward, info):
    """A cost for half of the actions."""
    return 0.25 if action in (1, 2) else 0.0


def bare(env, episodes: int) -> tuple[float, int]:
    """CPU seconds and steps of episodes of random actions, drawn beforehand."""
    actions = [int(each) for each in env.np_random.integers(0, 4, HORIZON)]
    steps, began = 0, time.process_time()
    for _ in range(episodes):
        env.reset()
        for action in actions:
            _, _, ended, cut, _ = env.step(action)
            steps += 1
            if ended or cut:
                break
    return time.process_time() - began, steps


class Counted(gymnasium.Wrapper):
    """Counts steps."""

    steps = 0

    def step(self, action):
        """Play one action."""
        self.steps += 1
        return self.env.step(action)


def learning(env, name: str, episodes: int) -> tuple[float, int]:
    """CPU seconds and steps of learning, without the evaluation but for two episodes."""
    told = {"horizon": HORIZON, "cost": energy, "budget": 0.4, "evaluate": 2}
    cmdplab.learn(env, name, episodes=2, **told)  # compiles, or loads what was compiled
    env.steps = 0
    began = time.process_time()
    cmdplab.learn(env, name, episodes=episodes, **told)
    return time.process_time() - began, env.steps


def overhead(episodes: int) -> None:
    """Print microseconds of a step, with and without learning, and their ratio."""
    cmdplab.quiet()
    env = Counted(gymnasium.make("FrozenLake-v1"))
    seconds, steps = bare(env, episodes)
    alone = 1e6 * seconds / steps
    print(f"{'bare loop':12} {alone:6.1f} us a step")
    for name in ("UOpt-RPGPD", "OptCMDP", "Triple-Q"):
        seconds, steps = learning(env, name, episodes)
        each = 1e6 * seconds / steps
        print(f"{name:12} {each:6.1f} us a step, {each / alone:.1f} times the bare loop")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--methods", nargs="+", default=[LEARNERS[0], Q_LEARNING])
    parser.add_argument("--out", type=Path, default=Path("live-table"))
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--overhead", type=int, nargs="?", const=5000)
    given = parser.parse_args()
    if given.one:
        name, method, seed, path = given.one
        one(name, method, int(seed), Path(path))
    elif given.overhead:
        overhead(given.overhead)
    else:
        run_all(given.out, given.only, given.methods, given.seeds, given.workers)


if __name__ == "__main__":
    main()
