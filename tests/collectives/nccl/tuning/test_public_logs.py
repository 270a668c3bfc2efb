"""Choices, graphs and tables of the model beside those that public logs of NCCL print."""

from dataclasses import replace
from pathlib import Path

import pytest

from fabrictune.collectives.nccl.tuning.candidates import candidates_of
from fabrictune.collectives.nccl.tuning.channels import nvls_channels
from fabrictune.collectives.nccl.tuning.choice import choose
from fabrictune.collectives.nccl.tuning.graphs import find_graphs, graphs_of_file
from fabrictune.collectives.nccl.tuning.prediction import nccl_model, predict
from fabrictune.collectives.nccl.tuning.profiles import system_of
from fabrictune.collectives.nccl.tuning.system import System, Transport
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.traces import Operation
from fabrictune.hardware.files import find_profile

# Two ranks as two hosts over two sockets of 10 Gbps, NCCL 2.29.7 with NCCL_DEBUG_SUBSYS=TUNING; the log of a public
# study of NCCL's tuning on one RTX 5090. LL128 is off there: the NICs lie behind the CPU.
SOCKETS = System(
    num_hosts=2,
    gpus_per_host=1,
    compute_capability=100,
    nvlink_rate_bps=0.0,
    has_nvswitch=False,
    nics_per_host=2,
    nic_rate_bps=10e9,
    pcie_rate_bps=384e9,
    transport=Transport(name="sockets"),
)


@pytest.mark.parametrize(
    ("operation", "name", "latency_us", "gb_per_s"),
    [
        (Operation.BROADCAST, "Ring LL", 9.3, 1.2),
        (Operation.BROADCAST, "Ring Simple", 22.4, 2.4),
        (Operation.ALL_GATHER, "Ring LL", 11.6, 2.4),
        (Operation.ALL_GATHER, "Ring Simple", 22.4, 4.8),
        (Operation.ALL_GATHER, "PAT Simple", 17.6, 3.6),
        (Operation.REDUCE_SCATTER, "Ring LL", 11.6, 2.4),
        (Operation.REDUCE_SCATTER, "PAT Simple", 17.6, 3.6),
        (Operation.ALL_REDUCE, "Tree LL", 16.8, 0.5),
        (Operation.ALL_REDUCE, "Tree Simple", 36.4, 1.9),
        (Operation.ALL_REDUCE, "Ring LL", 16.6, 1.2),
        (Operation.ALL_REDUCE, "Ring Simple", 36.4, 2.4),
    ],
)
def test_the_tuning_table_is_the_one_that_nccl_prints(
    operation: Operation, name: str, latency_us: float, gb_per_s: float
) -> None:
    """To the one decimal that the log has."""
    found = {one.name: one for one in candidates_of(nccl_model(SOCKETS), operation)}[name]
    assert (round(found.latency_us, 1), round(found.gb_per_s, 1)) == (latency_us, gb_per_s)


def test_a_broadcast_leaves_ll_where_the_log_does() -> None:
    """`16384 Bytes -> Algo RING proto LL`, `32768 Bytes -> Algo RING proto SIMPLE`."""
    model = nccl_model(SOCKETS, environment={"NCCL_PROTO": "^LL128"})
    names = [predict(model, Operation.BROADCAST, size).name for size in (1024, 16384, 32768, 2**27)]
    assert names == ["Ring LL", "Ring LL", "Ring Simple", "Ring Simple"]


@pytest.mark.parametrize(("num_hosts", "coll", "nvls"), [(1, 24, 16), (2, 16, 16)])
def test_the_channels_of_p5_are_those_of_its_log(num_hosts: int, coll: int, nvls: int) -> None:
    """`24 coll channels, 16 nvls channels` on one p5.48xlarge and `16 coll channels, 16 nvls channels` on two."""
    model = nccl_model(system_of(find_profile("p5"), num_hosts))
    assert (model.num_channels, nvls_channels(model.system, model.graphs, model.settings)) == (coll, nvls)


def test_four_nics_of_eight_gpus_make_as_many_channels_as_eight() -> None:
    """Two hosts of 8 H100 with 4 NICs of 400 Gbps log `[0] ... [15]`: 16 trees (NVIDIA/nccl, issue 1357)."""
    system = System(
        num_hosts=2,
        gpus_per_host=8,
        compute_capability=90,
        nvlink_rate_bps=3.6e12,
        has_nvswitch=True,
        nics_per_host=4,
        nic_rate_bps=400e9,
        pcie_rate_bps=384e9,
        transport=Transport(name="InfiniBand"),
    )
    assert nccl_model(system).num_channels == 16


def hosts_of(profile: str, num_hosts: int, **changes: object) -> System:
    return replace(system_of(find_profile(profile), num_hosts), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "name", "time_us"),
    [
        (8, "Tree LL", 25.200924),
        (256, "Tree LL", 25.229528),
        (512, "Tree LL", 25.259054),
        (2**18, "Tree LL128", 54.707825),
    ],
)
def test_nccls_times_of_three_hosts_are_those_of_its_log(size: int, name: str, time_us: float) -> None:
    """`262144 Bytes -> Algo 0 proto 1 time 54.707825`: 3 hosts of 8 H100, 8 x 24 GB/s (NVIDIA/nccl, issue 1453)."""
    choice = choose(nccl_model(hosts_of("h100", 3, nic_rate_bps=200e9), version="2.27"), Operation.ALL_REDUCE, size)
    assert choice.name == name
    assert choice.compared[0].time_us == pytest.approx(time_us, rel=1e-6)


def test_nccls_time_over_efa_has_the_latency_that_the_plug_in_tells() -> None:
    """`AllGather: 37756928 Bytes -> Algo 1 proto 2 time 2860.208008` of four hosts of one GPU and 100 Gbps of EFA.

    8.4 + 3 x (14 + 2 x 75) us and 12 GB/s x 4 / 3; the log of a public guide to training on Amazon EKS.
    """
    efa = Transport(name="EFA", tuner_us=75.0)
    system = hosts_of("h100", 4, gpus_per_host=1, nics_per_host=1, nic_rate_bps=100e9, transport=efa)
    model = nccl_model(system, version="2.27", environment={"NCCL_PAT_ENABLE": "0", "NCCL_PROTO": "Simple"})
    choice = choose(model, Operation.ALL_GATHER, 37_756_928)
    assert choice.name == "Ring Simple"
    assert choice.compared[0].time_us == pytest.approx(2860.208, abs=1e-3)


@pytest.mark.parametrize(
    ("system", "ring", "tree"),
    [
        # `Pattern 4, nChannels 12, bw 20/20` on NVL[240.0]: two A100 of one host; the log of a note on NCCL's start.
        (hosts_of("a100", 1, gpus_per_host=2), (12, 20.0, 20.0), (12, 20.0)),
        # `Pattern 4, nChannels 1, bw 24/24` and `Pattern 3, nChannels 1, bw 48/24`: a GPU and a NIC of 200 Gbps.
        (hosts_of("a100", 2, gpus_per_host=1, nics_per_host=1), (1, 24.0, 24.0), (1, 48.0)),
        # `bw 0.24/0.24` and `bw 1.2/0.24`: a GPU and a socket of 2.5 Gbps.
        (hosts_of("a100", 2, gpus_per_host=1, nics_per_host=1, nic_rate_bps=2.5e9), (1, 0.24, 0.24), (1, 1.2)),
    ],
)
def test_graphs_are_those_that_nccl_found(
    system: System, ring: tuple[int, float, float], tree: tuple[int, float]
) -> None:
    """Channels, and their rates inside and between hosts."""
    graphs = find_graphs(system)
    assert (graphs.ring.num_channels, graphs.ring.inside, graphs.ring.between) == ring
    assert (graphs.tree.num_channels, graphs.tree.inside) == tree


def test_a_file_of_graphs_takes_the_place_of_found_ones(tmp_path: Path) -> None:
    """As of Azure's NCv4: two rings and four trees of 12 GB/s make two channels, which are doubled."""
    channel = '<channel><gpu dev="0"/><gpu dev="1"/><gpu dev="2"/><gpu dev="3"/></channel>'
    graph = '<graph id="{}" pattern="{}" crossnic="0" speedintra="12" speedinter="12">{}</graph>'
    path = tmp_path / "graphs.xml"
    path.write_text(f'<graphs version="1">{graph.format(0, 4, 2 * channel)}{graph.format(1, 1, 4 * channel)}</graphs>')
    system = hosts_of("a100", 1, gpus_per_host=4)
    model = nccl_model(system, graphs=graphs_of_file(path, system))
    assert model.num_channels == 4
    assert (model.graphs.ring.num_channels, model.graphs.tree.inside, model.graphs.nvls) == (2, 12.0, None)
    path.write_text(f'<graphs version="1">{graph.format(0, 4, channel)}</graphs>')
    with pytest.raises(InputError, match="no graph of a tree with channels"):
        graphs_of_file(path, system)
