"""The order of samples: every sample once an epoch, computed at any place, and without a pattern."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.trainer_probe.data.order import SampleOrder

NUM_SAMPLES = st.integers(1, 2000)
SEEDS = st.integers(0, 2**63 - 1)


@given(num_samples=NUM_SAMPLES, seed=SEEDS, epoch=st.integers(0, 10**6))
def test_an_epoch_has_every_sample_once(num_samples: int, seed: int, epoch: int) -> None:
    """Whatever the number of samples: those outside it are walked past."""
    places = np.arange(num_samples) + epoch * num_samples
    assert sorted(SampleOrder(num_samples, seed).samples(places).tolist()) == list(range(num_samples))


@given(num_samples=NUM_SAMPLES, seed=SEEDS, data=st.data())
def test_a_place_does_not_depend_on_what_is_asked_with_it(num_samples: int, seed: int, data: st.DataObject) -> None:
    """So a training that is taken up again sees what it would have seen."""
    order = SampleOrder(num_samples, seed)
    places = data.draw(st.lists(st.integers(0, 5 * num_samples), min_size=1, max_size=20))
    together = order.samples(np.array(places)).tolist()
    assert together == [order.samples(np.array([place])).item() for place in places]


def test_epochs_and_seeds_differ() -> None:
    """Of 1000 samples two independent orders agree at one place, on average."""
    places = np.arange(1000)
    first = SampleOrder(1000, 1).samples(places)
    assert (first == SampleOrder(1000, 1).samples(places + 1000)).sum() < 10
    assert (first == SampleOrder(1000, 2).samples(places)).sum() < 10
    assert (first == places).sum() < 10


def test_every_sample_is_as_likely_at_every_place() -> None:
    """600 seeds over 6 samples: chi-square of the 6 x 6 counts has 25 degrees, so below 25 + 4 * sqrt(50) = 53."""
    counts = np.zeros((6, 6))
    for seed in range(600):
        counts[np.arange(6), SampleOrder(6, seed).samples(np.arange(6))] += 1
    assert ((counts - 100) ** 2 / 100).sum() < 53


def test_neighbours_do_not_stay_neighbours() -> None:
    """Of 100,000 samples one pair, on average, stands in its old order side by side; Poisson of mean 1 is below 8."""
    found = SampleOrder(100_000, 7).samples(np.arange(100_000))
    assert (np.diff(found) == 1).sum() < 8


def test_a_long_order_takes_no_memory() -> None:
    """10**15 samples, the last places of the first epoch and the first of the next."""
    num_samples = 10**15
    found = SampleOrder(num_samples, 3).samples(np.array([num_samples - 1, num_samples, num_samples + 1]))
    assert ((found >= 0) & (found < num_samples)).all()
    assert len(set(found.tolist())) == 3
