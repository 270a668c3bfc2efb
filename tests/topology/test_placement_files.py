"""Placement files of the planner, of schedulers and of MPI, each as its program writes it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.placed_ranks import read_placement
from fabrictune.topology.placement import Placement, place

Read = Callable[..., Placement]

FOUR = ParallelLayout(dp=4)
EIGHT = ParallelLayout(tp=2, dp=4)


@pytest.fixture(scope="module")
def fabric() -> Fabric:
    """Return eight hosts of two NICs."""
    return build_clos(ClosSpec(num_hosts=8, hosts_per_tor_set=4, nics_per_host=2, tiers=2))


@pytest.fixture
def read(fabric: Fabric, tmp_path: Path) -> Read:
    """Return a function that reads a placement of two GPUs a host from a text."""

    def read_text(text: str, layout: ParallelLayout = FOUR, job: str = "") -> Placement:
        path = tmp_path / "placement"
        path.write_text(text)
        return read_placement(path, layout, fabric, gpus_per_host=2, job=job)

    return read_text


@pytest.mark.parametrize(
    ("text", "layout", "places"),
    [
        # Slurm's SLURM_HOSTFILE, PBS_NODEFILE: a host a line for each rank
        ("host3\nhost3\nhost1\nhost0\n", FOUR, [(3, 0), (3, 1), (1, 0), (0, 0)]),
        ("host[4-5]*2\n", FOUR, [(4, 0), (5, 0), (4, 1), (5, 1)]),
        # Open MPI and MPICH
        ("# lab\nhost7 slots=2 max_slots=4\nhost2 slots=2\n", FOUR, [(7, 0), (7, 1), (2, 0), (2, 1)]),
        ("host7:1\nhost2:1\nhost1:2\n", FOUR, [(7, 0), (2, 0), (1, 0), (1, 1)]),
        ("host5\nhost2\nhost3\nhost1\n", EIGHT, [(h, g) for h in (5, 2, 3, 1) for g in (0, 1)]),
        ("rank 1=host0 slot=0\nrank 0=host0 slot=1:0-2\nrank 3=host6 slot=0\nrank 2=host5\n", FOUR,
         [(0, 0), (0, 1), (5, 0), (6, 0)]),
        # CSV
        ("rank,host,gpu\n0,host0,1\n1,host0,0\n2,host1,1\n3,host2,0\n", FOUR, [(0, 1), (0, 0), (1, 1), (2, 0)]),
        ("Host,Rank\nhost0,3\nhost1,2\nhost1,1\nhost3,0\n", FOUR, [(3, 0), (1, 0), (1, 1), (0, 0)]),
    ],
)  # fmt: skip
def test_each_form_places_the_ranks_as_its_program_does(
    read: Read, text: str, layout: ParallelLayout, places: list[tuple[int, int]]
) -> None:
    """Hosts in the order of ranks; a rank without a GPU of its own takes the next of its host."""
    placement = read(text, layout)
    assert list(zip(placement.host_R.tolist(), placement.gpu_R.tolist(), strict=True)) == places
    assert placement.nic_R.tolist() == [2 * host + gpu for host, gpu in places]


def test_what_a_plan_writes_is_read_back(read: Read, fabric: Fabric) -> None:
    """Rank, host, GPU and NIC of a random placement of eight ranks."""
    planned = place(EIGHT, fabric, "random", gpus_per_host=2, seed=3)
    columns = zip(planned.host_R.tolist(), planned.gpu_R.tolist(), planned.nic_R.tolist(), strict=True)
    rows = [f"{r},host{h},{g},{fabric.nic_label(c)}" for r, (h, g, c) in enumerate(columns)]
    placement = read("\n".join(["rank,host,gpu,nic", *rows]), EIGHT)
    assert placement.host_R.tolist() == planned.host_R.tolist()
    assert placement.nic_R.tolist() == planned.nic_R.tolist()
    assert placement.notes == ()


def test_a_job_has_its_own_rows(read: Read) -> None:
    """The file of a plan for two jobs serves both; a job that it lacks is refused by name."""
    rows = [f"{job},{rank},host{rank + first}" for job, first in (("a", 0), ("b", 4)) for rank in range(4)]
    text = "\n".join(["job,rank,host", *rows])
    assert read(text, job="b").host_R.tolist() == [4, 5, 6, 7]
    with pytest.raises(InputError, match=r"no row of the job 'c'\n  allowed: a, b"):
        read(text, job="c")


def test_what_was_guessed_or_left_out_is_noted(read: Read, tmp_path: Path) -> None:
    """Slots without ranks, hosts that stand for all their GPUs, CPU slots, NICs of other GPUs, unknown columns."""
    path = tmp_path / "placement"
    assert read("host0 slots=2\nhost1 slots=2\nhost2 slots=9\n").notes == (
        f"{path}: more slots than ranks; hosts without a rank: 1",
    )
    assert read("host0\nhost1\n").notes == (
        f"{path}: fewer hosts than ranks; each host has a rank for each of its 2 GPUs",
    )
    assert "slots are CPU cores" in read("".join(f"rank {r}=host{r} slot=0\n" for r in range(4))).notes[0]
    rows = ["rank,host,gpu,nic,rack", "0,host0,0,host0:nic1,r1", *(f"{r},host{r},0,,r1" for r in (1, 2, 3))]
    assert read("\n".join(rows)).notes == (
        f"{path}: columns that are not used: rack",
        f"{path}: ranks with another NIC than their GPU's share of the host's: 1",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank,host,gpu\n0,host0,0\n1,host0,0\n2,host1,0\n3,host2,0",
         r"placement:3: rank 1 on host0 GPU 0, where rank 0 is\n  allowed: one rank a GPU\n  next: see .*placement:2"),
        ("rank,host\n0,host0\n0,host1\n", "placement:3: rank 0 again, on host1; .*placement:2 has it on host0"),
        ("rank,host\n0,host0\n1,host1\n", r"placement: no place for ranks 2, 3\n  allowed: each of ranks 0 to 3 once"),
        ("rank,host\n0,hots0\n", r"placement:2: unknown host 'hots0'\n  did you mean 'host0'"),
        ("rank,host\n9,host0\n", r"placement:2: rank 9\n  allowed: 0 to 3"),
        ("rank,host,gpu\n0,host0,2\n", r"placement:2: rank 0 on host0 GPU 2\n  allowed: GPUs 0 to 1"),
        ("rank,host,nic\n0,host0,host1:nic0\n", "placement:2: the NIC host1:nic0, and rank 0 is on host0"),
        ("rank,host,nic\n0,host0,host0:nik0\n", r"unknown NIC 'host0:nik0'\n  did you mean 'host0:nic0'"),
        ("rank,host,node\n", "placement:1: two columns that are the host"),
        ("rank,host\n0,host0,1\n", r"placement:2: 3 columns\n  allowed: 2"),
        ("rank,host\nzero,host0\n", r"placement:2: rank 'zero'\n  allowed: a whole number"),
        ("host0\nhost0\nhost0\nhost1\n", r"placement:3: rank 2 on host0 GPU 2"),
        ("host0\nhost0\n", "2 hosts for 4 ranks"),
        ("host0 slots=1\n", "1 slots for 4 ranks"),
        ("host0 cpus=1\n", "placement:1: unknown setting 'cpus'"),
        ("rank 0=host0 slot=0\nhost1\n", r"placement:2: 'host1'\n  allowed: rank N=HOST"),
        ("# nothing\n", "no line with a host"),
        ("host[0-", "placement:1: 'host.0-' is no list of hosts"),
    ],
)  # fmt: skip
def test_what_cannot_be_placed_is_refused_with_its_line(read: Read, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(text)


def test_slots_beyond_any_rank_cost_no_memory(read: Read) -> None:
    """A thousand hosts of 999,999 slots each would be 10^9 places."""
    with pytest.raises(InputError, match="unknown host 'x'"):
        read("x slots=999999\n" * 1_000)


def test_a_job_larger_than_the_fabric_is_refused_before_the_file_is_read(read: Read) -> None:
    with pytest.raises(InputError, match="99999999 ranks for 16 GPUs"):
        read("host0", ParallelLayout(dp=99_999_999))
