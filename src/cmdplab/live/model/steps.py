"""Environments that change with the step: a test on the counts, and estimates for each step.

The test compares two groups of the visits of a pair: those at a step with all others, and those
from a step on with those before. Each variable lies in [0, 1]: a signal in the learner's units, the
indicator that a signal exceeds a level, the indicator of a successor. A group has n samples with
the sum k. If both groups have the same expectation p, then

    E = prod over groups of B(k + 1/2, n - k + 1/2) / B(1/2, 1/2) / (p^k (1 - p)^(n - k))

is a supermartingale that starts at 1, whichever samples an algorithm chooses. B is the beta
function. By Ville's inequality, E ever exceeds M / alpha with probability at most alpha / M. M is
the number of groups and variables. E is smallest if p is the mean of all samples, and this value is
compared with M / alpha.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from cmdplab.live.model.experience import Entries, Experience, totals
from cmdplab.live.signals import Setup
from cmdplab.types import Array, Indices

ERROR = 0.001  # alpha, the probability of a false alarm
LEVELS = 1 << 12  # levels of a signal, at equal distances


class Change(NamedTuple):
    """Clearest difference between steps in words, the number of differing pairs, and its kind."""

    sentence: str
    pairs: int
    leads: bool  # True if the successors of some pair differ


class Rows(NamedTuple):
    """Visits summed by pair and step: R rows, one for each pair and step that was visited."""

    pair: Indices  # [R], x A + a
    step: Indices  # [R]
    times: Array  # [R]
    sums: Array  # [1 + N, R], of the signals, in the user's units
    squares: Array  # [1 + N, R]
    place: Indices  # [E], the row of each entry

    @classmethod
    def of(cls, found: Entries, seen: Experience) -> Rows:
        """Return the rows of transitions, summed over the successors."""
        pair = found.state * seen.actions + found.action
        key, place = np.unique(pair * seen.horizon + np.asarray(found.step), return_inverse=True)
        both = (found.sums, found.squares)
        sums, squares = (np.array([totals(place, v, len(key)) for v in each]) for each in both)
        pair, step = np.divmod(key, seen.horizon)
        return cls(pair, step, totals(place, found.times, len(key)), sums, squares, place)


class _Variable(NamedTuple):
    """Sums of a variable for each row: in the row, before its step, over all steps."""

    sum: Array
    before: Array
    all: Array

    @classmethod
    def of(cls, values: Array, group: Indices) -> _Variable:
        """Return the sums of values [R]. group : [R], the group of each row, in order."""
        first = np.searchsorted(group, group)
        running = np.append(0.0, np.cumsum(values))
        _, place = np.unique(group, return_inverse=True)
        return cls(values, running[:-1] - running[first], totals(place, values)[place])

    def groups(self, alone: bool) -> tuple[Array, Array]:
        """Return the sums of two groups: a step and all others, or later and earlier steps."""
        if alone:
            return self.sum, self.all - self.sum
        return self.all - self.before, self.before


def change(seen: Experience, world: Setup) -> Change | None:
    """Return the clearest certain difference between the steps of a pair, or None."""
    found, moves = seen.entries(), seen.moves()
    rows, signals = Rows.of(found, seen), len(world.names)
    variables = seen.states + 1 + signals * (1 + LEVELS)
    size = 2 * seen.horizon * seen.states * seen.actions
    certain = float(np.log(size * variables / ERROR))
    most, sentence, changed = 0.0, "", [np.zeros(0, dtype=np.int64)]

    def look(pair: Indices, tested: _Variable, times: _Variable) -> tuple[int, bool] | None:
        """Store the pairs that differ. Return row and kind of the clearest difference, or None."""
        nonlocal most
        excess = np.stack([_excess(tested, times, each, certain) for each in (False, True)])
        changed.append(pair[(excess > 0.0).any(axis=0)])
        if excess.max(initial=0.0) <= most:
            return None
        most = float(excess.max())
        alone, row = np.unravel_index(int(excess.argmax()), excess.shape)
        return int(row), bool(alone)

    times = _Variable.of(rows.times, rows.pair)
    for k, name in enumerate(world.names):
        unit = np.clip(world.scale.to_unit(rows.sums, rows.times)[k], 0.0, rows.times)
        paid = _Variable.of(rows.sums[k], rows.pair)
        for values in (unit, _above(found, rows, unit, k, world)):
            best = look(rows.pair, _Variable.of(values, rows.pair), times)
            if best:
                verb = f"has a mean {name} of"
                sentence = _sentence(verb, best, paid, times, rows.pair, rows.step, world)

    rows = Rows.of(moves, seen)
    order = np.lexsort((rows.step[rows.place], moves.following, rows.pair[rows.place]))
    row, following = rows.place[order], moves.following[order]
    times = _Variable(*(each[row] for each in _Variable.of(rows.times, rows.pair)))
    followed = _Variable.of(moves.times[order], rows.pair[row] * (seen.states + 1) + following)
    best = look(rows.pair[row], followed, times)
    if best:
        y = int(following[best[0]])
        where = "the end" if y == seen.states else f"state {world.spaces.observation(y)}"
        verb = f"leads to {where} with probability"
        sentence = _sentence(verb, best, followed, times, rows.pair[row], rows.step[row], world)
    if not sentence:
        return None
    pairs = len(np.unique(np.concatenate(changed)))
    more = "" if pairs == 1 else f" ({pairs:,} pairs differ)"
    error = f"If no pair differs, the test says so with probability {ERROR:g} at most."
    return Change(f"{sentence}{more}. {error}", pairs, bool(len(changed[-1])))


def signals_by_step(seen: Experience, paid: Array) -> Array:
    """Return the means [1 + N, H, X, A] of the signals at each step, shrunk to those of all steps.

    paid : [1 + N, X, A], the means over all steps, used for pairs without visits.
    """
    rows = Rows.of(seen.entries(), seen)
    pairs, place = np.unique(rows.pair, return_inverse=True)
    nearest = _nearest(place * seen.horizon + rows.step, len(pairs), seen.horizon)
    found = np.repeat(paid.reshape(len(paid), 1, -1), seen.horizon, axis=1)
    for k, total in enumerate(rows.sums):
        mean = (totals(place, total) / totals(place, rows.times))[place]
        own = total / rows.times
        between = totals(place, rows.times * (own - mean) ** 2)
        within = totals(place, np.maximum(rows.squares[k] - rows.times * own**2, 0.0))
        estimate = mean + _weights(place, rows.times, between, within) * (own - mean)
        found[k][:, pairs] = estimate[nearest].T
    return found.reshape(len(paid), seen.horizon, *paid.shape[1:])


def moves_by_step(seen: Experience, pooled: Entries, chance: Array) -> Array:
    """Return the probabilities [H, E] of the pooled transitions at each step, shrunk to `chance`.

    pooled : E transitions. chance : [E], their probabilities over all steps.
    """
    moves = seen.moves()
    rows = Rows.of(moves, seen)
    pairs, place = np.unique(rows.pair, return_inverse=True)
    nearest = _nearest(place * seen.horizon + rows.step, len(pairs), seen.horizon)
    first = moves.state * seen.actions + moves.action
    _, target = np.unique(first * (seen.states + 1) + moves.following, return_inverse=True)
    total = totals(target, moves.times)
    of_target = np.zeros(len(total), dtype=np.int64)
    of_target[target] = place[rows.place]
    times = totals(place, rows.times)
    own = totals(place[rows.place], moves.times**2 / rows.times[rows.place])
    between = own - totals(of_target, total**2) / times
    weight = _weights(place, rows.times, between, times - own)

    key = rows.place * (seen.states + 1) + moves.following
    order = np.argsort(key)
    key, share = key[order], (moves.times / rows.times[rows.place])[order]
    mine = pooled.state * seen.actions + pooled.action
    at = np.minimum(np.searchsorted(pairs, mine), len(pairs) - 1)
    known, found = pairs[at] == mine, np.empty((seen.horizon, len(chance)))
    for h in range(seen.horizon):
        row = nearest[at, h]
        wanted = row * (seen.states + 1) + pooled.following
        entry = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        there = np.where(key[entry] == wanted, share[entry], 0.0)
        found[h] = chance + np.where(known, weight[row] * (there - chance), 0.0)
    return found


def _nearest(key: Indices, pairs: int, horizon: int) -> Indices:
    """Return [pairs, H], the row of the pair at the nearest visited step. key : pair H + step."""
    wanted = np.arange(pairs * horizon)
    after = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
    before = np.maximum(after - (key[after] > wanted), 0)
    far = [
        np.where(key[each] // horizon == wanted // horizon, np.abs(key[each] - wanted), horizon)
        for each in (after, before)
    ]
    nearest: Indices = np.where(far[0] <= far[1], after, before)
    return nearest.reshape(pairs, horizon)


def _weights(place: Indices, times: Array, between: Array, within: Array) -> Array:
    """Return the weights n / (n + v / t) of the rows' own means beside the means of their pairs.

    place : the pair of each row. times : the number of samples n of each row. between, within :
    sums of squares of each pair between its steps and within them.

    v is the variance within steps, t that between steps (moments of DerSimonian and Laird),
    estimated for each pair. A pair without two visits at a step has the v of all pairs.
    """
    rows, n = totals(place, np.ones(len(place))), totals(place, times)
    free = n - rows
    common = within.sum() / max(float(free.sum()), 1.0)
    v = np.where(free > 0.0, within / np.maximum(free, 1.0), common)
    size = n - totals(place, times**2) / n
    t = np.maximum(between - (rows - 1.0) * v, 0.0) / np.maximum(size, 1e-300)
    t = np.where(size > 1e-9, t, 0.0)
    own = times * t[place]
    return own / np.where(own > 0.0, own + v[place], 1.0)


def _excess(tested: _Variable, times: _Variable, alone: bool, certain: float) -> Array:
    """Return ln E - `certain` for each row, minus infinity if a group is empty."""
    p = tested.all / times.all
    evidence = -special.xlogy(tested.all, p) - special.xlogy(times.all - tested.all, 1.0 - p)
    for total, n in zip(tested.groups(alone), times.groups(alone), strict=True):
        k = np.clip(total, 0.0, n)
        evidence += special.betaln(k + 0.5, np.maximum(n - k, 0.0) + 0.5) - np.log(np.pi)
    some = np.minimum(*times.groups(alone)) > 0.5
    return np.where(some, evidence - certain, -np.inf)


def _above(found: Entries, rows: Rows, unit: Array, k: int, world: Setup) -> Array:
    """Return the number of samples of each row above the level next to the pair's mean.

    Single samples are known if all samples of an entry are equal. Other pairs have zeros.
    """
    mean = found.sums[k] / found.times
    spread = found.squares[k] / found.times - mean**2
    _, pair = np.unique(rows.pair, return_inverse=True)
    known = np.ones(pair.max(initial=0) + 1, dtype=bool)
    known[pair[rows.place][spread > 1e-9 * world.scale.width[k] ** 2]] = False
    level = totals(pair, unit) / totals(pair, rows.times)
    level = (np.floor(level * LEVELS) + 0.5) / LEVELS
    values = (mean - world.scale.worst[k]) / (world.scale.best[k] - world.scale.worst[k])
    more = known[pair[rows.place]] & (values > level[pair[rows.place]])
    return totals(rows.place, more * found.times, len(rows.pair))


def _sentence(
    verb: str,
    best: tuple[int, bool],
    tested: _Variable,
    times: _Variable,
    pair: Indices,
    step: Indices,
    world: Setup,
) -> str:
    row, alone = best
    x, a = divmod(int(pair[row]), world.spaces.actions)
    both = zip(tested.groups(alone), times.groups(alone), strict=True)
    here, rest = (float(total[row] / n[row]) for total, n in both)
    when = ("at step {}", "at the others") if alone else ("from step {} on", "before")
    return (
        f"Steps differ: action {world.spaces.action(a)} in state {world.spaces.observation(x)} "
        f"{verb} {here:.4g} {when[0].format(step[row])} and {rest:.4g} {when[1]}"
    )
