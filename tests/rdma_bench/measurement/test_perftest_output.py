"""What perftest 6.06 (Debian's 4.5+0.17) printed on a soft-RoCE device is read to the digit."""

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.rdma_bench.measurement.perftest_output import read_bandwidth_bps, read_counter_changes, read_latency_ns

RULE = "-" * 87 + "\n"
HEAD = RULE + " GID index       : 1\n Max inline data : 0[B]\n" + RULE
BANDWIDTH_GBITS = (
    HEAD
    + " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    + " 4096       400           0.254014            0.047959            0.001464\n"
    + RULE
)
BANDWIDTH_MB = (
    HEAD
    + " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
    + " 4096       200              29.89              5.26   \t\t   0.001347\n"
    + "\thw_counters/sent_pkts=801\n\thw_counters/rcvd_pkts=201\n\n"
    + RULE
)
LATENCY = (
    HEAD
    + " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]"
    + "   99% percentile[usec]   99.9% percentile[usec] \n"
    + " 4096    200          111.72         32331.96      4536.72  \t       7200.33     \t7452.94\t\t27971.05"
    + " \t\t32331.96\n"
    + RULE
)
NO_JSON = (  # what the option --out_json wrote
    '{\ntest_info: {\nDevice: "rxe_a",\nNumber_of_qps: 2,\nPCIe_relax_order: ON,\nTX_depth : 128,\n},\nresults: {\n'
    "MsgSize: 4096,\nn_iterations: 400,\nBW_peak: 0.254014,\nBW_average: 0.047959,\nMsgRate: 0.001464,\n},\n}\n"
)
NO_JSON_OF_LATENCY = (
    "results: {\nt_min: 111.72,\nt_typical: 4536.72,\npercentile_99: 27971.05,\npercentile_99.9: 32331.96,\n},\n"
)


def test_bandwidth_is_read_in_either_unit() -> None:
    """0.047959 Gb/s; and 5.26 MB/s, which are 2**20 bytes each: 44.1 Mbps."""
    assert read_bandwidth_bps(BANDWIDTH_GBITS) == pytest.approx(47_959_000)
    assert read_bandwidth_bps(BANDWIDTH_MB) == pytest.approx(5.26 * 2**20 * 8)


def test_latency_is_the_typical_one_and_its_99th_percentile() -> None:
    """4536.72 and 27971.05 us."""
    assert read_latency_ns(LATENCY) == pytest.approx((4_536_720.0, 27_971_050.0))


def test_what_calls_itself_json_is_read_though_it_is_none() -> None:
    """Keys without quotes and a comma before the brace; a later version's true JSON has the same names."""
    assert read_bandwidth_bps("", NO_JSON) == pytest.approx(47_959_000)
    assert read_bandwidth_bps("", '{"results": {"BW_peak": 1.5, "BW_average": 1.25, "MsgRate": 0.1}}') == 1.25e9
    assert read_latency_ns("", NO_JSON_OF_LATENCY) == pytest.approx((4_536_720.0, 27_971_050.0))


@pytest.mark.parametrize(
    "text", [BANDWIDTH_GBITS.replace("0.047959", "0.000000"), BANDWIDTH_MB.replace("5.26", "0.00")]
)
def test_a_result_of_nothing_is_none(text: str) -> None:
    """What perftest prints where it cannot calibrate its clock."""
    with pytest.raises(InputError, match="cannot calibrate its clock"):
        read_bandwidth_bps(text)


def test_counters_that_were_asked_for_are_read() -> None:
    """A line each, under the table."""
    assert read_counter_changes(BANDWIDTH_MB) == {"sent_pkts": 801, "rcvd_pkts": 201}


@pytest.mark.parametrize("text", ["", "Couldn't connect to 10.0.0.2:18515\n", " #bytes  #iterations\n 4096 nan\n"])
def test_output_without_the_number_is_an_error(text: str) -> None:
    """Whatever was printed instead."""
    with pytest.raises(InputError) as caught:
        read_bandwidth_bps(text)
    assert caught.value.mistakes[0].found == "no BW_average in what it printed"
