"""Learn Gymnasium's slippery FrozenLake with three algorithms and a budget of energy."""

import os

import gymnasium

import cmdplab
from cmdplab.formats import from_gymnasium
from cmdplab.live import shown

EPISODES = int(os.environ.get("EPISODES", "200000"))
SETTINGS = {"UOpt-RPGPD": {}, "OptCMDP": {"bonus_scale": 0.001}, "Triple-Q": {}}
DOWN, RIGHT = 1, 2


def energy(state, action, *result):
    """Return the energy of an action; left and up cost nothing."""
    return 0.25 if action in (DOWN, RIGHT) else 0.0


env = gymnasium.make("FrozenLake-v1", disable_env_checker=True)
for name, settings in SETTINGS.items():
    row = cmdplab.algorithm(name).with_settings(**settings, tuned_for=EPISODES)
    told = {"horizon": 20, "budget": 0.4, "episodes": EPISODES, "evaluate": min(10_000, EPISODES)}
    with shown(name) as on_progress:
        learned = cmdplab.learn(env, row, cost=energy, on_progress=on_progress, **told)
    print(learned.summary(), f"({learned.seconds:.0f} s of learning)", sep="\n", end="\n\n")
table = from_gymnasium(env, 20, energy, budget=0.4).problem  # of this one the kernel can be had
print(f"the certified optimum: {cmdplab.solve(table).value:.4f}")
