"""Limits of the model: bandwidth at large sizes, latency at small ones, growth with size, and overrides."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from fabrictune.collectives.nccl.tuning.candidates import candidates_of
from fabrictune.collectives.nccl.tuning.collective_time import CollectiveTimes
from fabrictune.collectives.nccl.tuning.explanation import facts_of
from fabrictune.collectives.nccl.tuning.model import Model
from fabrictune.collectives.nccl.tuning.prediction import nccl_model, predict
from fabrictune.collectives.nccl.tuning.profiles import system_of
from fabrictune.collectives.nccl.tuning.settings import read_tuner, settings_of
from fabrictune.collectives.nccl.tuning.system import CAPABILITIES, System, Transport
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.traces import Operation
from fabrictune.hardware.files import find_profile

OPERATIONS = (
    Operation.ALL_REDUCE,
    Operation.ALL_GATHER,
    Operation.REDUCE_SCATTER,
    Operation.BROADCAST,
    Operation.ALL_TO_ALL,
    Operation.SEND,
)
SIZES = [2**power for power in range(3, 35)]


def model_of_hosts(num_hosts: int, profile: str = "h100", **environment: str) -> Model:
    return nccl_model(system_of(find_profile(profile), num_hosts), environment=environment)


def test_a_ring_between_hosts_reaches_the_nics_at_large_sizes() -> None:
    """Eight NICs of 400 Gbps carry 8 x 50 x 0.96 = 384 GB/s; NVLink's payload, 18 x 20.6 = 370.8, is less."""
    ring = predict(model_of_hosts(8, NCCL_ALGO="Ring"), Operation.ALL_REDUCE, 2**36)
    assert ring.bus_bandwidth_bps / 8e9 == pytest.approx(370.8, rel=0.01)


def test_nvls_reaches_the_published_bandwidth_of_eight_gpus() -> None:
    """NCCL's own NVLS efficiency: 8 heads x 40 GB/s x 0.85 x 7/8 x 2 = 476 GB/s."""
    nvls = predict(model_of_hosts(1), Operation.ALL_REDUCE, 2**34)
    assert nvls.name == "NVLS Simple"
    assert nvls.bus_bandwidth_bps / 8e9 == pytest.approx(476, rel=0.01)


def test_a_small_all_reduce_takes_the_latency_of_its_hops() -> None:
    """Ring LL on one host: 6.6 us and 14 steps of 0.6 us."""
    small = predict(model_of_hosts(1, NCCL_ALGO="Ring"), Operation.ALL_REDUCE, 8)
    assert small.duration.total_us == pytest.approx(6.6 + 14 * 0.6, rel=1e-3)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("num_hosts", [1, 2, 3, 16])
def test_time_grows_with_size_under_one_choice_and_lies_in_its_interval(operation: Operation, num_hosts: int) -> None:
    """Chunks grow in steps, which may hold the time for a size, but never shorten it by more than 2 %."""
    model = model_of_hosts(num_hosts)
    predicted = [predict(model, operation, size) for size in SIZES]
    for before, after in pairwise(predicted):
        if before.name == after.name:
            assert after.duration.total_us >= 0.98 * before.duration.total_us
    assert all(one.low_us <= one.duration.total_us <= one.high_us for one in predicted)


def test_a_job_of_one_gpu_a_host_may_take_pat() -> None:
    """NCCL_PAT_ENABLE=2 takes it where every rank has a host of its own."""
    model = nccl_model(system_of(find_profile("h100"), 16, gpus_per_host=1))
    assert predict(model, Operation.ALL_GATHER, 4096).name == "PAT Simple"


def test_nccl_algo_and_proto_leave_what_they_name() -> None:
    """Per function, and by exclusion."""
    model = model_of_hosts(2, NCCL_ALGO="ring;allreduce:^nvlstree,ring", NCCL_PROTO="Simple")
    assert {predict(model, Operation.ALL_REDUCE, size).name for size in SIZES} == {"Tree Simple"}
    assert {predict(model, Operation.ALL_GATHER, size).name for size in SIZES} == {"Ring Simple"}


def test_a_choice_without_candidates_says_what_is_allowed() -> None:
    """As NCCL, which ends with an error."""
    with pytest.raises(InputError, match="no algorithm and protocol left for all_gather"):
        predict(model_of_hosts(2, NCCL_ALGO="Tree"), Operation.ALL_GATHER, 8)


def test_max_channels_bounds_rings_and_nvls() -> None:
    """NCCL_MAX_NCHANNELS, which NCCL_MAX_CTAS names anew."""
    model = model_of_hosts(2, NCCL_MAX_NCHANNELS="4")
    assert max(predict(model, Operation.ALL_REDUCE, size).num_channels for size in SIZES) == 4


def test_unknown_settings_are_refused_together() -> None:
    """With what is allowed and the nearest name."""
    with pytest.raises(InputError) as refused:
        settings_of({"NCCL_ALGO": "rong", "NCCL_PROTOS": "LL", "NCCL_BUFFSIZE": "1"})
    text = str(refused.value)
    assert "did you mean 'ring'?" in text
    assert "did you mean 'NCCL_PROTO'?" in text
    assert "NCCL_BUFFSIZE: 1\n  allowed: 8192 to 1073741824" in text


def test_the_first_matching_row_of_a_tuner_decides(tmp_path: Path) -> None:
    """With its number of channels; the name says that a tuner chose."""
    path = tmp_path / "tuner.conf"
    path.write_text("# ours\nallreduce,0,65536,ring,simple,2,2,-1,-1,1\nallreduce,0,4294967295,tree,ll128,-1,-1,-1\n")
    model = nccl_model(system_of(find_profile("h100"), 2), rules=read_tuner(path))
    first, second = (predict(model, Operation.ALL_REDUCE, size) for size in (4096, 2**20))
    assert (first.name, first.num_channels) == ("Ring Simple", 2)
    assert second.name == "Tree LL128"
    assert first.choice is not None
    assert first.choice.reason == f"tuner's rule {path}:2"


def test_a_tuner_file_with_mistakes_names_each_line(tmp_path: Path) -> None:
    """All at once."""
    path = tmp_path / "tuner.conf"
    path.write_text("allreduce,0,1\nallreduce,0,x,ring,simple,2,2,-1\nalltoall,0,1,ring,simple,2,2,-1\n")
    with pytest.raises(InputError) as refused:
        read_tuner(path)
    assert [mistake.where.rpartition(":")[2] for mistake in refused.value.mistakes] == ["1", "2", "3"]


def test_a_system_without_ranks_is_refused() -> None:
    """A collective of one rank has no algorithm."""
    with pytest.raises(InputError, match="ranks: 1"):
        system_of(find_profile("h100"), 1, gpus_per_host=1)


def test_without_nvlink_sharp_the_reason_is_said() -> None:
    """On an A100, and with NCCL_NVLS_ENABLE=0."""
    reasons = [
        {one.name: one.reason for one in candidates_of(model, Operation.ALL_REDUCE)}["NVLS Simple"]
        for model in (model_of_hosts(1, "a100"), model_of_hosts(1, NCCL_NVLS_ENABLE="0"))
    ]
    assert reasons == ["no NVLink SHARP: Hopper or later, NVSwitch, three GPUs a host", "NCCL_NVLS_ENABLE=0"]


def test_a_group_of_ranks_is_timed_by_its_hosts() -> None:
    """Eight GPUs on one host are faster than on eight; ranks that fit no hosts are refused."""
    times = CollectiveTimes(profile=find_profile("h100"))
    inside = times.of(Operation.ALL_REDUCE, 2**26, num_ranks=8, num_hosts=1)
    between = times.of(Operation.ALL_REDUCE, 2**26, num_ranks=8, num_hosts=8)
    assert inside.time_ps < between.time_ps
    assert between == times.of(Operation.ALL_REDUCE, 2**26, num_ranks=8, num_hosts=8)
    with pytest.raises(InputError, match="12 ranks on 8 hosts"):
        times.of(Operation.ALL_REDUCE, 8, num_ranks=12, num_hosts=8)


def test_queue_pairs_of_a_nic_are_those_of_its_channels() -> None:
    """Sixteen channels over eight NICs, a connection out and one in, four queue pairs each."""
    facts = facts_of(model_of_hosts(4, NCCL_IB_QPS_PER_CONNECTION="4"))
    assert facts["num_queue_pairs_per_nic"] == 16 // 8 * 2 * 4


@given(
    hosts=st.integers(1, 2000),
    local=st.integers(1, 72),
    nics=st.integers(1, 40),
    capability=st.sampled_from(CAPABILITIES),
    nvlink_gbps=st.sampled_from([0, 400, 2400, 3600, 7200]),
    nic_gbps=st.sampled_from([0.1, 1, 10, 25, 100, 200, 400, 800, 1600]),
    size=st.integers(1, 2**40),
    operation=st.sampled_from(OPERATIONS),
)
def test_any_system_has_a_choice_with_a_time_in_its_interval(
    hosts: int,
    local: int,
    nics: int,
    capability: int,
    nvlink_gbps: int,
    nic_gbps: float,
    size: int,
    operation: Operation,
) -> None:
    """Odd numbers of NICs, no NVLink, slow networks: a positive, finite time."""
    assume(hosts * local > 1)
    system = System(
        num_hosts=hosts,
        gpus_per_host=local,
        compute_capability=capability,
        nvlink_rate_bps=nvlink_gbps * 1e9,
        has_nvswitch=nvlink_gbps > 0,
        nics_per_host=nics,
        nic_rate_bps=nic_gbps * 1e9,
        pcie_rate_bps=192e9,
        transport=Transport(name="any"),
    )
    one = predict(nccl_model(system), operation, size)
    assert 0 < one.low_us <= one.duration.total_us <= one.high_us < float("inf")


@pytest.mark.parametrize("num_hosts", [2, 4, 32])
def test_an_all_to_all_reaches_what_nccls_author_expects(num_hosts: int) -> None:
    """N / (N - 1) times a NIC's 48 GB/s on N hosts with a NIC a GPU, of which busbw leaves a rank's own part out.

    NVIDIA/nccl-tests, issue 130.
    """
    exchange = predict(model_of_hosts(num_hosts), Operation.ALL_TO_ALL, 2**40)
    expected = 48 * num_hosts / (num_hosts - 1) * (8 * num_hosts - 1) / (8 * num_hosts)
    assert exchange.bus_bandwidth_bps / 8e9 == pytest.approx(expected, rel=0.01)
