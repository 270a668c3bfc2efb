"""Parts of the diagnostics: comparison with peers, inference of PCIe faults, health of GPUs, processes with a limit."""

from itertools import product
from pathlib import Path

import pytest

from fabrictune.diagnostics.node_process import run_apart
from fabrictune.diagnostics.node_tests import table
from fabrictune.diagnostics.node_tests.gpu_health import read_health, read_xids
from fabrictune.diagnostics.pcie import AdapterPlace, read_places, slow_parts
from fabrictune.diagnostics.peers import different_bits
from fabrictune.diagnostics.results import NodeResult

PLACES = [
    AdapterPlace(
        name=f"mlx5_{number}", path=(f"root{number // 4}", f"switch{number // 2}", f"slot{number}"), socket=number // 4
    )
    for number in range(8)
]


def _mesh(slow: set[str]) -> dict[tuple[str, str], float]:
    names = [place.name for place in PLACES]
    return {pair: 50e9 if slow.isdisjoint(pair) else 25e9 for pair in product(names, names)}


@pytest.mark.parametrize(
    ("slow", "part"),
    [
        ({"mlx5_5"}, "adapter mlx5_5"),
        ({"mlx5_2", "mlx5_3"}, "PCIe switch1"),
    ],
)
def test_the_slow_part_of_pcie_is_inferred_from_the_mesh(slow: set[str], part: str) -> None:
    """Pairs with one adapter are slow: that adapter. Pairs with both below one switch: the switch."""
    assert slow_parts(_mesh(slow), PLACES, deviation=0.15) == (part,)


def test_an_even_mesh_has_no_slow_part_and_a_lone_pair_is_named_as_one() -> None:
    assert slow_parts(_mesh(set()), PLACES, deviation=0.15) == ()
    mesh = _mesh(set()) | {("mlx5_0", "mlx5_7"): 10e9}
    assert slow_parts(mesh, PLACES, deviation=0.15) == ("mlx5_0 to mlx5_7",)


def test_places_are_read_from_the_kernels_folders(tmp_path: Path) -> None:
    device = tmp_path / "devices" / "pci0000:00" / "0000:00:01.0" / "0000:01:00.0" / "0000:02:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text("1\n")
    (tmp_path / "infiniband" / "mlx5_0").mkdir(parents=True)
    (tmp_path / "infiniband" / "mlx5_0" / "device").symlink_to(device)
    (place,) = read_places(["mlx5_0"], tmp_path / "infiniband")
    assert place.parts == ("adapter mlx5_0", "PCIe 0000:01:00.0", "PCIe 0000:00:01.0", "socket 1")


def test_gpus_with_errors_and_held_clocks_are_named() -> None:
    """The second GPU has three uncorrected errors, and clocks held down for heat."""
    answer = (
        "0, 0, [N/A], No, No, Not Active, Not Active, Not Active\n1, 3, [N/A], No, No, Active, Not Active, Not Active\n"
    )
    assert list(read_health(answer)) == [
        "GPU 1: uncorrected ECC errors since the driver was loaded: 3",
        "GPU 1: clocks held down for heat",
    ]


def test_xids_of_devices_are_counted_and_those_of_applications_are_not() -> None:
    log = (
        "[1.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus.\n"
        "[2.0] NVRM: Xid (PCI:0000:3b:00): 79, pid=12, GPU has fallen off the bus.\n"
        "[3.0] NVRM: Xid (PCI:0000:5e:00): 31, pid=77, name=python, Ch 00000008\n"
    )
    assert list(read_xids(log)) == ["GPU 0000:3b:00: Xid 79, 2 times"]


def test_the_rank_with_other_bits_is_named_among_ranks_of_its_kind() -> None:
    digests = {0: ("a", "x"), 1: ("a", "x"), 2: ("a", "y"), 3: ("b", "z")}
    results = {
        ("training step", rank): NodeResult(test="training step", kind=kind, digest=digest)
        for rank, (kind, digest) in digests.items()
    }
    assert [(other.rank, other.is_tied) for other in different_bits(results)] == [(2, False)]


def test_two_ranks_that_differ_are_both_named_as_tied() -> None:
    results = {
        ("training step", rank): NodeResult(test="training step", kind="a", digest=digest)
        for rank, digest in enumerate("xy")
    }
    assert [(other.rank, other.is_tied) for other in different_bits(results)] == [(0, True), (1, True)]


def test_a_test_that_does_not_end_is_ended_at_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FABRICTUNE_TIMEOUT_SCALE", "1")
    endless = table.NodeTest(
        name="memory", meaning="", run=lambda folder: NodeResult(test=""), expected_s=1, limit_s=0.5
    )
    monkeypatch.setitem(table.NODE_TESTS, "memory", endless)
    result = run_apart("memory", tmp_path, prefix=["sh", "-c", "exec sleep 60"])
    assert result.faults == ("not over after 0.5 s",)


def test_a_test_that_cannot_run_is_a_fault(tmp_path: Path) -> None:
    (fault,) = run_apart("memory", tmp_path, prefix=["false"]).faults
    assert fault == "ended with exit code 1: no output"
