"""Run an ablation of UOpt-RPGPD: its temperature falls faster than the theorem allows."""

from dataclasses import replace

import cmdplab
from cmdplab.algorithms.schedules import Power

problem = cmdplab.make("random-independent", seed=3)
optimum = cmdplab.solve(problem)
uopt = cmdplab.algorithm("UOpt-RPGPD", preset="released")
faster = replace(uopt, name="faster cooling", temperature=Power(0.8))

print(f"optimum {optimum.value:.4f}, multiplier {optimum.multiplier[0]:.3f}")
for row in (uopt, faster):
    run = cmdplab.run(problem, row, episodes=20_000, seed=0, solution=optimum)
    s = run.summary
    print(f"{row.name:16} gap {s.final_gap:+.4f}  violation {s.final_violation:+.4f}")
