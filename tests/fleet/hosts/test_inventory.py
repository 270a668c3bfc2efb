"""Inventories give the hosts that their own tools would give."""

from pathlib import Path

import pytest

from fabrictune.fleet.hosts.host import FleetHost
from fabrictune.fleet.hosts.inventory import read_hosts
from fabrictune.foundation.errors import InputError

GOLDEN = Path(__file__).parents[2] / "golden" / "fleet" / "inventories"


def named(hosts: tuple[FleetHost, ...]) -> list[tuple[str, str, str, int, str]]:
    return [(host.name, host.address, host.user, host.port, host.jump) for host in hosts]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "hosts.txt",
            [("gpu1", "gpu1", "ops", 22, ""), ("gpu2", "gpu2", "ops", 22, ""), ("leaf1", "leaf1", "", 0, "")],
        ),
        (
            "inventory.ini",
            [
                ("jump", "203.0.113.1", "", 0, ""),
                *((f"gpu0{n}", f"gpu0{n}", "ops", 2222, "ops@jump") for n in (1, 2, 3)),
                ("gpu04", "10.0.0.4", "root", 2222, "ops@jump"),
            ],
        ),
        ("inventory.yml", [("leaf1", "10.0.0.1", "ops", 2022, ""), ("leaf2", "leaf2", "ops", 2022, "")]),
        ("lab.clab.yml", [("leaf1", "172.20.20.5", "", 0, ""), ("h1", "clab-lab-h1", "", 0, "")]),
        (
            "ssh_config",
            [
                ("gpu1", "gpu1.example.org", "ops", 0, "jump"),
                ("gpu2", "gpu2.example.org", "ops", 0, "jump"),
                ("jump", "jump", "ops", 2200, ""),
            ],
        ),
    ],
)
def test_each_form_gives_its_hosts(name: str, expected: list[object]) -> None:
    """Names, addresses, users, ports and jump hosts, as the tool of the form understands the file."""
    assert named(read_hosts([str(GOLDEN / name)])) == expected


def test_nornir_takes_groups_and_defaults(tmp_path: Path) -> None:
    """A host's own value, then its group's, then the default."""
    (tmp_path / "hosts.yaml").write_text((GOLDEN / "hosts.yaml").read_text())
    (tmp_path / "groups.yaml").write_text("leaves: {username: admin, port: 2022}\n")
    (tmp_path / "defaults.yaml").write_text("username: nobody\n")
    assert named(read_hosts([str(tmp_path / "hosts.yaml")])) == [
        ("leaf1", "10.0.0.1", "admin", 22, ""),
        ("leaf2", "leaf2", "admin", 2022, ""),
    ]


def test_a_list_of_slurm_is_an_inventory() -> None:
    """What is no file is a list of names."""
    assert [host.name for host in read_hosts(["gpu[07-09]", "leaf1"])] == ["gpu07", "gpu08", "gpu09", "leaf1"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("hosts.txt", "-oProxyCommand=x\n", "hosts.txt:1: '-oProxyCommand=x'\n  allowed: a host name or an address"),
        ("hosts.txt", "gpu1:99999\n", "hosts.txt:1: the port '99999'\n  allowed: 1 to 65535"),
        (
            "config",
            "Match exec true\nHost a\n",
            "config:1: a Match that runs a command\n  next: name the hosts with Host lines",
        ),
        (
            "i.ini",
            "[a]\nh ansible_host='{{ x }}'\n",
            "i.ini:2: address '{{ x }}' of h\n  next: write the value itself: nothing in an inventory is evaluated",
        ),
        (
            "i.ini",
            "[a]\ngpu[1:9999999]\n",
            "i.ini:2: 'gpu[1:9999999]'\n  allowed: a range such as gpu[01:64] or rack[a:c]",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, message: str
) -> None:
    """No option of ssh, no template, no command, and no range that fills the memory gets in by an inventory."""
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text)
    with pytest.raises(InputError) as raised:
        read_hosts([name])
    assert str(raised.value) == message
