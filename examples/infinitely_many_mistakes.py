"""Show Appendices A and C: little regret allows many mistakes, and ln k explores for ever.

Two actions pay 1 or 1/2 per step, and a learner does not know which. Three learners have little
regret, and only the last of them has a bound on its mistakes.

    python examples/infinitely_many_mistakes.py [figure.png]
"""

import math
import os
import sys
from typing import NamedTuple

import numpy as np

import cmdplab
from cmdplab.algorithms.confidence import appendix_c_bonus, uniform_pac
from cmdplab.algorithms.equations import bonus, confidence_radius
from cmdplab.algorithms.schedules import Setting

EPISODES = int(os.environ.get("EPISODES", "20000"))
GOOD, BAD, DELTA = 0, 1, 0.1


def two_actions() -> cmdplab.CMDP:
    """Return a problem in which the first action leads to 1 or 1/2 per step."""
    kernel = np.zeros((3, 2, 3))
    kernel[0, GOOD, 1] = kernel[0, BAD, 2] = kernel[1, :, 1] = kernel[2, :, 2] = 1.0
    reward = np.zeros((1, 3, 2))
    reward[0, 1], reward[0, 2] = 1.0, 0.5
    return cmdplab.CMDP(kernel, reward, np.zeros(0), horizon=2, name="two actions")


class State(NamedTuple):
    """The data for the next episode."""

    visits: np.ndarray  # [2], of each action
    multiplier: np.ndarray  # [0]
    episode: int  # episodes done


class Optimist:
    """A learner that takes the action with the larger mean + sqrt(log(k, n) / n)."""

    def __init__(self, name, log):
        self.name, self.log = name, log

    def init(self):
        """Return the state before the first episode."""
        return State(np.zeros(2), np.zeros(0), 0)

    def policy(self, state):
        """Return the policy [H, X, A], greedy in the first step."""
        k = state.episode + 1
        best = max((GOOD, BAD), key=lambda a: self.worth(a, state.visits[a], k))
        return np.eye(2)[np.full((2, 3), best)]

    def worth(self, a, n, k):
        """Return the reward of an action that was seen, plus the bonus."""
        return (1.0, 0.5)[a] + math.sqrt(self.log(k, n) / n) if n else math.inf

    def observe(self, state, episode):
        """Count the first action of the episode."""
        visits = state.visits + np.eye(2)[episode.actions[0]]
        return State(visits, state.multiplier, state.episode + 1)


class Squares(Optimist):
    """A learner that takes the bad action in the episodes 1, 4, 9, ...: regret of order sqrt K."""

    def policy(self, state):
        """Return the policy [H, X, A]."""
        k = state.episode + 1
        return np.eye(2)[np.full((2, 3), BAD if math.isqrt(k) ** 2 == k else GOOD)]


def iterated(n):
    """Return llnp(2n), which replaces ln k in the Uniform-PAC bonus."""
    return math.log(math.log(max(2.0 * n, math.e)))


LEARNERS = [
    Squares("the optimal policy, but not in episodes 1, 4, 9", None),
    Optimist("bonus sqrt(ln(k / delta) / n)", lambda k, n: math.log(k / DELTA)),
    Optimist(
        "bonus sqrt((llnp(2n) + ln(1 / delta)) / n)", lambda k, n: iterated(n) - math.log(DELTA)
    ),
]


def needed(make, K):
    """Return the visits after which a bonus of the paper is below 1/2, the difference."""
    b = make(Setting(3, 2, 2, 0, K=K, delta=DELTA, slack=math.inf))

    def of(n):
        phi = confidence_radius(n, b.iterated, b.log, math.inf)
        return bonus(phi, 1.0, 0.0, b.root, b.dev, b.flat, b.tail)  # one successor: S = 1, D = 0

    high = 1
    while of(high) >= 0.5:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if of(middle) >= 0.5 else (low, middle)
    return high


def main():
    """Print both tables, and draw the first."""
    problem, curves = two_actions(), {}
    stops = [EPISODES // 100, EPISODES // 10, EPISODES]
    print("mistakes (any epsilon < 1/2) after", ", ".join(f"{k:,}" for k in stops), "episodes")
    for learner in LEARNERS:
        c = cmdplab.run(problem, learner, EPISODES).curves
        counts = c["strong_regret"] / 0.5
        at = [f"{np.interp(k, c['episode'], counts):6,.0f}" for k in stops]
        print(f"  {learner.name:49}", *at, f"  regret / K {counts[-1] / 2 / EPISODES:.5f}")
        curves[learner.name] = (c["episode"], counts)
    print("visits of the bad action until the paper's own bonuses exclude it, tuned for K episodes")
    for K in (10**3, 10**6, 10**12, 10**50, 10**100, 10**200):
        naive, uniform = needed(appendix_c_bonus, K), needed(uniform_pac, K)
        print(f"  K = {float(K):.0e}: Eq. 10 {naive:6,}   Eq. 3 {uniform:6,}")
    if len(sys.argv) > 1 and sys.argv[1].endswith((".png", ".pdf", ".svg")):
        draw(curves, sys.argv[1])


def draw(curves, path):
    """Draw mistakes against episodes: only the last line becomes flat."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 3.6), layout="constrained")
    axes = figure.subplots()
    for (name, (episode, counts)), style in zip(curves.items(), (":", "--", "-"), strict=True):
        axes.plot(episode, counts, style, color="black")
        place = {"ha": "right", "va": "bottom", "xytext": (0, 3), "textcoords": "offset points"}
        white = {"fc": "white", "ec": "none", "pad": 0.6}
        axes.annotate(name, (episode[-1], counts[-1]), fontsize=8, bbox=white, **place)
    axes.set(xscale="log", yscale="log", xlabel="episode k", ylabel="mistakes so far")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
