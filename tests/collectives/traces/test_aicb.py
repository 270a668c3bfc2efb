"""AICB workloads: layers become requests in the order of training, groups follow the degrees, mistakes have a line."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabrictune.collectives.traces.aicb import is_aicb, read_aicb
from fabrictune.collectives.traces.layer_forms import FORMS
from fabrictune.foundation.errors import InputError, TraceError
from fabrictune.foundation.traces import CommTrace, Operation

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


def requests_of(trace: CommTrace, rank: int) -> list[tuple[str, int, tuple[int, ...], int, list[int]]]:
    """Return operation, bytes, group, work before in ns, and waits (counted from the rank's first row)."""
    rows = (trace.rank_N == rank).nonzero()[0].tolist()
    return [
        (
            Operation(trace.operation_N[row]).name,
            int(trace.bytes_N[row]),
            trace.groups[trace.group_N[row]],
            int(trace.compute_before_ps_N[row]) // 1000,
            [int(one) - rows[0] for one in trace.dependencies.of(row)],
        )
        for row in rows
    ]


OLD_HEAD = "HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: 2 checkpoints: 0 checkpoint_initiates: 0"


def test_a_file_of_aicb_without_a_number_of_ranks_is_given_one(tmp_path: Path) -> None:
    """As in aliyun/aicb, workload/simAI/model_workload: tabs, a broadcast, no ep, pp and all_gpus."""
    layers = [
        "norm\t-1\t0\tBROADCAST\t16\t1\tNONE\t0\t1\tNONE\t0\t100",
        "mlp\t-1\t20\tALLREDUCE\t300\t2\tALLREDUCE\t400\t3\tREDUCESCATTER\t500\t100",
    ]
    path = save(tmp_path, OLD_HEAD, layers=layers)
    assert is_aicb(path)
    with pytest.raises(TraceError) as caught:
        read_aicb(path)
    assert str(caught.value) == (
        f"{path}:1: a HYBRID_TRANSFORMER_FWD_IN_BCKWD workload, which does not say how many ranks there are\n"
        "  next: give --ranks N to `fabrictune trace`"
    )
    assert requests_of(read_aicb(path, num_ranks=4), 3) == [
        ("BROADCAST", 16, (2, 3), 0, []),
        ("ALL_REDUCE", 300, (2, 3), 20, [0]),
        ("ALL_REDUCE", 400, (2, 3), 2, [1]),
        ("REDUCE_SCATTER", 500, (1, 3), 3, [2]),
    ]


def test_micro_runs_its_collectives_one_after_another(tmp_path: Path) -> None:
    """aliyun/aicb, workload/simAI/micro_test: one collective of all ranks a line, whose work does not count."""
    layers = [f"micro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLTOALL\t{size}\t1" for size in (4096, 8192)]
    trace = read_aicb(save(tmp_path, "MICRO", layers=layers), num_ranks=3)
    assert requests_of(trace, 1) == [
        ("ALL_TO_ALL", 4096, (0, 1, 2), 0, []),
        ("ALL_TO_ALL", 8192, (0, 1, 2), 0, [0]),
    ]


FULL = [f"{name} -1 1 ALLGATHER {name}1 10 ALLREDUCE {name}2 100 ALLREDUCE {name}3 5" for name in ("1", "2")]
WEIGHTS_ONLY = [f"{name} -1 1 NONE 0 10 NONE 0 100 ALLREDUCE {name}3 5" for name in ("1", "2")]


def test_data_parallelism_reduces_the_weights_of_the_last_layer_first(tmp_path: Path) -> None:
    """Forward 1 + 1, layer 2's weights 100, its input gradient 10, layer 1's weights 100; nothing is waited for."""
    assert requests_of(read_aicb(save(tmp_path, "DATA", layers=WEIGHTS_ONLY), num_ranks=4), 0) == [
        ("ALL_REDUCE", 23, (0, 1, 2, 3), 102, []),
        ("ALL_REDUCE", 13, (0, 1, 2, 3), 212, []),
    ]


@pytest.mark.parametrize(
    ("form", "model_group", "data_group"),
    [("HYBRID_DATA_MODEL", (4, 5), (1, 3, 5, 7)), ("HYBRID_MODEL_DATA", (1, 3, 5, 7), (4, 5))],
)
def test_two_dimensions_take_the_size_of_the_first(
    form: str, model_group: tuple[int, ...], data_group: tuple[int, ...], tmp_path: Path
) -> None:
    """ASTRA-sim takes it from the network. The first layer's input needs no gradient, though its work is done."""
    path = save(tmp_path, f"{form}\t\t\t", layers=FULL)
    with pytest.raises(TraceError, match="give --group-size N to `fabrictune trace`"):
        read_aicb(path, num_ranks=8)
    trace = read_aicb(path, num_ranks=8, group_size=2)
    assert [request[:3] for request in requests_of(trace, 5)] == [
        ("ALL_GATHER", 11, model_group),
        ("ALL_GATHER", 21, model_group),
        ("ALL_REDUCE", 22, model_group),
        ("ALL_REDUCE", 23, data_group),
        ("ALL_REDUCE", 13, data_group),
    ]
    assert trace.axis_N[:5] == ("tp", "tp", "tp", "dp", "dp")
    overlapped = "collectives of input gradients are waited for; ASTRA-sim overlaps them with the work of weights"
    assert trace.notes == (f"{path}: {overlapped}",)


def test_the_other_stages_are_noted(tmp_path: Path) -> None:
    """Three pipeline stages, of which the text has the layers of one."""
    path = save(tmp_path)
    left_out = "one of 3 pipeline stages is read; what they send to one another is left out"
    assert read_aicb(path).notes == (f"{path}: {left_out}",)
    assert read_aicb(path, num_ranks=4).notes[1:] == (f"{path}: 4 of the stage's 8 ranks are read",)


def test_model_parallelism_and_inference_are_of_all_ranks(tmp_path: Path) -> None:
    """MODEL has no weights to reduce, inference no backward pass."""
    layers = [line.rpartition("ALLREDUCE")[0] + "NONE 0 5" for line in FULL]
    model = requests_of(read_aicb(save(tmp_path, "MODEL", layers=layers), num_ranks=3), 2)
    assert [request[:3] for request in model] == [
        ("ALL_GATHER", 11, (0, 1, 2)),
        ("ALL_GATHER", 21, (0, 1, 2)),
        ("ALL_REDUCE", 22, (0, 1, 2)),
    ]
    layers = [line.replace("ALLREDUCE 12", "NONE 0").replace("ALLREDUCE 22", "NONE 0") for line in layers]
    inference = requests_of(read_aicb(save(tmp_path, "DISTRIBUTED_INFERENCE", layers=layers), num_ranks=3), 2)
    assert [request[1] for request in inference] == [11, 21]


def test_the_first_layer_of_dlrm_is_its_embedding(tmp_path: Path) -> None:
    """Its all-to-alls are of all ranks; the layers after it communicate their weights alone."""
    layers = ["emb -1 3 ALLTOALL 90 3 ALLTOALL 80 3 NONE 0 5", WEIGHTS_ONLY[1]]
    requests = requests_of(read_aicb(save(tmp_path, "HYBRID_DLRM\t4", layers=layers), num_ranks=2), 0)
    assert requests == [
        ("ALL_TO_ALL", 90, (0, 1), 3, []),
        ("ALL_REDUCE", 23, (0, 1), 101, [0]),
        ("ALL_TO_ALL", 80, (0, 1), 117, [0]),
    ]
    with pytest.raises(TraceError, match="4, forward: ALLGATHER\n  allowed: NONE, where HYBRID_DLRM does not"):
        read_aicb(save(tmp_path, "HYBRID_DLRM\t4", layers=[layers[0], FULL[1]]), num_ranks=2)


def test_each_line_of_a_customized_workload_has_its_form(tmp_path: Path) -> None:
    """astra-sim, branch ASTRA-sim-1.0, sample_per_layer_parallel_HybridCustomized.txt."""
    layers = [f"{FULL[0]} HYBRID_DATA_MODEL", f"{FULL[1]} HYBRID_MODEL_DATA"]
    trace = read_aicb(save(tmp_path, "HYBRID_CUSTOMIZED", layers=layers), num_ranks=4, group_size=2)
    assert [request[1:3] for request in requests_of(trace, 0)] == [
        (11, (0, 1)),
        (21, (0, 2)),
        (22, (0, 2)),
        (23, (0, 1)),
        (13, (0, 2)),
    ]
    with pytest.raises(TraceError, match="3: the form 'GUESSED'"):
        read_aicb(
            save(tmp_path, "HYBRID_CUSTOMIZED", layers=[f"{FULL[0]} GUESSED", layers[1]]), num_ranks=4, group_size=2
        )


def test_checkpointed_layers_run_forward_again(tmp_path: Path) -> None:
    """Layers 0 and 2 are checkpoints, 1 and 3 initiate: before 3's backward pass 2 runs again, before 1's layer 0."""
    head = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 2 0 2 checkpoint_initiates: 2 3 1"
    layers = [f"l{place} -1 1 ALLREDUCE {place}1 1 ALLREDUCE {place}2 1 NONE 0 1" for place in (1, 2, 3, 4)]
    trace = read_aicb(save(tmp_path, head, "4", layers), num_ranks=2)
    assert [request[1] for request in requests_of(trace, 0)] == [11, 21, 31, 41, 31, 42, 32, 11, 22, 12]
    with pytest.raises(TraceError, match="layer 1, which initiates a checkpoint that no layer before it has"):
        read_aicb(save(tmp_path, head.replace("2 0 2", "1 2"), "4", layers), num_ranks=2)


def test_a_file_that_is_cut_off_says_so(tmp_path: Path) -> None:
    """aliyun/aicb has one: 839 layers declared, 33 in the file."""
    with pytest.raises(
        TraceError, match=r"2: '839' layers declared\n  allowed: 2\n  next: check that the file was copied"
    ):
        read_aicb(save(tmp_path, OLD_HEAD, "839"), num_ranks=2)


def test_more_layers_than_can_be_used_are_refused(tmp_path: Path) -> None:
    """50 MB of the shortest layers would be a million, and 1.3 GiB in memory."""
    path = save(tmp_path, "DATA", "200001", ["l -1 1 NONE 0 1 NONE 0 1 NONE 0 1"] * 200_001)
    with pytest.raises(TraceError, match=r"200,001 layers\n  allowed: 200,000\n  next: generate fewer steps"):
        read_aicb(path, num_ranks=1)


def test_a_group_that_the_first_line_lacks_is_refused(tmp_path: Path) -> None:
    """Without ep, _EP would be a group of one rank that communicates nothing."""
    with pytest.raises(
        TraceError, match="4, forward: ALLTOALL_EP\n  allowed: a group of the first line, which has no ep"
    ):
        read_aicb(save(tmp_path, OLD_HEAD), num_ranks=2)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=300)
@given(data=st.data(), form=st.sampled_from([*FORMS, OLD_HEAD, HEAD]))
def test_damage_is_a_trace_or_a_named_error(data: st.DataObject, form: str, tmp_path: Path) -> None:
    """Characters changed, cut off and put in, in every form: never another exception."""
    content = bytearray(save(tmp_path, form, layers=FULL).read_bytes())
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(
            st.text("0123456789 :\n\t_AE-", max_size=4)
        ).encode()
    path = tmp_path / "damaged.txt"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with suppress(TraceError, InputError):
        read_aicb(path, num_ranks=data.draw(st.integers(1, 9)), group_size=data.draw(st.integers(1, 4)))
