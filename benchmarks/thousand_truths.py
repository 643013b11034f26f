"""A thousand synthetic runs with known limits, each judged by itself.

Errors fall to zero or to a floor, rise, jump or swing, under noise of four sizes. A verdict is
wrong if it is decided and its kind is not accepted. A falling verdict is right above a floor only
if its stated bound on the limit contains the floor, and is then counted as covered. The line
`strictly wrong` counts covered verdicts as wrong.

    python benchmarks/thousand_truths.py [--hidden] [--every 1]

No rule was chosen with the hidden cases in sight: they have other exponents, floors, lengths and
laws of noise (heavy tails, correlations over a hundredth of the run).
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

from cmdplab.algorithms.learner import Chunk
from cmdplab.measures.measures import Measures
from cmdplab.measures.verdict import Kind, Verdict, verdict
from cmdplab.types import Array

HORIZON = 10
FALLS = frozenset({Kind.converging, Kind.shrinking})
STAYS = frozenset({Kind.settled, Kind.oscillating})
SWINGS = frozenset({Kind.oscillating})
GROWS = frozenset({Kind.worsening})
GROWS_NOISILY = frozenset({Kind.worsening, Kind.oscillating})

Shape = Callable[[Array, float], Array]  # of the episodes k and of their number K
Noise = Callable[[int, np.random.Generator], Array]  # factors for so many episodes


class Case(NamedTuple):
    """One run, and the words that a mathematician accepts for it."""

    family: str
    name: str
    shape: Shape
    noise: Noise
    episodes: int
    accepted: frozenset[Kind]
    limit: float  # of the errors without noise, as a share of the error at K
    exact: bool  # without noise: the level of a settled run is compared
    rate: float | None = None  # the exponent of k^-p

    def curves(self) -> dict[str, Array]:
        """Return the curves of the run."""
        rng = np.random.default_rng([*self.name.encode()])
        k = np.arange(1.0, self.episodes + 1.0)
        error = self.shape(k, float(self.episodes)) * self.noise(self.episodes, rng)
        error = np.clip(error, -HORIZON, HORIZON)
        measures = Measures(0.0, np.zeros(1), HORIZON)
        for part in np.array_split(error, max(1, self.episodes // 100_000)):
            measures.add(Chunk(np.column_stack([-part, part]), np.zeros((len(part), 1))))
        return measures.curves()

    def final(self) -> float:
        """Return the error at the last episode, without noise."""
        K = float(self.episodes)
        return float(abs(self.shape(np.array([K]), K)[0]))

    def score(self, found: Verdict) -> str:
        """Return right, undecided, wrong, or covered.

        A verdict is covered if it falls above a floor that its stated bound contains.
        """
        if found.kind is Kind.undecided:
            return "undecided"
        if found.kind in FALLS and not self.accepted & FALLS:
            bound = getattr(found, "limit", None)
            covered = bound is not None and self.limit > 0.0
            return "covered" if covered and bound >= self.limit * self.final() else "wrong"
        if found.kind not in self.accepted:
            return "wrong"
        if self.rate is not None and found.rate is not None:
            return "right" if abs(found.rate - self.rate) <= 0.1 + self.rate / 4.0 else "wrong"
        if self.exact and found.kind is Kind.settled and self.limit > 0.0 and found.level:
            away = abs(found.level / (self.limit * self.final()) - 1.0)
            return "right" if away <= 0.1 + 1e-9 else "wrong"
        return "right"


def power(p: float, floor: float = 0.0, size: float = 0.05) -> Shape:
    """Return errors that fall like k^-p to a floor, a share of the error at K."""
    return lambda k, K: size * (floor + (1.0 - floor) * (k / K) ** -p)


def stairs(p: float, base: float, phase: float) -> Shape:
    """Return errors that fall like k^-p, once in each power of a base."""

    def error(k: Array, K: float) -> Array:
        return 0.5 * base ** (-p * np.floor(np.log(k) / np.log(base) + phase))

    return error


def bursts(base: float, length: float, size: Callable[[Array, float], Array]) -> Shape:
    """Return errors of a size in the first episodes of each power of a base, and k^-0.6 else."""

    def error(k: Array, K: float) -> Array:
        first = base ** np.floor(np.log(k) / np.log(base) + 1e-12)
        return np.where(k - first < length, size(k, K), k**-0.6)

    return error


def stops(p: float, share: float) -> Shape:
    """Return errors that fall like k^-p up to a share of the run, and stay there."""
    return lambda k, K: 0.3 * np.minimum(k, share * K) ** -p


def swinging(p: float, period: float, centre: float = 0.0) -> Shape:
    """Return swings that shrink like k^-p around a centre."""
    return lambda k, K: centre + 0.3 * k**-p * np.sin(2.0 * np.pi * k / period)


def gaussian(size: float) -> Noise:
    """Return independent normal factors with mean 1."""
    return lambda n, rng: 1.0 + size * rng.standard_normal(n) if size else np.ones(n)


def student(size: float, freedom: float) -> Noise:
    """Return factors with heavy tails."""
    return lambda n, rng: 1.0 + size * rng.standard_t(freedom, n)


def uniform(size: float) -> Noise:
    """Return uniform factors."""
    return lambda n, rng: rng.uniform(1.0 - size, 1.0 + size, n)


def lognormal(size: float) -> Noise:
    """Return log-normal factors."""
    return lambda n, rng: np.exp(size * rng.standard_normal(n))


def correlated(size: float, share: float) -> Noise:
    """Return factors of an autoregression with a memory of a share of the run."""

    def factors(n: int, rng: np.random.Generator) -> Array:
        keep = np.exp(-1.0 / (share * n))
        drawn = np.sqrt(1.0 - keep**2) * rng.standard_normal(n)
        start = [keep * rng.standard_normal()]
        return np.asarray(1.0 + size * lfilter([1.0], [1.0, -keep], drawn, zi=start)[0])

    return factors


def swarm(size: float) -> Noise:
    """Return factors of a random sign, whose mean is 0."""
    return lambda n, rng: size * rng.standard_normal(n)


NOISES: dict[str, tuple[Noise, bool]] = {
    f"noise {size:.0%}": (gaussian(size), size == 0.0) for size in (0.0, 0.03, 0.1, 0.5)
}
HIDDEN_SEED = 21  # 20 was judged first
HEAVY = ("Student 3, 10 %", "log-normal 0.4")
HIDDEN_NOISES: dict[str, tuple[Noise, bool]] = {
    "no noise": (gaussian(0.0), True),
    "uniform 20 %": (uniform(0.2), False),
    HEAVY[0]: (student(0.1, 3.0), False),
    HEAVY[1]: (lognormal(0.4), False),
    "memory K/100, 5 %": (correlated(0.05, 0.01), False),
    "memory 30 episodes of 10^5, 20 %": (correlated(0.2, 3e-4), False),
    "random signs": (swarm(1.0), False),
}


LOGS: dict[str, Shape] = {
    "1 / ln k": lambda k, K: 0.5 / np.log(k + 1.0),
    "1 / ln^2 k": lambda k, K: 0.5 / np.log(k + 2.0) ** 2,
    "ln k / sqrt k": lambda k, K: np.log(k + 1.0) * k**-0.5,
    "ln^2 k / sqrt k": lambda k, K: np.log(k + 1.0) ** 2 * k**-0.5,
    "k^-0.3 / ln k": lambda k, K: k**-0.3 / np.log(k + 1.0),
    "k^-0.4 + 2 k^-0.5 + 20 / k": lambda k, K: k**-0.4 + 2.0 * k**-0.5 + 20.0 / k,
}
HIDDEN_LOGS: dict[str, Shape] = {
    "1 / sqrt(ln k)": lambda k, K: 0.5 / np.sqrt(np.log(k + 1.0)),
    "k^-0.2 ln k": lambda k, K: 0.5 * np.log(k + 1.0) * k**-0.2,
    "1 / ln^3 k": lambda k, K: 5.0 / np.log(k + 5.0) ** 3,
    "k^-0.25 + 5 k^-0.8": lambda k, K: 0.3 * k**-0.25 + 5.0 * k**-0.8,
    "k^-0.35 + 3 exp(-k / 2000)": lambda k, K: k**-0.35 + 3.0 * np.exp(-k / 2e3),
    "k^-0.6 + k^-0.3 / 10": lambda k, K: k**-0.6 + 0.1 * k**-0.3,
}
DRIFTS: dict[str, Shape] = {
    "k^0.08": lambda k, K: 0.02 * k**0.08,
    "k^0.15": lambda k, K: 0.02 * k**0.15,
    "k^0.25": lambda k, K: 0.02 * k**0.25,
    "k / K": lambda k, K: 0.5 * k / K,
    "0.1 ln k": lambda k, K: 0.1 * np.log(k + 1.0),
    "k^-1/2 + 0.02 (64 k / K)^0.3": lambda k, K: 0.1 * k**-0.5 + 0.02 * (64.0 * k / K) ** 0.3,
}
HIDDEN_DRIFTS: dict[str, Shape] = {
    "k^0.11": lambda k, K: 0.03 * k**0.11,
    "k^0.4": lambda k, K: 1e-3 * k**0.4,
    "ln^2 k": lambda k, K: 0.01 * np.log(k + 1.0) ** 2,
    "0.1 + k / K": lambda k, K: 0.1 + 0.4 * k / K,
}


def visible() -> list[Case]:
    """Return the cases with which the rule was chosen."""
    cases: list[Case] = []

    def add(
        family: str,
        name: str,
        shape: Shape,
        accepted: frozenset[Kind],
        lengths: tuple[int, ...] = (10_000, 100_000, 1_000_000),
        limit: float = 0.0,
        draws: int = 1,
        noises: dict[str, tuple[Noise, bool]] = NOISES,
        rate: float | None = None,
    ) -> None:
        for (law, (noise, exact)), K in itertools.product(noises.items(), lengths):
            for draw in range(draws):
                said = f"{name}, {law}, {K:,} episodes, draw {draw}"
                cases.append(Case(family, said, shape, noise, K, accepted, limit, exact, rate))

    long = (100_000, 1_000_000)
    for p in (0.05, 1 / 7, 0.22, 0.3, 0.5, 0.8, 1.0):
        add("powers", f"k^-{p:.3g}", power(p), FALLS, draws=2, rate=p)
    for p, floor in itertools.product((0.15, 0.3, 0.5, 0.8), (0.05, 0.1, 0.2, 0.3, 0.5)):
        name = f"{floor:g} + k^-{p:g}"
        add(f"floor {floor:.0%}", name, power(p, floor), STAYS, long, floor, draws=3)
    for name, shape in LOGS.items():
        add("logs", name, shape, FALLS)
    for name, shape in DRIFTS.items():
        add("drifts", name, shape, GROWS_NOISILY)
    for p, base in itertools.product((0.3, 0.5), (2.0, 4.0, 10.0)):
        add("stairs", f"stairs of {base:g}^-{p:g}", stairs(p, base, 0.3), FALLS, rate=p)
    for p, share in itertools.product((0.3, 0.5), (0.03, 0.2)):
        name = f"k^-{p:g}, stops at {share:g} K"
        add("stops", name, stops(p, share), STAYS, limit=1.0)
    quiet = {law: NOISES[law] for law in ("noise 0%", "noise 10%")}
    for base, length in itertools.product((2.0, 3.0, 10.0), (8.0, 20.0)):
        said = f"in {length:g} episodes from {base:g}^j on"
        for size in (0.1, 0.5):
            shape = bursts(base, length, lambda k, K, size=size: size + 0.0 * k)
            add("bursts", f"{size:g} {said}", shape, SWINGS, long, 1.0, noises=quiet)
        shape = bursts(base, length, lambda k, K: k**-0.2)
        add("bursts that shrink", f"k^-0.2 {said}", shape, FALLS, long, noises=quiet)
    for p, period in itertools.product((0.2, 0.4), (40.0, 2000.0)):
        swing = f"k^-{p:g} sine of period {period:g}"
        add("swings that shrink", swing, swinging(p, period), FALLS, long, rate=p)
        add("swings", f"0.05 + {swing}", swinging(p, period, 0.05), STAYS, long)
    for period in (40.0, 2000.0):
        add("swings", f"sine of period {period:g}", swinging(0.0, period), SWINGS, long, 1.0)
    return cases


def hidden() -> list[Case]:
    """Return the cases that were judged after the rule was chosen.

    The largest of n values of Student's t with 3 degrees of freedom grows like n^(1/3). Errors of
    this law converge only if they fall faster than k^-1/3, and their rate is not p. The largest
    log-normal value grows too.
    """
    rng = np.random.default_rng(HIDDEN_SEED)
    cases: list[Case] = []
    laws = list(HIDDEN_NOISES.items())

    def add(
        family: str,
        name: str,
        shape: Shape,
        accepted: frozenset[Kind],
        limit: float = 0.0,
        rate: float | None = None,
    ) -> None:
        law, (noise, exact) = laws[len(cases) % len(laws)]
        needs_sign = law == "random signs" and (limit > 0.0 or accepted != FALLS)
        slow = law == HEAVY[0] and accepted == FALLS and (rate is None or rate < 0.4)
        if needs_sign or slow:
            law, (noise, exact) = laws[1]
        K = int(np.exp(rng.uniform(np.log(3e4), np.log(1.5e6))))
        said = f"{name}, {law}, {K:,} episodes"
        p = None if law in HEAVY else rate
        cases.append(Case(family, said, shape, noise, K, accepted, limit, exact, p))

    for _ in range(350):
        p, floor = rng.uniform(0.1, 1.2), rng.uniform(0.05, 0.8)
        add(f"floor {np.floor(10 * floor) / 10:.0%}", f"{floor:.3f} + k^-{p:.3f}",
            power(p, floor), STAYS, floor)  # fmt: skip
    for _ in range(300):
        p = np.exp(rng.uniform(np.log(0.04), np.log(1.3)))
        add("powers", f"k^-{p:.3f}", power(p), FALLS, rate=p)
    for name, shape in itertools.chain.from_iterable([HIDDEN_LOGS.items()] * 14):
        add("logs", name, shape, FALLS)
    for name, shape in itertools.chain.from_iterable([HIDDEN_DRIFTS.items()] * 14):
        add("drifts", name, shape, GROWS_NOISILY)
    for _ in range(60):
        p, base, phase = rng.uniform(0.15, 0.9), rng.uniform(1.5, 12.0), rng.random()
        add("stairs", f"stairs of {base:.2f}^-{p:.3f}", stairs(p, base, phase), FALLS, rate=p)
    for _ in range(50):
        p, share = rng.uniform(0.15, 0.9), np.exp(rng.uniform(np.log(0.01), np.log(0.5)))
        add("stops", f"k^-{p:.3f}, stops at {share:.3f} K", stops(p, share), STAYS, 1.0)
    for _ in range(50):
        base, length, size = rng.uniform(1.6, 12.0), rng.integers(3, 40), rng.uniform(0.05, 2.0)
        shape = bursts(base, float(length), lambda k, K, size=size: size + 0.0 * k)
        name = f"{size:.3f} in {length} episodes from {base:.2f}^j on"
        add("bursts", name, shape, SWINGS, 1.0)
    for _ in range(50):
        p, period = rng.uniform(0.1, 0.6), np.exp(rng.uniform(np.log(10.0), np.log(5e3)))
        name = f"k^-{p:.3f} sine of period {period:.0f}"
        add("swings that shrink", name, swinging(p, period), FALLS, rate=p)
        add("swings", f"0.05 + {name}", swinging(p, period, 0.05), STAYS, 0.0)
    return cases


def main() -> None:
    """Print the scores of each family."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", action="store_true", help="the cases that no rule was tuned on")
    parser.add_argument("--every", type=int, default=1, help="judge one case in so many")
    asked = parser.parse_args()
    cases = (hidden() if asked.hidden else visible())[:: asked.every]
    scores: dict[str, Counter[str]] = {}
    for case in cases:
        found = verdict(case.curves(), HORIZON)
        scored = case.score(found)
        scores.setdefault(case.family, Counter())[scored] += 1
        if scored == "wrong":
            print(f"{case.name}: {found.words}", flush=True)
    table(scores)


def table(scores: dict[str, Counter[str]]) -> None:
    """Print the table of scores, with a line for all cases."""
    words = ("right", "covered", "undecided", "wrong")
    print("| family | " + " | ".join(words) + " |")
    print("|---" * (1 + len(words)) + "|")
    total = sum(scores.values(), Counter[str]())
    for family, counted in {**scores, "all": total}.items():
        print(f"| {family} | " + " | ".join(str(counted[word]) for word in words) + " |")
    print(f"strictly wrong: {total['wrong'] + total['covered']} of {total.total()}")


if __name__ == "__main__":
    main()
