"""Listings of `rdma -j resource show qp`: both ends of a connection found in two hosts' files."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.flows import UNKNOWN
from fabrictune.rdma_bench.resources import ListedQueuePair, listed_flows, read_listing

GSI = {"ifindex": 0, "ifname": "mlx5_0", "port": 1, "lqpn": 1, "type": "GSI", "state": "RTS", "comm": "ib_core"}


def row(lqpn: int, rqpn: int, *, device: str = "mlx5_0", state: str = "RTS") -> dict[str, Any]:
    """Return a connected queue pair as iproute2 prints it."""
    return {
        "ifindex": 0,
        "ifname": device,
        "port": 1,
        "lqpn": lqpn,
        "rqpn": rqpn,
        "type": "RC",
        "state": state,
        "rq-psn": 12474738,
        "sq-psn": 0,
        "path-mig-state": "MIGRATED",
        "pdn": 9,
        "pid": 1523,
        "comm": "python3",
    }


def write(folder: Path, **rows_of_host: list[dict[str, Any]]) -> list[ListedQueuePair]:
    """Return the queue pairs of all hosts, read from a file each."""
    found: list[ListedQueuePair] = []
    for host, rows in rows_of_host.items():
        path = folder / f"{host}.json"
        path.write_text(json.dumps(rows, indent=1))
        found.extend(read_listing(path))
    return found


def test_a_row_says_what_the_kernel_knows_of_a_queue_pair(tmp_path: Path) -> None:
    """Device, port, both numbers, process; a management queue pair has neither other end nor process."""
    connected, management = write(tmp_path, node1=[row(0x45, 0x48), GSI])
    assert (connected.host, connected.device, connected.port, connected.pid) == ("node1", "mlx5_0", 1, 1523)
    assert (connected.local_qpn, connected.remote_qpn, connected.is_connected) == (0x45, 0x48, True)
    assert (management.remote_qpn, management.pid, management.is_connected) == (UNKNOWN, UNKNOWN, False)


def test_two_listings_name_both_ends_and_the_source_port(tmp_path: Path) -> None:
    """Numbers 0x45 and 0x48 swapped: one connection, a flow from each end, source port 0xD368 in both directions."""
    flows = listed_flows(write(tmp_path, node1=[row(0x45, 0x48)], node2=[GSI, row(0x48, 0x45, device="mlx5_3")]))
    assert [flows.label(flow) for flow in range(2)] == ["node1/mlx5_0 to node2/mlx5_3", "node2/mlx5_3 to node1/mlx5_0"]
    assert flows.source_port_F.tolist() == [0xD368, 0xD368]
    assert flows.origin_F == (f"{tmp_path}/node1.json: row 0", f"{tmp_path}/node2.json: row 1")
    assert flows.notes == ()


def test_what_has_no_single_other_end_is_left_out_and_counted(tmp_path: Path) -> None:
    """One end without listing, one in error, and the same two numbers between two pairs of hosts."""
    twins = {"a": [row(7, 8), row(1, 2)], "b": [row(8, 7)], "c": [row(7, 8), row(3, 4, state="ERR")], "d": [row(8, 7)]}
    flows = listed_flows(write(tmp_path, **twins))
    assert len(flows) == 0
    assert flows.notes == (
        "queue pairs whose other end is in no listing, left out: 1",
        "queue pairs whose two numbers fit more than one other end, left out: 4",
    )


def test_equal_numbers_at_both_ends_are_one_connection(tmp_path: Path) -> None:
    """Freshly booted hosts count alike: 5 to 5 on two hosts is a connection, a third such host makes it unclear."""
    assert len(listed_flows(write(tmp_path, a=[row(5, 5)], b=[row(5, 5)]))) == 2
    assert len(listed_flows(write(tmp_path, a=[row(5, 5)], b=[row(5, 5)], c=[row(5, 5)]))) == 0


def test_every_mistake_of_a_listing_is_reported(tmp_path: Path) -> None:
    """A number too large, a name that is none, a row of another resource."""
    path = tmp_path / "node1.json"
    path.write_text('[\n{"ifname": 3, "lqpn": 16777216},\n{"ifname": "mlx5_0", "cqn": 2},\n7]')
    with pytest.raises(InputError) as caught:
        read_listing(path)
    assert str(caught.value) == (
        f"{path}:2: [0].ifname: 3\n  allowed: text\n"
        f"{path}:2: [0].lqpn: 16777216\n  allowed: 0 to 16777215\n"
        f"{path}:3: [1]: a row without ifname or lqpn\n  allowed: a queue pair, not another resource\n"
        f"{path}:4: [2]: not a mapping\n  allowed: a queue pair"
    )


def test_what_is_no_listing_says_how_to_make_one(tmp_path: Path) -> None:
    """A JSON file of something else."""
    path = tmp_path / "node1.json"
    path.write_text("{}")
    with pytest.raises(InputError, match="next: write the file with: rdma -j resource show qp"):
        read_listing(path)


VALUES = st.one_of(st.integers(-1, 2**25), st.text(max_size=4), st.none(), st.booleans(), st.lists(st.integers()))
KEYS = st.sampled_from(["ifname", "port", "lqpn", "rqpn", "type", "state", "pid", "comm", "other"])


@given(st.lists(st.dictionaries(KEYS, VALUES), max_size=4))
def test_any_json_is_a_listing_or_an_input_error(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    """No traceback, whatever stands in the rows."""
    path = tmp_path_factory.mktemp("any") / "host.json"
    path.write_text(json.dumps(rows))
    try:
        queue_pairs = read_listing(path)
    except InputError:
        return
    assert len(queue_pairs) == len(rows)
    listed_flows(queue_pairs)


@pytest.mark.real
def test_this_machine_lists_its_own_queue_pairs(tmp_path: Path) -> None:
    """The real tool's output is read, be it an empty list."""
    if not shutil.which("rdma"):
        pytest.skip("rdma (iproute2) is not installed")
    shown = subprocess.run(["rdma", "-j", "resource", "show", "qp"], capture_output=True, text=True, check=False)
    if shown.returncode or not shown.stdout.strip():
        pytest.skip(f"rdma lists nothing on this machine: {shown.stderr.strip() or 'no output'}")
    path = tmp_path / "here.json"
    path.write_text(shown.stdout)
    assert all(queue_pair.host == "here" for queue_pair in read_listing(path))
