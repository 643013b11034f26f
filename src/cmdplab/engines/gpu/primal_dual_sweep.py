"""The backward sweep of an episode, which evaluates the policy pi^k and replaces it.

It evaluates pi^k on the counts and on the true kernel. The values of the next step lie in shared
memory, in two places by turns, so that a step has one barrier. primal_dual_steps.py defines the
index letters and the arguments.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba.extending import register_jitable

from cmdplab.engines.gpu.device import simulated
from cmdplab.engines.gpu.formulas import formulas
from cmdplab.engines.gpu.primal_dual_steps import PLACE

# Numba infers the types of these functions; primal_dual_steps.py names the shapes.


def sweeping(form, real, exchange):
    """Make the functions that begin a sweep, and evaluate and improve the policy at a step."""
    X, H, R = form.states, form.horizon, form.rewards
    W, J, S, row, threads = form.lanes, form.each, form.span, form.row, form.threads
    halvings, share = W.bit_length() - 1, real(1.0 / form.actions)
    turns, rest = divmod(X, 6)
    pairs, zero = J * R, real(0.0)
    eq = formulas(real)
    action_value, bonus_weight, value_cap = eq.action_value, eq.bonus_weight, eq.value_cap
    mixed_policy, policy_logit, policy_term = eq.mixed_policy, eq.policy_logit, eq.policy_term
    reward_temperature = eq.reward_temperature

    @register_jitable
    def over_actions(each):
        """Return the sum of `each` over the lanes of a state."""
        for half in range(halvings):
            each += exchange(each, W >> (half + 1))
        return each

    @register_jitable
    def highest(each):
        """Return the maximum of `each` over the lanes of a state."""
        for half in range(halvings):
            each = max(each, exchange(each, W >> (half + 1)))
        return each

    @register_jitable
    def add_next(run, world, at, ahead, values, here, space):
        """Add counts V~ to `seen` and P V to `true`, for a next state with V~, V in `values`."""
        mine, theirs = at + np.uint64(ahead * row), here + np.uint64(ahead * 2 * R)
        for n in range(2 * R):
            space.value[n] = values[theirs + np.uint64(n)]
        for j in range(J):
            place = mine + np.uint64(j * S)
            count, p = real(streamed(run.counts, place)), world.kernel[place]
            for n in range(R):
                space.seen[j * R + n] += count * space.value[n]
                space.true[j * R + n] += p * space.value[R + n]

    @register_jitable
    def products(run, world, h, s, values, here, space):
        """Write sums over next states to `seen` and `true`, for actions and rewards of a thread.

        Six next states per turn are written out. The compiler would not unroll a loop of six, and a
        thread would wait for each of its loads. Unsigned places need no test for being negative.
        """
        for m in range(pairs):
            space.seen[m] = zero
            space.true[m] = zero
        at, here = np.uint64(h * X * row + s), np.uint64(here)
        for _ in range(turns):
            add_next(run, world, at, 0, values, here, space)
            add_next(run, world, at, 1, values, here, space)
            add_next(run, world, at, 2, values, here, space)
            add_next(run, world, at, 3, values, here, space)
            add_next(run, world, at, 4, values, here, space)
            add_next(run, world, at, 5, values, here, space)
            at += np.uint64(6 * row)
            here += np.uint64(12 * R)
        for _ in range(rest):
            add_next(run, world, at, 0, values, here, space)
            at += np.uint64(row)
            here += np.uint64(2 * R)

    @register_jitable
    def evaluate(run, world, numbers, tau, lam, h, s, space):
        """Write Q~_h to `seen`, V~_h and V_h to `value`, Q~^0 + sum_n lambda^n Q~^n to `total`."""
        weighting = real(numbers[PLACE.entropy_weighting])
        scale = real(numbers[PLACE.bonus_multiplier])
        entropy, log_actions = (
            real(numbers[PLACE.bonus_entropy]),
            real(numbers[PLACE.log_actions]),
        )
        left = real(H - h)
        for n in range(2 * R):
            space.value[n] = zero
        for j in range(J):
            i = np.uint64(h * row + j * S + s)
            p, log_p, beta = run.policy[i], run.log_policy[i], run.bonus[i]
            space.total[j] = world.closed[i]
            for n in range(R):
                soft = real(reward_temperature(n, tau))
                weight = real(bonus_weight(scale, soft, entropy))
                cap = real(value_cap(left, soft, log_actions))
                r = world.reward[np.uint64(n * H * row) + i]
                reached = space.seen[j * R + n] * run.inverse[i]
                q = action_value(r, weight, beta, reached, cap)
                space.seen[j * R + n] = q
                space.total[j] += real(lam[n]) * q
                space.value[n] += real(policy_term(p, log_p, q, soft, weighting))
                space.value[R + n] += p * (r + space.true[j * R + n])

    @register_jitable
    def step_policy(run, numbers, eta, tau, h, s, live, space):
        """Step the policy by `total`, in log space, and leave the new policy in `true`."""
        top, mass = real(-np.inf), zero
        for j in range(J):
            i = np.uint64(h * row + j * S + s)
            log_p = run.log_policy[i]
            if numbers[PLACE.mixing] > 0.0:
                theta = real(numbers[PLACE.mixing])
                log_p = real(math.log(mixed_policy(run.policy[i], theta, share)))
            space.total[j] = real(policy_logit(log_p, eta, tau, space.total[j]))
            top = max(top, space.total[j])
        top = highest(top)
        for j in range(J):
            space.true[j] = math.exp(space.total[j] - top)
            mass += space.true[j]
        mass = over_actions(mass)
        top += math.log(mass)
        mass = real(1.0) / mass
        for j in range(J):
            i = np.uint64(h * row + j * S + s)
            space.true[j] *= mass
            if live:
                run.log_policy[i] = space.total[j] - top
                run.policy[i] = space.true[j]

    @register_jitable
    def look_ahead(n, space):
        """Return the mean of Q~ of reward n under the new policy, over the actions of a state."""
        averaged = zero
        for j in range(J):
            averaged += space.true[j] * space.seen[j * R + n]
        return over_actions(averaged)

    @register_jitable
    def improve(run, world, numbers, steps, lam, h, t, values, here, there, ahead, start, space):
        """Sweep one step for the states of a thread, from `here` in `values` to `there`.

        The policy is evaluated and replaced. At the first step, `ahead` gets `look_ahead` of the
        start.
        """
        eta, tau = real(steps[0]), real(steps[2])
        for place in range(t, t + S, threads):
            live = place < S
            s = place if live else place % W  # exchanges need all threads of a warp
            products(run, world, h, s, values, here, space)
            evaluate(run, world, numbers, tau, lam, h, s, space)
            step_policy(run, numbers, eta, tau, h, s, live, space)
            x = s // W
            first = live and s % W == 0 and x < X
            for n in range(2 * R):
                value = over_actions(space.value[n])
                if first:
                    values[there + x * 2 * R + n] = value
            if h == 0:
                for n in range(1, R):
                    seen = look_ahead(n, space)
                    if first and x == start:
                        ahead[n] = seen

    @register_jitable
    def begin(run, numbers, tau, t, values, here):
        """Write V_{H+1}: zero, or the entropy of pi_H if the algorithm uses terminal entropy."""
        soft = real(tau * numbers[PLACE.terminal_entropy])
        weighting = real(numbers[PLACE.entropy_weighting])
        for place in range(t, t + S, threads):
            live = place < S
            s = place if live else place % W
            entropy = zero
            for j in range(J):
                i = np.uint64((H - 1) * row + j * S + s)
                p, log_p = run.policy[i], run.log_policy[i]
                entropy += real(policy_term(p, log_p, zero, soft, weighting))
            entropy = over_actions(entropy)
            x = s // W
            if live and s % W == 0 and x < X:
                for n in range(2 * R):
                    values[here + x * 2 * R + n] = entropy if n == 0 else zero

    return begin, improve


_LOAD = "ld.global.L1::no_allocate.b32 $0, [$1];"


def _plain(array: Any, place: Any) -> Any:
    return array[place]


def _intrinsic() -> Any:
    from llvmlite import ir
    from numba.cuda.extending import intrinsic

    @intrinsic
    def streamed(typing: Any, array: Any, place: Any) -> Any:
        """Return array[place] of 32-bit whole numbers without the first-level cache."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            whole = context.get_value_type(signature.return_type)
            held = context.make_array(signature.args[0])(context, builder, value=values[0])
            pointer = builder.gep(held.data, [values[1]])
            kind = ir.FunctionType(whole, [pointer.type])
            load = ir.InlineAsm(kind, _LOAD, "=r,l", side_effect=True)
            return builder.call(load, [pointer])

        return array.dtype(array, place), generate

    return streamed


streamed = _plain if simulated() else _intrinsic()
