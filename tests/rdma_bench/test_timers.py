"""The retransmission timers, with the arithmetic of each figure."""

import math

import pytest

from foundation.errors import InputError
from rdma_bench.timers import (
    CONNECTX_6,
    NOMINAL,
    SOFT_ROCE,
    TIMER_MODELS,
    RetransmissionSpec,
    nominal_timeout_ns,
    predict_detection,
    survives_flap,
)

SECOND_NS = 10**9


def test_timeout_14_is_67_milliseconds():
    """4,096 ns * 2**14 = 67,108,864 ns."""
    assert nominal_timeout_ns(14) == 67_108_864


def test_a_timeout_of_zero_waits_for_ever():
    """The standard gives exponent 0 the meaning of no timer at all; a floor does not change that."""
    spec = RetransmissionSpec(timeout_exponent=0)
    for model in TIMER_MODELS.values():
        assert predict_detection(spec, model).after_ns == math.inf
        assert survives_flap(3600 * SECOND_NS, spec, model)


def test_exponents_below_the_floor_behave_like_the_floor():
    """ConnectX-6: T 8 to 16 all wait 2 * 4.096 us * 2**16 = 536.87 ms."""
    detections = {
        predict_detection(RetransmissionSpec(timeout_exponent=exponent), CONNECTX_6).after_ns
        for exponent in range(8, 17)
    }
    assert len(detections) == 1
    assert predict_detection(RetransmissionSpec(timeout_exponent=8), CONNECTX_6).interval_ns == 2 * 4096 * 2**16


def test_measured_interval_is_twice_the_nominal_above_the_floor():
    """T 20: 2 * 4.295 s."""
    detection = predict_detection(RetransmissionSpec(timeout_exponent=20), CONNECTX_6)
    assert detection.interval_ns == 2 * nominal_timeout_ns(20)


def test_a_45_second_flap_survives_on_the_adapter_but_not_by_the_document():
    """T 20, R 7: the document gives 30.1 s, the adapter 59.8 s."""
    spec = RetransmissionSpec(timeout_exponent=20, retries=7)
    assert survives_flap(45 * SECOND_NS, spec, CONNECTX_6)
    assert not survives_flap(45 * SECOND_NS, spec, NOMINAL)
    assert not survives_flap(60 * SECOND_NS, spec, CONNECTX_6)


def test_soft_roce_waits_once_more_than_it_retries():
    """T 14, R 3: four waits of 67.1 ms."""
    spec = RetransmissionSpec(timeout_exponent=14, retries=3)
    assert predict_detection(spec, SOFT_ROCE).after_ns == 4 * 67_108_864


def test_soft_roce_takes_seven_retries_for_no_limit():
    """rdma_rxe reads 7 as endless, which the standard does not."""
    assert predict_detection(RetransmissionSpec(timeout_exponent=14, retries=7), SOFT_ROCE).after_ns == math.inf


@pytest.mark.parametrize(
    ("exponent", "model", "confidence"),
    [(20, CONNECTX_6, "measured"), (22, CONNECTX_6, "extrapolated"), (22, NOMINAL, "documented")],
)
def test_a_prediction_says_how_far_to_trust_it(exponent, model, confidence):
    """The adapter was tried up to T 20; T 22 is arithmetic."""
    assert predict_detection(RetransmissionSpec(timeout_exponent=exponent), model).confidence == confidence


def test_an_impossible_retry_count_is_refused():
    """The field has three bits; 15 is a common mistake."""
    with pytest.raises(InputError) as raised:
        RetransmissionSpec(retries=15)
    assert str(raised.value) == "retries: 15\n  allowed: 0 to 7"


def test_no_prediction_where_the_model_says_nothing():
    """With R 0 the measured adapter still retransmits, but when it gives up was not measured."""
    with pytest.raises(InputError) as raised:
        predict_detection(RetransmissionSpec(retries=0), CONNECTX_6)
    assert str(raised.value) == "retries: 0\n  allowed: 1 or more, for connectx-6"
