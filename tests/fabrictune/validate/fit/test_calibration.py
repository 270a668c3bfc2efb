"""Parameters fitted to series whose truth is known, and the refusals of series that say too little."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.validate.fit.calibration import Calibration, calibrate
from fabrictune.validate.fit.fit import model_all
from fabrictune.validate.fit.series import Series, SeriesKey
from fabrictune.validate.fit.verdicts import Judged, Verdict, judge
from tests.fabrictune.validate.fit.made_up import (
    KNOWN,
    LARGE,
    SIZES,
    SMALL,
    TRUE,
    collective,
    drawn,
    perftest,
    series,
)

NUM_DRAWS = 250
Keys = Sequence[tuple[SeriesKey, Sequence[int]]]
ONE_HOST: Keys = ((collective(8, 1), SIZES),)
HOSTS: Keys = tuple((collective(8 * hosts, hosts), SIZES) for hosts in (2, 4, 8))
PERFTEST: Keys = ((perftest("RDMA_Write BW"), SIZES[:20]), (perftest("RDMA_Write Latency"), SIZES[:20]))


def fitted(made: Sequence[Series]) -> Calibration:
    """Return the fit of series, by rings, on an H100's base."""
    return calibrate(model_all(made, "ring"), KNOWN)


def verdicts(made: Sequence[Series]) -> dict[str, Judged]:
    """Return the judged parameters by name."""
    return {one.estimate.name: one for one in judge(fitted(made))}


@pytest.mark.parametrize("keys", [ONE_HOST, HOSTS, PERFTEST], ids=["one host", "hosts", "perftest"])
def test_times_without_noise_give_back_their_parameters(keys: Keys) -> None:
    """Within the four digits that programs print; a line or three, whatever the number of series."""
    calibration = fitted(drawn(keys, seed=1))
    for estimate in calibration.estimates:
        assert estimate.value == pytest.approx(TRUE[estimate.name], rel=1e-6), estimate.name


@pytest.mark.parametrize("spread", [0.01, 0.05])
@pytest.mark.parametrize(
    "keys",
    [ONE_HOST, ((collective(8, 1), SIZES[::4]),), HOSTS, PERFTEST],
    ids=["one host", "8 sizes", "hosts", "perftest"],
)
def test_intervals_of_90_percent_cover_the_truth_in_85_to_95_percent_of_draws(keys: Keys, spread: float) -> None:
    """A draw has its own noise; segments are found anew in each, and what they cost in coverage counts."""
    num_hit = Counter[str]()
    for seed in range(NUM_DRAWS):
        for estimate in fitted(drawn(keys, seed, spread=spread)).estimates:
            num_hit[estimate.name] += estimate.low <= TRUE[estimate.name] <= estimate.high
    for name, number in num_hit.items():
        assert 0.85 * NUM_DRAWS <= number <= 0.95 * NUM_DRAWS, f"{name}: {number} of {NUM_DRAWS}"


@pytest.mark.parametrize(
    ("sizes", "determined", "open_", "step"),
    [
        (LARGE, "nvlink.collective", "nvlink.latency", "sizes below"),
        (SMALL, "nvlink.latency", "nvlink.collective", "sizes above"),
    ],
    ids=["large", "small"],
)
def test_verdicts_follow_the_sizes(sizes: Sequence[int], determined: str, open_: str, step: str) -> None:
    """Large sizes alone determine no latency, small ones no rate: in each of 200 draws, not in most."""
    for seed in range(200):
        found = verdicts(drawn(((collective(8, 1), sizes),), seed, spread=0.03))
        assert found[open_].verdict == Verdict.NOT
        assert found[determined].verdict == Verdict.WELL
        assert found[open_].next_step.startswith(step) or found[open_].estimate.is_held


def test_all_sizes_determine_both() -> None:
    found = verdicts(drawn(ONE_HOST, seed=3, spread=0.03))
    assert {one.verdict for one in found.values()} == {Verdict.WELL}


def test_a_sum_that_alone_shows_is_held_in_part_and_the_base_s_uncertainty_counts() -> None:
    """One number of hosts: nvlink.latency + 4 steps. The base's 25 us within 25 % are 1.56 us of a step's 7.25."""
    found = verdicts(drawn(((collective(16, 2), SIZES),), seed=1))
    assert found["nvlink.latency"].verdict == Verdict.NOT
    assert found["nvlink.latency"].reason == "only a sum of it and network.latency shows"
    step = found["network.latency"].estimate
    assert step.value == pytest.approx((30e3 + 4 * 6e3 - 25e3) / 4)
    assert (step.high - step.low) / 2 == pytest.approx(25e3 * 0.25 / 4, rel=0.01)
    assert found["network.latency"].verdict == Verdict.WEAK
    assert "the base profile's nvlink.latency" in found["network.latency"].reason


def test_outliers_hardly_move_a_value() -> None:
    """Of 31 times 5 % are 1.4 times as long: plain least squares would be off by 2 % on average, this by 1 %."""
    values = [
        fitted(drawn(ONE_HOST, seed, spread=0.01, outliers=0.05)).estimates[0].value / TRUE["nvlink.latency"]
        for seed in range(100)
    ]
    assert np.mean(values) == pytest.approx(1, abs=0.01)


def test_a_change_of_protocol_is_cut_and_its_ends_have_the_parameters() -> None:
    """From 1 MB on a call costs 200 us and a byte half: latency of the one, rate of the other."""
    times = [20e3 + size / 50 if size < 2**20 else 200e3 + size / 100 for size in SIZES]
    calibration = fitted([series(collective(2, 1), SIZES, times)])
    assert [line.intercept_ns for line in calibration.lines[0]] == pytest.approx([20e3, 200e3], rel=1e-3)
    latency, rate = calibration.estimates
    assert latency.value == pytest.approx(20e3, rel=1e-3)
    assert 1 / rate.value == pytest.approx(100, rel=1e-3)
    assert calibration.time_ns(0, 2**19) == pytest.approx(20e3 + 2**19 / 50, rel=1e-3)
    assert calibration.time_ns(0, 2**20) == pytest.approx(200e3 + 2**20 / 100, rel=1e-3)


def test_reads_of_perftest_cross_the_network_twice() -> None:
    found = fitted(drawn(((perftest("RDMA_Read Latency"), SIZES[:20]),), seed=1))
    assert found.estimates[0].value == pytest.approx(TRUE["network.latency"])


def test_perftest_beside_collectives_between_hosts_has_values_of_its_own() -> None:
    """A message of NCCL's is not one of perftest's; what it costs a sender is perftest's to say."""
    names = [one.name for one in fitted(drawn((*HOSTS, *PERFTEST), seed=1)).estimates]
    assert names == [
        *("nvlink.latency", "network.latency", "network.rate"),
        *("network.message", "wire.rate", "wire.latency"),
    ]


def test_correlation_of_a_latency_and_a_rate_is_negative() -> None:
    """The more of a time its bytes explain, the less its latency does."""
    (correlation,) = fitted(drawn(ONE_HOST, seed=2, spread=0.02)).correlations.values()
    assert -1 < correlation < 0


def test_one_size_is_refused() -> None:
    with pytest.raises(InputError) as error:
        fitted([series(collective(8, 1), [2**20], [1e5]), series(collective(4, 1), [2**20], [1e5])])
    assert str(error.value) == (
        "made-up.txt: one size only, 1.049 MB\n"
        "  allowed: two sizes or more\n"
        "  next: measure from 8 B to 1 GB (-b 8 -e 1G -f 2): a latency and a rate are told apart by sizes"
    )


def test_fewer_points_than_parameters_are_refused() -> None:
    with pytest.raises(InputError) as error:
        fitted(drawn(((collective(16, 2), (8, 2**20)),), seed=1))
    assert str(error.value) == (
        "made-up.txt: 2 points, for 3 parameters: nvlink.latency, network.latency, network.rate\n"
        "  allowed: a point or more for each\n"
        "  next: measure more sizes"
    )


def test_as_many_points_as_parameters_leave_no_error_to_tell_by() -> None:
    found = verdicts(drawn(((collective(8, 1), (8, 2**30)),), seed=1))
    assert {one.verdict for one in found.values()} == {Verdict.NOT}
    assert found["nvlink.latency"].reason == "as many points as numbers fitted: no error is left to tell by"


def test_times_that_grow_faster_than_their_size_are_refused_with_the_sizes() -> None:
    """A latency of -5 us: the smallest sizes are those that it would be the largest part of."""
    sizes = [2**power for power in range(14, 24)]
    with pytest.raises(InputError) as error:
        fitted([series(collective(8, 1), sizes, [size / 2 - 5e3 for size in sizes])])
    text = str(error.value)
    assert "nvlink.latency comes out as a negative latency, -5.0" in text
    assert "most by the sizes 16.38 KB, 32.77 KB, 65.54 KB, 131.1 KB" in text


def test_times_that_fall_as_the_size_grows_are_refused() -> None:
    sizes = [2**power for power in range(20, 30)]
    with pytest.raises(InputError, match=r"nvlink.collective comes out as a negative rate: times that fall"):
        fitted([series(collective(8, 1), sizes, [1e9 - size * 0.5 for size in sizes])])


def test_a_latency_that_noise_makes_negative_is_not_determined() -> None:
    """Of large sizes the intercept is as often below zero as above: that is no mistake of the file's."""
    held = 0
    for seed in range(60):
        one = verdicts(drawn(((collective(8, 1), LARGE),), seed, spread=0.05))["nvlink.latency"]
        assert one.verdict == Verdict.NOT
        held += one.estimate.is_held
        assert not one.estimate.is_held or one.estimate.value == KNOWN["nvlink.latency"].value
    assert held > 0
