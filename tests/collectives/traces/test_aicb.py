"""AICB workloads: layers become requests in the order of training, groups follow the degrees, mistakes have a line."""

from pathlib import Path

import pytest

from fabrictune.collectives.traces.aicb import is_aicb, read_aicb
from fabrictune.foundation.errors import TraceError
from fabrictune.foundation.traces import Operation

HEAD = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 3 vpp: 1 ga: 1 all_gpus: 24 pp_comm 0"
LAYERS = [
    "embedding -1 10 ALLREDUCE 100 1 NONE 0 7 ALLGATHER 800 5",
    "experts -1 20 ALLTOALL_EP 300 2 ALLTOALL_EP 400 3 REDUCESCATTER_DP_EP 500 5",
]


def save(folder: Path, head: str = HEAD, count: str = "2", layers: list[str] = LAYERS) -> Path:
    path = folder / "workload.txt"
    path.write_text("\n".join([head, count, *layers]) + "\n")
    return path


def test_a_step_goes_forward_and_back(tmp_path: Path) -> None:
    """Rank 0: both forwards, then experts' two gradients, then embedding's; weight gradients are not waited for."""
    path = save(tmp_path)
    assert is_aicb(path)
    trace = read_aicb(path, num_ranks=4)
    rows = (trace.rank_N == 0).nonzero()[0]
    assert [Operation(one).name for one in trace.operation_N[rows]] == [
        "ALL_REDUCE",
        "ALL_TO_ALL",
        "ALL_TO_ALL",
        "REDUCE_SCATTER",
        "ALL_GATHER",
    ]
    assert trace.bytes_N[rows].tolist() == [100, 300, 400, 500, 800]
    assert trace.compute_before_ps_N[rows].tolist() == [10_000, 20_000, 2_000, 3_000, 11_000]
    assert [trace.dependencies.of(row).tolist() for row in rows.tolist()] == [[], [0], [1], [2], [2]]


def test_groups_follow_the_degrees(tmp_path: Path) -> None:
    """A stage of eight: tensor pairs, experts two apart, and the same experts four apart."""
    trace = read_aicb(save(tmp_path))
    rows = (trace.rank_N == 5).nonzero()[0]
    assert [trace.groups[trace.group_N[row]] for row in rows.tolist()] == [
        (4, 5),
        (5, 7),
        (5, 7),
        (1, 5),
        (1, 3, 5, 7),
    ]


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"count": "3"}, "workload.txt:2: '3' layers declared"),
        ({"head": HEAD.replace("ep: 2", "ep: x")}, "workload.txt:1, ep: 'x'"),
        ({"layers": [LAYERS[0], "short -1 1"]}, "workload.txt:4: 3 fields"),
        ({"layers": [LAYERS[0], LAYERS[1].replace("ALLTOALL_EP 300", "GOSSIP 300")]}, "4, forward: GOSSIP"),
        ({"layers": [LAYERS[0], LAYERS[1].replace("300", "-1")]}, "4, forward: '-1'"),
    ],
)
def test_mistakes_have_a_line(change: dict[str, object], found: str, tmp_path: Path) -> None:
    """And what would have been right."""
    with pytest.raises(TraceError) as error:
        read_aicb(save(tmp_path, **change))  # type: ignore[arg-type]
    assert found in str(error.value)


@pytest.mark.parametrize("num_ranks", [3, 12])
def test_ranks_are_whole_blocks(num_ranks: int, tmp_path: Path) -> None:
    """tp * ep is 4, and a stage has 8."""
    with pytest.raises(TraceError, match="a multiple of tp \\* ep = 4, up to the stage's 8"):
        read_aicb(save(tmp_path), num_ranks=num_ranks)
