"""Axes of a layout in a scenario: collectives along context and expert groups, to the byte."""

from pathlib import Path

import numpy as np
import pytest

from fabrictune.collectives.bounds import bus_factor
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import AXES, ParallelLayout
from fabrictune.foundation.traces import Operation
from fabrictune.scenario.composition import compose
from fabrictune.scenario.files import parse_scenario

# Along other axes the expert degree has no effect, which is said.
pytestmark = pytest.mark.filterwarnings("ignore:.*layout.ep has no effect")
LAYOUT = ParallelLayout(tp=2, cp=2, dp=4, pp=2, ep=2)
TEXT = """name: axes
fabric: {builder: clos, num_hosts: 32, hosts_per_tor_set: 16, nics_per_host: 1, tiers: 2, downlink_split: 1}
traffic: {%s, layout: {tp: 2, cp: 2, dp: 4, pp: 2, ep: 2}}
law: none
"""


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("operation", ["all_to_all", "all_gather"])
def test_a_collective_runs_along_every_axis(axis: str, operation: str) -> None:
    """Every rank sends (n - 1) / n of 6,720 B to its group of n along tp, cp, dp, pp, ep, edp or dp and cp."""
    text = TEXT % f"workload: collective, operation: {operation}, axis: {axis}, message: 6720 B"
    traffic = compose(parse_scenario(text, Path("x.yaml"))).traffic
    groups = LAYOUT.groups(axis)  # type: ignore[arg-type]
    factor = bus_factor(Operation[operation.upper()], groups.shape[1])
    assert np.bincount(traffic.source_N, weights=traffic.bytes_N, minlength=32).tolist() == [6720 * factor] * 32
    group_of = {rank: row for row, ranks in enumerate(groups.tolist()) for rank in ranks}
    nics = compose(parse_scenario(text, Path("x.yaml"))).network.queue_pairs
    host_of_rank = _rank_of_nic()
    pairs = zip(nics.source_nic_Q.tolist(), nics.destination_nic_Q.tolist(), strict=True)
    assert all(group_of[host_of_rank[source]] == group_of[host_of_rank[destination]] for source, destination in pairs)


def _rank_of_nic() -> dict[int, int]:
    """Return the rank of each host of one GPU: tp, cp, dp and then pp are next to one another."""
    position = LAYOUT.coordinates(np.arange(32))
    slot = position["tp"] + 2 * (position["cp"] + 2 * (position["dp"] + 4 * position["pp"]))
    return {int(place): rank for rank, place in enumerate(slot.tolist())}


def test_neighbours_pass_keys_and_values_round_a_context_group() -> None:
    """Two of a group send to one another: 32 messages along cp, and 32 more along ep."""
    text = TEXT % "workload: neighbours, axes: [cp, ep], message: 1 KB"
    assert len(compose(parse_scenario(text, Path("x.yaml"))).traffic) == 64


def test_an_axis_that_there_is_not_is_refused() -> None:
    """With all that there are."""
    with pytest.raises(InputError) as error:
        parse_scenario(TEXT % "workload: collective, operation: all_gather, axis: sp, message: 1 KB", Path("x.yaml"))
    assert "x.yaml:3: traffic.axis: 'sp'" in str(error.value)
    assert "tp, cp, dp, pp, ep, edp, dp_cp" in str(error.value)


def test_experts_divide_the_data_parallel_ranks() -> None:
    """Three do not divide four."""
    with pytest.raises(InputError) as error:
        parse_scenario(
            TEXT.replace("ep: 2}", "ep: 3}") % "workload: collective, operation: all_to_all, axis: ep, message: 1 KB",
            Path("x.yaml"),
        )
    assert "layout.ep: degree 3\n  allowed: a divisor of dp 4" in str(error.value)
