"""Limits of a fabric for other tools, by hand."""

from dataclasses import replace
from pathlib import Path

import yaml

from fabrictune.foundation.finding_rules.settings import CATALOG_SETTINGS
from fabrictune.validate.cluster.crew import Crew
from fabrictune.validate.cluster.exports import NHC, SUPERBENCH, write_limits
from fabrictune.validate.cluster.nics import Nic, NicList
from fabrictune.validate.cluster.site import ClusterSettings, Site


def nic(node: str, rail: int) -> Nic:
    """Return a NIC of 400 Gbit/s."""
    return Nic(node=node, interface=f"eth{rail}", ipv4=f"10.0.{rail}.1", rail=rail, rate_bps=4e11, mtu=9000)


def site(folder: Path) -> Site:
    """Return two nodes of two rails, without a planned fabric."""
    crew = Crew((), lambda name, words: NotImplemented, python="python3", parallel=1, start_s=1)
    return Site(
        crew=crew,
        machines={},
        nics=NicList(nics={name: [nic(name, rail) for rail in (0, 1)] for name in ("a", "b")}),
        fabric=None,
        settings=ClusterSettings(),
        rules=CATALOG_SETTINGS,
        audit_rules=(),
        folder=folder,
    )


def test_nhc_gets_each_interface_with_its_speed_and_mtu(tmp_path: Path) -> None:
    """Two nodes of two interfaces: three lines each."""
    lines = (write_limits(site(tmp_path)) / NHC).read_text().splitlines()
    assert len(lines) == 1 + 2 * 2 * 3
    assert "b || check_hw_eth eth1" in lines
    assert "b || check_cmd_output -m '/Speed: 400000Mb/' ethtool eth1" in lines
    assert "b || check_cmd_output -m '/mtu 9000 /' ip link show eth1" in lines


def test_superbench_gets_the_least_flow_and_the_ring(tmp_path: Path) -> None:
    """400 Gbit/s * 4096 / 4178 * 0.85 / 8 = 41.67 GB/s a flow; two rails * 50 GB/s * 8948 / 9038 * 0.85 a ring."""
    rules = yaml.safe_load((write_limits(site(tmp_path)) / SUPERBENCH).read_text())["superbench"]["rules"]
    assert rules["flow-of-a-rail"]["criteria"] == "lambda x: x < 41.67"
    assert rules["ring-of-all-nodes"]["criteria"] == "lambda x: x < 84.15"
    assert rules["flow-of-a-rail"]["function"] == "value"


def test_without_any_rate_there_is_no_rule(tmp_path: Path) -> None:
    """And the file says what to do."""
    unknown = {name: [replace(nic(name, 0), rate_bps=0.0)] for name in ("a", "b")}
    text = (write_limits(replace(site(tmp_path), nics=NicList(nics=unknown))) / SUPERBENCH).read_text()
    assert yaml.safe_load(text)["superbench"]["rules"] == {}
    assert "validate with --fabric" in text
