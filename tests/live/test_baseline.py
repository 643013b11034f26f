"""Safe algorithms on live environments: a baseline that its own episodes certify."""

from __future__ import annotations

import math

import numpy as np
import pytest
from live_envs import Lever, Walk

from cmdplab import InputError, Policy, learn
from cmdplab.live import Baseline
from cmdplab.live.model.baseline import bernstein_low

SAFE = ("DOPE", "OptPress-LP")


def pulling(share, horizon=4):
    return np.broadcast_to([1.0 - share, share], (horizon, 1, 2))


TOLD = {"horizon": 4, "budget": 2.0, "episodes": 60, "evaluate": 0}


def test_the_bound_is_the_one_that_was_printed():
    """Ten values with mean 1/2 and sample variance 5/18, range 1, delta 2/e: the logarithm is 1."""
    values = np.array([0.0] * 5 + [1.0] * 5)
    expected = 0.5 - math.sqrt(2.0 * (5 / 18) / 10) - 7.0 / 27.0
    assert bernstein_low(values, 1.0, 2.0 / math.e) == pytest.approx(expected)


def test_the_bound_holds_as_often_as_it_says():
    rng = np.random.default_rng(0)
    samples = rng.binomial(4, 0.1, size=(2000, 50)).astype(float)
    missed = np.mean([bernstein_low(each, 4.0, 0.05) > 0.4 for each in samples])
    assert missed <= 0.05


@pytest.mark.parametrize("name", SAFE)
@pytest.mark.parametrize("baseline", [pulling(0.1), Policy(np.array([[0.9, 0.1]]))])
def test_a_baseline_is_certified_by_playing_it_and_learned_from(name, baseline, tmp_path):
    told = TOLD | {"checkpoint": tmp_path}
    learned = learn(Lever(), name, baseline=Baseline(baseline, episodes=200), **told)
    assert "The baseline has cost at most" in learned.summary()
    assert "with confidence 0.95, from 200 episodes that were played" in learned.summary()
    assert learned.seen.episodes == 260
    assert learned.state.baseline_episodes > 0
    again = learn(
        Lever(), name, baseline=Baseline(baseline, episodes=200), **(told | {"episodes": 80})
    )
    assert again.seen.episodes == 280  # the baseline is not certified twice


@pytest.mark.parametrize("name", SAFE)
def test_a_log_of_the_baseline_certifies_it(name):
    log = [[(0, 0, 0.0, 0.0, 0)] * 4] * 100
    learned = learn(Lever(), name, baseline=Baseline(pulling(0.0), data=log), **TOLD)
    assert "from 100 episodes that were logged" in learned.summary()
    # Nothing varies, so that only the last term is left: 7 * 4 ln(40) / (3 * 99).
    bound = 7.0 * 4.0 * math.log(40.0) / (3.0 * 99.0)
    assert f"cost at most {bound:.4g}" in learned.summary()


def test_several_starts_and_units_of_ones_own():
    """Three states to go up; the baseline stays. Costs are counted in cents."""

    class Cents(Walk):
        def step(self, action):
            *rest, info = super().step(action)
            return *rest, {"cost": 100.0 * info["cost"]}

    told = {
        "horizon": 4,
        "budget": 200.0,
        "cost_range": (0.0, 100.0),
        "episodes": 20,
        "evaluate": 0,
    }
    stay = Policy(np.tile([1.0, 0.0], (3, 1)))
    learned = learn(Cents((5, 6)), "OptPress-LP", baseline=Baseline(stay, episodes=300), **told)
    bound = 100.0 * 7.0 * 4.0 * math.log(40.0) / (3.0 * 299.0)
    assert f"cost at most {bound:.4g}" in learned.summary()


@pytest.mark.parametrize(
    ("baseline", "sentence"),
    [
        (None, "DOPE needs a safe policy to begin with: pass baseline="),
        (pulling(1.0), r"cannot be certified: 1,000 episodes say cost 4, .*at most 2 is wanted"),
        (Baseline(pulling(0.1), episodes=5), "cannot be certified: 5 episodes"),
        (Baseline(pulling(0.1), confidence=1.0), "confidence of the baseline is 1, outside"),
        (pulling(0.1, 3), r"the baseline has the shape \(3, 1, 2\), not \(4, 1, 2\)"),
        (np.full((4, 1, 2), 0.4), "sums to 0.8"),
        (Baseline(pulling(0.0), data=[[(0, 0, 0.0, 0.0, 0)]]), "at least two episodes"),
    ],
)
def test_a_baseline_that_cannot_be_certified_is_refused(baseline, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        learn(Lever(), "DOPE", baseline=baseline, **TOLD)
    assert len(str(caught.value).splitlines()) == 1


def test_an_algorithm_that_needs_none_takes_none():
    with pytest.raises(InputError, match="OptCMDP takes no baseline"):
        learn(Lever(), "OptCMDP", baseline=pulling(0.1), **TOLD)
