"""Names of counters have the class, unit and width that their drivers give them."""

import pytest

from fabrictune.rdma_bench.counters.catalog import NOT_KNOWN, CounterClass, meaning_of


@pytest.mark.parametrize(
    ("name", "counter_class"),
    [
        ("local_ack_timeout_err", CounterClass.TIMEOUT_RETRANSMISSION),
        ("to_retransmits", CounterClass.TIMEOUT_RETRANSMISSION),
        ("retrans_timeout_events", CounterClass.TIMEOUT_RETRANSMISSION),
        ("packet_seq_err", CounterClass.SEQUENCE_ERROR),
        ("seq_err_naks_rcvd", CounterClass.SEQUENCE_ERROR),
        ("out_of_seq_request", CounterClass.SEQUENCE_ERROR),
        ("rnr_nak_retry_err", CounterClass.RECEIVER_NOT_READY),
        ("rp_cnp_handled", CounterClass.CNP_HANDLED),
        ("rx_cnp_pkts", CounterClass.CNP_HANDLED),
        ("np_cnp_sent", CounterClass.CNP_SENT),
        ("vport_out_of_buffer", CounterClass.OUT_OF_BUFFER),
        ("rx_prio3_pause", CounterClass.PAUSE_RECEIVED),
        ("tx_prio7_pause_duration", CounterClass.TIME_PAUSING),
        ("rx_err_lane_3_phy", CounterClass.PHYSICAL_ERROR),
        ("VL15_dropped", CounterClass.DISCARD),
        ("PortXmitWait", CounterClass.WAIT),
    ],
)
def test_the_same_event_has_one_class_whatever_its_driver(name: str, counter_class: CounterClass) -> None:
    """mlx5, bnxt_re, EFA and rxe; a digit stands for any priority or lane."""
    assert meaning_of(name).counter_class == counter_class


@pytest.mark.parametrize("name", ["rx_prio3", "rx_priox_pause", "made_up", "", "out_of_buffer2"])
def test_a_name_that_no_driver_has_is_not_known(name: str) -> None:
    """Nothing is guessed from a part of a name."""
    assert meaning_of(name) is NOT_KNOWN


def test_widths_and_units_follow_the_form() -> None:
    """Data count words of 4 bytes; 32 bits that stay without -x, 64 with; queue counters of mlx5 wrap at 2^32."""
    assert meaning_of("port_xmit_data").factor == 4
    narrow, wide = (meaning_of("PortXmitData", is_extended=given) for given in (False, True))
    assert (narrow.bits, narrow.saturates, narrow.factor) == (32, True, 4)
    assert (wide.bits, wide.saturates) == (64, False)
    assert (meaning_of("LinkDownedCounter", is_extended=False).bits, meaning_of("LinkDownedCounter").bits) == (8, 8)
    assert meaning_of("LinkDownedCounter", is_extended=True).bits == 64
    assert (meaning_of("out_of_buffer").bits, meaning_of("out_of_buffer").saturates) == (32, False)
    assert meaning_of("rx_prio3_pause_duration").unit == "us"
