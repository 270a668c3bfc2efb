"""Public logs, dumps and test outputs of NCCL give what a script counted in them."""

import re
import zlib
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from fabrictune.collectives.measurement.files import read_measurements
from fabrictune.collectives.nccl.flows import nccl_flows
from fabrictune.collectives.nccl.graph_xml import read_graphs
from fabrictune.collectives.nccl.log import read_nccl_log
from fabrictune.collectives.nccl.tests_json import read_test_json
from fabrictune.collectives.nccl.tests_text import read_test_text
from fabrictune.collectives.nccl.topology_xml import Distance, read_topology
from fabrictune.foundation.errors import InputError
from fabrictune.rdma_bench.timers.nccl_log_report import Requirements, explain_log
from fabrictune.rdma_bench.timers.profiles import KNOWN_PROFILES

pytestmark = pytest.mark.real

ROCE_LOG = Path("nccl", "sendrecv_roce_4gpu.log")
GB_PER_S = 8e9


def test_a_roce_job_on_two_hosts(real_data: Path) -> None:
    """8 ranks on U37 and U35, NCCL 2.26.2, mlx5_5:1/RoCE, GID index 3, 4 rings, 4 NET/IB channels and 6 P2P."""
    log = read_nccl_log([real_data / ROCE_LOG])
    hosts = {rank: host for (communicator, rank), host in log.host_of_rank().items() if communicator == ""}
    assert Counter(hosts.values()) == {"MOC-R4PCC04U37": 4, "MOC-R4PCC04U35": 4}
    assert [fact.version for fact in log.versions] == ["2.26.2+cuda"]
    assert {(fact.name, fact.port, fact.link_layer) for fact in log.devices} == {("mlx5_5", 1, "RoCE")}
    assert log.settings("NCCL_IB_GID_INDEX") == {"MOC-R4PCC04U37": "3"}
    assert [ring.ranks for ring in log.rings] == [(0, 3, 6, 5, 4, 7, 2, 1)] * 4
    assert Counter(fact.transport.split("/")[0] for fact in log.channels) == {"NET": 4, "P2P": 6}
    assert {fact.flags for fact in log.channels if fact.transport == "NET/IB"} == {("GDRDMA", "Shared")}
    assert sum(fact.is_complete for fact in log.ranks) == 4


def test_its_timers_are_the_default_of_its_version(real_data: Path) -> None:
    """NCCL 2.26 sets T 20 and R 7; the log has neither an error nor a setting of its own."""
    explanation = explain_log(read_nccl_log([real_data / ROCE_LOG]), KNOWN_PROFILES["connectx-6"], Requirements())
    (spec,) = (prediction.spec for prediction in explanation.predictions)
    assert explanation.networks == ("IB",)
    assert (spec.timeout_exponent, spec.retries) == (20, 7)
    assert explanation.findings == ()


def test_its_flows_run_between_the_hosts_both_ways(real_data: Path) -> None:
    """Rank 3 sends to 4 on two channels, rank 7 to 0 on two; only one host logged, and the notes say so."""
    flows = nccl_flows(read_nccl_log([real_data / ROCE_LOG]))
    assert Counter(flows.label(row) for row in range(len(flows))) == {
        "MOC-R4PCC04U37/mlx5_5 to MOC-R4PCC04U35/mlx5_5": 2,
        "MOC-R4PCC04U35/mlx5_5 to MOC-R4PCC04U37/mlx5_5": 2,
    }
    assert flows.notes == (
        "channels logged by one side alone, whose other end is taken to use the same device: 4",
        "queue pairs without number, which NCCL_DEBUG_SUBSYS=INIT,NET,ENV logs: 4",
    )


@pytest.mark.parametrize(
    ("name", "num_rows", "first", "last", "average"),
    [
        (ROCE_LOG, 13, (1073741824, 5.59), (26843545600, 5.85), 5.80752),
        (Path("nccl", "nccl_allreduce.log"), 34, (0, 0.0), (8589934592, 235.26), 68.4048),
    ],
    ids=["new layout among log lines", "old layout"],
)
def test_outputs_of_nccl_tests(
    real_data: Path, name: Path, num_rows: int, first: tuple[int, float], last: tuple[int, float], average: float
) -> None:
    """Sizes, bus bandwidths and the average, in GB/s as printed."""
    (output,) = read_test_text([real_data / name])
    assert len(output.rows) == num_rows
    for row, (size_bytes, bus_bandwidth) in ((output.rows[0], first), (output.rows[-1], last)):
        assert row.out_of_place is not None
        assert row.size_bytes == size_bytes
        assert row.out_of_place.bus_bandwidth_bps / GB_PER_S == pytest.approx(bus_bandwidth)
    assert output.average_bus_bandwidth_bps == pytest.approx(average * GB_PER_S)
    assert output.num_out_of_bounds == 0


def test_measurements_of_public_runs(real_data: Path) -> None:
    """Neither names its program: 8 ranks, a ratio of 1 and 7/4, and no root, so a send and an all-reduce."""
    send, all_reduce = (read_measurements(real_data / name) for name in (ROCE_LOG, Path("nccl", "nccl_allreduce.log")))
    assert (send.num_hosts, all_reduce.num_hosts) == (2, 1)
    assert {(row.name, row.num_ranks) for row in send.rows} == {("send_recv", 8)}
    assert {(row.name, row.num_ranks) for row in all_reduce.rows} == {("all_reduce", 8)}
    assert (len(send.rows), len(all_reduce.rows)) == (2 * 13, 2 * 32)  # two sizes of 0 B are left out
    assert all_reduce.rows[-2].bus_bandwidth_bps / GB_PER_S == pytest.approx(235.26, rel=1e-3)


def test_an_unchecked_error_is_not_zero(real_data: Path) -> None:
    """The old run printed N/A for every error."""
    rows = read_test_text([real_data / "nccl" / "nccl_allreduce.log"])[0].rows
    assert {row.out_of_place.num_wrong for row in rows if row.out_of_place} == {None}
    assert rows[-1].in_place is not None
    assert rows[-1].in_place.bus_bandwidth_bps / GB_PER_S == pytest.approx(235.03)


def test_a_topology_written_by_hand(real_data: Path) -> None:
    """4 NUMA nodes, 4 PCI switches, 8 GPUs and 8 devices by class alone: each GPU shares its switch with two."""
    topology = read_topology(real_data / "nccl" / "ndv4-topo.xml")
    counts = (topology.num_numa_nodes, len(topology.switches), len(topology.gpus), len(topology.network_devices))
    assert counts == (4, 4, 8, 8)
    for gpu in topology.gpus:
        near = topology.nearest_devices(gpu)
        assert len(near) == 2
        assert {topology.distance(gpu, device) for device in near} == {Distance.PIX}


def test_a_dumped_topology(real_data: Path) -> None:
    """4 CPUs, 4 GPUs, one device eth0 of 100 Gb/s on the first NUMA node and on no PCI bus."""
    topology = read_topology(real_data / "nccl" / "ncv4-topo.xml")
    assert (topology.num_numa_nodes, len(topology.gpus)) == (4, 4)
    assert [(device.name, device.rate_bps) for device in topology.network_devices] == [("eth0", 100_000_000_000)]
    (device,) = topology.network_devices
    assert [topology.distance(gpu, device).name for gpu in topology.gpus] == ["PHB", "SYS", "SYS", "SYS"]


def test_dumped_graphs(real_data: Path) -> None:
    """Ring, balanced tree and tree with 2, 4 and 4 channels of 12 GB/s; the rings run 0 1 2 3 and 0 3 2 1."""
    graphs = read_graphs(real_data / "nccl" / "ncv4-graph.xml")
    assert [(graph.pattern, len(graph.channels), graph.speed_inside) for graph in graphs] == [
        ("ring", 2, 12.0),
        ("balanced tree", 4, 12.0),
        ("tree", 4, 12.0),
    ]
    assert [channel.gpus for channel in graphs[0].channels] == [(0, 1, 2, 3), (0, 3, 2, 1)]


def test_no_public_file_is_a_traceback(real_data: Path) -> None:
    """Every file of the collection, whatever it is, through every reader."""
    readers: tuple[Callable[[Path], object], ...] = (
        read_topology,
        read_graphs,
        lambda path: nccl_flows(read_nccl_log([path])),
        lambda path: read_test_text([path]),
        read_test_json,
        read_measurements,
    )
    for path in sorted(real_data.rglob("*")):
        for reader in readers if path.is_file() else ():
            with suppress(InputError):
                reader(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reader"),
    [
        ("nccl/sendrecv_roce_4gpu.log", lambda path: nccl_flows(read_nccl_log([path]))),
        ("nccl/nccl_allreduce.log", read_measurements),
        ("nccl/ncv4-topo.xml", read_topology),
        ("nccl/ncv4-graph.xml", read_graphs),
    ],
    ids=["log", "output", "topology", "graph"],
)
def test_mutated_public_files_are_read_or_refused(
    real_data: Path, tmp_path: Path, name: str, reader: Callable[[Path], object]
) -> None:
    """2,500 mutations of each: numbers and words overwritten, where a checksum of the trial's number chooses."""
    content, path = (real_data / name).read_bytes(), tmp_path / "mutated"
    words = [match.span() for match in re.finditer(rb"[\w.]+", content)]
    for trial in range(2_500):
        draw = zlib.crc32(trial.to_bytes(4))
        begin, end = words[draw % len(words)]
        piece = (b"-1", b"", b"9" * 25, b"\xff\x00", b"<", b'"', b"0x", b"NCCL INFO ")[draw >> 16 & 7]
        path.write_bytes(content[:begin] + piece + content[end:])
        with suppress(InputError):
            reader(path)
