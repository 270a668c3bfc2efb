"""Flows of SimCCL: messages between ranks as flows between hosts."""

from pathlib import Path

import pytest

from fabrictune.collectives.nccl.simccl_flows import simccl_flows
from fabrictune.foundation.errors import InputError

GOLDEN = Path(__file__).parents[2] / "golden" / "nccl" / "simccl.csv"
HOSTS = ("host0", "host1")


def test_messages_of_a_channel_are_one_flow() -> None:
    """A ring of four ranks on two hosts, 2 channels, 6 messages of 128 KiB from each rank: two of four leave."""
    flows = simccl_flows([GOLDEN], HOSTS)
    assert [flows.label(row) for row in range(len(flows))] == [
        "host0/nic1 to host1/nic0",
        "host1/nic1 to host0/nic0",
    ] * 2
    assert flows.bytes_F.tolist() == [6 * 131072] * 4
    assert flows.origin_F[0] == f"{GOLDEN}:3: channel 0, rank 1 to 2"
    assert flows.notes == (
        "SimCCL: 48 messages as 4 flows between hosts",
        "messages within hosts, left out: 24",
        "the order of messages (prev_flow_ids) is left out: all flows begin at once",
    )


def test_the_columns_of_its_earlier_mode_are_read(tmp_path: Path) -> None:
    """Without algorithm and protocol, as it writes them for NCCL 2.20; what is no number is counted."""
    path = tmp_path / "flows.csv"
    path.write_text(
        "collective,op,data_size,channel_id,flow_id,src,dest,flow_size,chunk_id,chunk_count,conn_type,"
        "parent_flow_ids,prev_flow_ids\n"
        'x,0,8,0,0,0,1,8,0,1,RING,"1,2",\nx,0,8,0,1,one,0,8,0,1,RING,,\n'
    )
    flows = simccl_flows([path], HOSTS)
    assert flows.bytes_F.tolist() == [8]
    assert flows.notes[-1] == "rows without whole numbers in channel_id, src, dest, flow_size, left out: 1"


@pytest.mark.parametrize(("hosts", "found"), [((), "hosts: 0 hosts"), (("a", "b", "c"), "hosts: 4 ranks on 3 hosts")])
def test_ranks_need_hosts(hosts: tuple[str, ...], found: str) -> None:
    """As many on each."""
    with pytest.raises(InputError, match=found):
        simccl_flows([GOLDEN], hosts)


def test_another_table_is_refused(tmp_path: Path) -> None:
    """With the columns that it lacks."""
    path = tmp_path / "flows.csv"
    path.write_text("src,dest\n0,1\n")
    with pytest.raises(InputError, match=r"flows.csv:1: no column channel_id, flow_size"):
        simccl_flows([path], HOSTS)
