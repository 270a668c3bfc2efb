"""The port and the GID that a measurement uses, from the kernel's files."""

from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError, UnavailableError
from fabrictune.rdma_bench.verbs.ports import find_device_port

NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
LINK_LOCAL = "fe80:0000:0000:0000:0000:00ff:fe00:000a"
IPV4 = "0000:0000:0000:0000:0000:ffff:0a4d:0001"  # 10.77.0.1
TABLE = ((LINK_LOCAL, "IB/RoCE v1"), (LINK_LOCAL, "RoCE v2"), (IPV4, "IB/RoCE v1"), (IPV4, "RoCE v2"), (NO_GID, ""))


def add_device(root: Path, name: str, *, state: str = "4: ACTIVE", table: tuple[tuple[str, str], ...] = TABLE) -> None:
    """Write the files of a device with one port."""
    port = root / name / "ports" / "1"
    (port / "gids").mkdir(parents=True)
    (port / "gid_attrs" / "types").mkdir(parents=True)
    (port / "state").write_text(f"{state}\n")
    for index, (gid, kind) in enumerate(table):
        (port / "gids" / f"{index}").write_text(f"{gid}\n")
        if kind:
            (port / "gid_attrs" / "types" / f"{index}").write_text(f"{kind}\n")


def test_the_first_active_device_and_its_first_ipv4_gid_of_roce_v2_are_taken(tmp_path: Path) -> None:
    """As NCCL chooses: mlx5_0 is down, and of mlx5_1's four rows the last is the one."""
    add_device(tmp_path, "mlx5_0", state="1: DOWN")
    add_device(tmp_path, "mlx5_1")
    place = find_device_port(root=tmp_path)
    assert (place.device, place.gid.index, str(place.gid.address.ipv4_mapped)) == ("mlx5_1", 3, "10.77.0.1")


def test_without_ipv4_the_first_of_roce_v2_is_taken(tmp_path: Path) -> None:
    """A fabric of IPv6 alone."""
    add_device(tmp_path, "mlx5_0", table=TABLE[:2])
    assert find_device_port(root=tmp_path).gid.index == 1


def test_an_index_is_taken_as_it_is_given(tmp_path: Path) -> None:
    """Whatever its type."""
    add_device(tmp_path, "mlx5_0")
    assert find_device_port("mlx5_0", gid_index=0, root=tmp_path).gid.type == "IB/RoCE v1"


def test_a_row_that_is_not_in_use_is_no_gid(tmp_path: Path) -> None:
    """Index 4 is there and empty; those in use are listed."""
    add_device(tmp_path, "mlx5_0")
    with pytest.raises(InputError) as caught:
        find_device_port("mlx5_0", gid_index=4, root=tmp_path)
    assert str(caught.value) == (
        "mlx5_0 port 1: no GID of index 4\n"
        "  allowed: 0 (IB/RoCE v1, fe80::ff:fe00:a), 1 (RoCE v2, fe80::ff:fe00:a), 2 (IB/RoCE v1, 10.77.0.1),"
        " 3 (RoCE v2, 10.77.0.1)"
    )


def test_a_port_that_is_down_or_missing_is_named(tmp_path: Path) -> None:
    """Two mistakes with two messages: one for the cable, one for the command line."""
    add_device(tmp_path, "mlx5_0", state="1: DOWN")
    with pytest.raises(UnavailableError, match="the port is DOWN"):
        find_device_port("mlx5_0", root=tmp_path)
    with pytest.raises(InputError, match="mlx5_0 has no port 2"):
        find_device_port("mlx5_0", 2, root=tmp_path)
    with pytest.raises(UnavailableError, match="no device with an active port among mlx5_0"):
        find_device_port(root=tmp_path)


def test_a_device_that_is_misspelt_is_guessed(tmp_path: Path) -> None:
    """The nearest name."""
    add_device(tmp_path, "mlx5_0")
    with pytest.raises(InputError) as caught:
        find_device_port("mxl5_0", root=tmp_path)
    assert caught.value.mistakes[0].nearest == "mlx5_0"
