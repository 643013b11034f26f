"""Show Appendix C: the optimal multiplier does not determine an optimal policy."""

import numpy as np

import cmdplab
from cmdplab.cmdp.exact import greedy


def show(problem: cmdplab.CMDP, multiplier: float, what: str, policy: np.ndarray) -> None:
    """Print the return, the utility and the Lagrangian of a policy, and its feasibility."""
    value, utility = cmdplab.evaluate(problem, policy).returns
    margin = utility - problem.threshold[0]
    verdict = "feasible" if margin >= -1e-9 else "INFEASIBLE"
    lagrangian = value + multiplier * margin
    print(f"  {what:24} return {value:.4f}  utility {utility:.4f}  L {lagrangian:.4f}  {verdict}")


# One decision: drive fast, slowly, or hesitate. Safety must be at least 0.4 on average.
FAST, SLOW, HESITATE = range(3)
reward = np.array([[[1.0, 0.2, 0.3]], [[0.0, 1.0, 0.3]]])  # [objective and safety, state, action]
problem = cmdplab.CMDP(np.ones((1, 3, 1)), reward, np.array([0.4]), horizon=1, name="driver")
optimum = cmdplab.solve(problem)
multiplier = optimum.multiplier[0]
best, maximiser = greedy(problem, problem.reward[0] + multiplier * problem.reward[1])

print(f"driver: optimum {optimum.value:.4f}, optimal multiplier {multiplier:.4f}, b 0.4")
print(f"  the largest Lagrangian is {best - multiplier * 0.4:.4f}: the optimum, as duality asks")
show(problem, multiplier, "greedy for L", maximiser)
for action, what in ((FAST, "fast"), (SLOW, "slow"), (HESITATE, "hesitate")):
    show(problem, multiplier, f"always {what}", np.eye(3)[[[action]]])
show(problem, multiplier, "optimal", optimum.policy)
share = optimum.policy[0, 0]
print(
    f"  the optimal policy is fast with probability {share[FAST]:.1f}, slow with {share[SLOW]:.1f}"
)

# Figure 1's problem: r^1 = 1 - r^0 and the multiplier is 1, so that L = H - b for every policy.
problem = cmdplab.make("published")
optimum = cmdplab.solve(problem)
multiplier = optimum.multiplier[0]
b = problem.threshold[0]

print(f"published: optimum {optimum.value:.4f}, optimal multiplier {multiplier:.4f}, b {b:.4f}")
print(f"  every policy maximises the Lagrangian: L = H - b = {problem.horizon - b:.4f}")
show(problem, multiplier, "greedy for the return", greedy(problem, problem.reward[0])[1])
show(problem, multiplier, "uniform", np.full_like(optimum.policy, 1 / problem.actions))
show(problem, multiplier, "greedy for the utility", greedy(problem, problem.reward[1])[1])
show(problem, multiplier, "optimal", optimum.policy)
