"""The arrays that the threads of one run share, and the functions that count transitions.

Threads hold pairs (see layout.py). Formulas are from equations.py. Functions are made for the sizes
of a problem: their short loops then unroll into registers. Nothing here names the device: the
exchange of registers between lanes is an argument. primal_dual_sweep.py contains the sweep.

Index letters: t thread, s place of a thread's state and lane, i place of a pair in a row, h step, x
state, a action, y next state, n reward, j action of a lane. Arguments: run (`Learner`), world
(`World`), space (`Space`), numbers (constants of the algorithm at `PLACE`), lam (multipliers), form
(sizes), real (type of numbers), values (of states at two steps), roots and deviations (sums of a
bonus). Q~ and V~ are optimistic values, V true ones.
"""
# Numba infers the types of these functions.

import math
from typing import Any, NamedTuple

from numba.extending import register_jitable

from cmdplab.algorithms.equations import bonus, confidence_radius, unvisited_bonus
from cmdplab.algorithms.families.primal_dual import PrimalDualNumbers
from cmdplab.engines.gpu.device import WARP
from cmdplab.engines.gpu.formulas import formulas

# The index of each number in the constants of a run.
PLACE = PrimalDualNumbers(*range(len(PrimalDualNumbers._fields)))


class Learner(NamedTuple):
    """Arrays of one run, flat."""

    counts: Any  # [H X J S], whole numbers: exact for 2^31 episodes, in half the bytes of doubles
    visits: Any  # [H J S], whole numbers
    inverse: Any  # [H J S], Pbar = counts * inverse
    bonus: Any  # [H J S]
    log_policy: Any  # [H J S]
    policy: Any  # [H J S]


class World(NamedTuple):
    """Arrays of one problem, flat."""

    kernel: Any  # [H X J S], P_h(y | pair)
    reward: Any  # [(1 + N) H J S]
    closed: Any  # [H J S], zero where an action is open, else too low ever to be taken


class Space(NamedTuple):
    """Registers of one thread for one step."""

    seen: Any  # [J (1 + N)], sums over the counts, then Q~
    true: Any  # [J (1 + N)], sums over the true kernel, then the new policy
    total: Any  # [J], Q~^0 + sum_n lambda^n Q~^n, then logits
    value: Any  # [2 (1 + N)], V~ and V


def counting(form, real, exchange):
    """Make the functions that count a transition and renew the bonus of its pair."""
    X, row, zero = form.states, form.row, real(0.0)
    deviation, count_weight = formulas(real).deviation, formulas(real).count_weight

    @register_jitable
    def inverse_of(numbers, visits):
        """Return the factor from counts to the estimate Pbar, for a number of visits of a pair."""
        unvisited = real(numbers[PLACE.unvisited_mass]) / real(X)
        return real(count_weight(real(visits), real(numbers[PLACE.prior_visits]), unvisited))

    @register_jitable
    def warp_sum(each):
        """Return the sum of `each` over the threads of a warp, to every one of them."""
        for half in range(5):
            each += exchange(each, 16 >> half)
        return each

    @register_jitable
    def tally(run, numbers, h, i, to, lane):
        """Count the transition (h, i) -> to by a whole warp. Return the sums of the pair's bonus.

        Nothing is counted for to < 0. The estimate of an unvisited row is ones or zeros. A sum
        whose coefficient is zero is not computed.
        """
        before = run.visits[h * row + i]
        after = before + (1 if to >= 0 else 0)
        share = inverse_of(numbers, after)
        roots, deviations = zero, zero
        for y in range(lane, X, WARP):
            at = (h * X + y) * row + i
            held = run.counts[at]
            if before == 0:
                held = 1 if after == 0 and numbers[PLACE.unvisited_mass] > 0.0 else 0
            if y == to:
                held += 1
            if before == 0 or y == to:
                run.counts[at] = held
            p = real(held) * share
            roots += math.sqrt(p)
            if numbers[PLACE.dev] != 0.0:
                deviations += real(deviation(p))
        if numbers[PLACE.root] != 0.0:
            roots = warp_sum(roots)
        if numbers[PLACE.dev] != 0.0:
            deviations = warp_sum(deviations)
        return roots, deviations

    @register_jitable
    def settle(run, numbers, pair, more, roots, deviations):
        """Add `more` visits to a counted pair, and write its 1/n and bonus, by one thread."""
        visits = run.visits[pair] + more
        n = visits + numbers[PLACE.prior_visits]
        radius = (numbers[PLACE.iterated], numbers[PLACE.log], numbers[PLACE.radius_cap])
        phi = confidence_radius(n, *radius)
        sums = (roots, deviations, numbers[PLACE.root], numbers[PLACE.dev])
        beta = bonus(phi, *sums, numbers[PLACE.flat], numbers[PLACE.tail])
        run.visits[pair] = visits
        run.inverse[pair] = inverse_of(numbers, visits)
        run.bonus[pair] = real(unvisited_bonus(beta, visits, numbers[PLACE.unvisited_extra]))

    return tally, settle
