"""Solve the problem of a robot with a battery and a budget of energy."""

import numpy as np

import cmdplab

HORIZON, CHARGE = 12, 6  # steps, battery levels 0..5
REST, WALK, RUN = range(3)

kernel = np.zeros((CHARGE, 3, CHARGE))
delivered = np.zeros((HORIZON, CHARGE, 3))
spent = np.zeros((1, HORIZON, CHARGE, 3))
for level in range(CHARGE):
    kernel[level, REST, min(level + 1, CHARGE - 1)] = 1.0
    kernel[level, WALK, max(level - 1, 0)] += 0.7
    kernel[level, WALK, level] += 0.3
    kernel[level, RUN, max(level - 2, 0)] = 1.0
    if level > 0:  # an empty robot delivers nothing
        delivered[:, level, WALK], delivered[:, level, RUN] = 0.5, 1.0
spent[..., WALK], spent[..., RUN] = 0.4, 1.0

problem = cmdplab.CMDP.from_costs(kernel, delivered, spent, budget=[4.0], start=5, name="robot")
told = cmdplab.describe(problem)
print(f"deliveries: {told.unconstrained_optimum:.3f} without a budget, {told.optimum:.3f} with it")
(choice,) = told.ranges  # how to choose the budget: what each costs, and the price of one more unit
for threshold, value, price in zip(choice.threshold, choice.value, choice.multiplier, strict=True):
    print(f"  budget {HORIZON - threshold:6.3f}: {value:.3f} delivered, {price:.3f} a unit")

run = cmdplab.run(problem, cmdplab.algorithm("UOpt-RPGPD"), episodes=20_000, seed=0)
value, utility = cmdplab.evaluate(problem, run.state.policy).returns
print(f"learned: {value:.3f} delivered, {HORIZON - utility:.3f} of 4 spent")
