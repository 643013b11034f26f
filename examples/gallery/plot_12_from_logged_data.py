"""
Can I trust a policy from logged data?
======================================

A model is estimated from logged episodes. `solve` uses the estimate, and `solve_robust` requires
the constraint on every kernel that the data allow. With 300 episodes no policy is certainly
feasible. With more episodes the robust policy earns more.
"""

import matplotlib.pyplot as plt
import numpy as np

import cmdplab

kernel = np.array([[[0.9, 0.1], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]])
reward, cost, H = np.array([[0.4, 1.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [1.0, 1.0]]), 5


def logged(episodes, rng):
    """Draw episodes of a uniform policy: state, action, reward, cost, next state."""
    found = []
    for _ in range(episodes):
        x, steps = 0, []
        for _ in range(H):
            a = int(rng.integers(2))
            y = int(rng.random() < kernel[x, a, 1])
            steps.append((x, a, reward[x, a], cost[x, a], y))
            x = y
        found.append(steps)
    return found


rng, sizes = np.random.default_rng(0), (300, 1_000, 3_000, 10_000, 30_000)
believed, robust = [], []
for size in sizes:
    data = cmdplab.from_trajectories(logged(size, rng), horizon=H, costs={"broken": 0.8})
    believed.append(cmdplab.solve(data.problem).value)
    found = cmdplab.solve_robust(data.problem, data.box)
    robust.append(found.value if found.feasible else np.nan)

axes = plt.figure(figsize=(6, 3.4), layout="constrained").subplots()
axes.semilogx(sizes, believed, "o-", label="solve: the estimate is believed")
axes.semilogx(sizes, robust, "s-", label="solve_robust: kept on every plausible kernel")
axes.set_xlabel("logged episodes")
axes.set_ylabel("guaranteed value")
axes.legend(frameon=False)
plt.show()
