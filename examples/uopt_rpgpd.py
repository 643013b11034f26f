"""UOpt-RPGPD in one file: the formulas of the paper as it prints them, in NumPy.

    python examples/uopt_rpgpd.py [EPISODES]        writes uopt_rpgpd.png

Kitamura et al. (2024), arXiv:2401.17780. cmdplab gives the problem and its optimum, nothing else.
Two places where the text leaves a choice, as in the preset `printed` (docs/deviations.md):

- n^k counts episode k too (Section 3), so episode k is played before line 5, not in line 10;
- the experiment multiplies every bonus by `scale`. The unscaled bonus of an unvisited pair exceeds
  the cap of Algorithm 2, so unvisited pairs stay at that cap.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import cmdplab

Draw = Callable[[int], np.ndarray]
"""Return the uniforms [H, 2] of episode k: one for the action and one for the next state."""


def bonus(n: np.ndarray, estimate: np.ndarray, delta: float) -> np.ndarray:
    """Eq. 3: beta [H, X, A] from visits n [H, X, A] and the estimate Pbar [H, X, A, X]."""
    H, X, A = n.shape
    llnp = np.log(np.log(np.maximum(2.0 * n, np.e)))
    phi = np.sqrt((2.0 * llnp + 2.0 * np.log(48.0 * X**2 * A * H / delta)) / np.maximum(n, 1.0))
    return np.sum(np.sqrt(4.0 * estimate) * phi[..., None] + 5.0 * phi[..., None] ** 2, axis=-1)


def evaluate(
    r: np.ndarray,
    beta: np.ndarray,
    estimate: np.ndarray,
    log_policy: np.ndarray,
    tau: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Algorithm 2, RegularizedPolicyEvaluation: Q~ [H, X, A] and V~ [H + 1, X]."""
    H, X, A = r.shape
    policy = np.exp(log_policy)
    q, v = np.empty((H, X, A)), np.zeros((H + 1, X))  # line 2
    soft = 1.0 + tau * np.log(A)
    for h in reversed(range(H)):  # line 3; H - h of Python is H - h + 1 of the paper
        ahead = r[h] + soft * H * beta[h] + estimate[h] @ v[h + 1]
        q[h] = np.minimum(ahead, soft * (H - h))  # line 4
        v[h] = np.sum(policy[h] * (q[h] - tau * log_policy[h]), axis=-1)  # line 5
    return q, v


def roll_out(problem: cmdplab.CMDP, policy: np.ndarray, n: np.ndarray, u: np.ndarray) -> None:
    """Play one episode by inverse distribution functions and count n(h, x, a, y)."""
    x = problem.start
    for h, (first, second) in enumerate(u):
        a = min(np.searchsorted(np.cumsum(policy[h, x]), first, "right"), policy.shape[2] - 1)
        y = np.searchsorted(np.cumsum(problem.transition[h, x, a]), second, "right")
        y = min(y, problem.states - 1)
        n[h, x, a, y] += 1.0
        x = y


def returns(problem: cmdplab.CMDP, policy: np.ndarray) -> np.ndarray:
    """Return the exact values V(x_1) [1 + N] of a policy under the true kernel."""
    values = np.zeros((1 + problem.constraints, problem.states))
    for h in reversed(range(problem.horizon)):
        q = problem.reward[:, h] + np.einsum("xay,ny->nxa", problem.transition[h], values)
        values = np.einsum("xa,nxa->nx", policy[h], q)
    return values[:, problem.start]


def uopt_rpgpd(  # Algorithm 1
    problem: cmdplab.CMDP,
    slater_gap: float,
    episodes: int,
    draw: Draw,
    *,
    delta: float = 0.1,
    alpha_eta: float = 0.53,
    alpha_tau: float = 0.4,
    scale: float = 1e-3,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact values [K, 1 + N] of the policies played, and the multipliers [K, N]."""
    H, X, A, N = problem.horizon, problem.states, problem.actions, problem.constraints
    r, b, x_1 = problem.reward, problem.threshold, problem.start
    multiplier = np.zeros(N)  # line 2
    log_policy = np.full((H, X, A), -np.log(A))
    counts = np.zeros((H, X, A, X))
    values, multipliers = np.empty((episodes, 1 + N)), np.empty((episodes, N))
    for k in range(1, episodes + 1):  # line 4
        policy = np.exp(log_policy)
        values[k - 1] = returns(problem, policy)
        roll_out(problem, policy, counts, draw(k))  # line 10, of pi^k
        n = counts.sum(axis=-1)
        estimate = counts / np.maximum(n, 1.0)[..., None]

        eta, tau = (k + 3.0) ** -alpha_eta, (k + 3.0) ** -alpha_tau  # line 3
        beta = scale * bonus(n, estimate, delta)  # line 5
        beta[n == 0.0] = np.inf  # the cap, whatever the scale
        q, _ = evaluate(r[0], beta, estimate, log_policy, tau)  # line 6
        ahead = np.empty(N)
        for i in range(N):  # line 7
            q_i, v_i = evaluate(r[i + 1], beta, estimate, log_policy, 0.0)
            q = q + multiplier[i] * q_i  # line 8
            ahead[i] = v_i[0, x_1]

        logits = (1.0 - eta * tau) * log_policy + eta * q  # Eq. 4 (line 9)
        logits -= logits.max(axis=-1, keepdims=True)
        log_policy = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
        stepped = multiplier + eta * (b - ahead - tau * multiplier)  # Eq. 5 (line 9)
        multiplier = np.clip(stepped, 0.0, H * (1.0 + tau * np.log(A)) / slater_gap)
        multipliers[k - 1] = multiplier
    return values, multipliers


def main(episodes: int) -> None:
    """Learn the published CMDP and draw both errors of every policy played."""
    import matplotlib.pyplot as plt

    problem = cmdplab.make("published")
    best = cmdplab.solve(problem)
    generator = np.random.default_rng(0)
    values, _ = uopt_rpgpd(
        problem, best.slater_gap, episodes, lambda k: generator.random((problem.horizon, 2))
    )
    gap, violation = best.value - values[:, 0], problem.threshold[0] - values[:, 1]
    print(f"episode {episodes:,}: gap {gap[-1]:+.3f}, violation {violation[-1]:+.3f}")
    figure, axes = plt.subplots(figsize=(6.0, 3.5), layout="constrained")
    axes.plot(gap, label="optimality gap")
    axes.plot(violation, label="constraint violation", linestyle="--")
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set(xlabel="episode", ylabel="reward per episode", title="UOpt-RPGPD as printed")
    axes.legend()
    figure.savefig("uopt_rpgpd.png", dpi=150)


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 3_000)
