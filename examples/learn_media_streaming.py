"""Learn media streaming with three algorithms, without knowing kernel or rewards."""

import os

import gymnasium

import cmdplab
from cmdplab.live import shown

EPISODES = int(os.environ.get("EPISODES", "200000"))
SETTINGS = {"UOpt-RPGPD": {}, "OptCMDP": {"bonus_scale": 0.05}, "Triple-Q": {}}

# The environment returns its cost: 1 for every step on the fast link, with a budget of 5.
env = gymnasium.make("cmdplab.gym:cmdplab/MediaStreaming-v0", disable_env_checker=True)
for name, settings in SETTINGS.items():
    row = cmdplab.algorithm(name).with_settings(**settings, tuned_for=EPISODES)
    told = {"horizon": 10, "budget": 5.0, "episodes": EPISODES, "evaluate": min(10_000, EPISODES)}
    with shown(name) as on_progress:
        learned = cmdplab.learn(env, row, on_progress=on_progress, **told)
    print(learned.summary(), f"({learned.seconds:.0f} s of learning)", sep="\n", end="\n\n")
print(f"the certified optimum: {cmdplab.solve(cmdplab.make('media-streaming')).value:.4f}")
