"""The drawing: every link once, the busiest on top, folded when it would not fit."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from defusedxml import ElementTree

from fabrictune.foundation.records import Columns, RunRecord
from fabrictune.reports.aggregation import MAX_BOXES, MAX_BUNDLES, fold, node_rails
from fabrictune.reports.fabric_drawing import bundle_loads, draw_fabric, fabric_section
from fabrictune.reports.fabric_view import FabricView
from fabrictune.reports.link_load import LinkLoad, offered_load
from fabrictune.reports.load_scale import OVERLOADED, step_of
from fabrictune.reports.record_view import open_run


def load_of(record: RunRecord) -> LinkLoad:
    load = offered_load(open_run(record, "run"))
    assert load is not None
    return load


def lines_of(load: LinkLoad) -> list[Any]:
    root = ElementTree.fromstring(draw_fabric(load, fold(load.fabric)).drawing)
    return [element for element in root if element.tag == "line" and element.get("class") != "bracket"]


def two_tier_fabric(num_leaves: int, num_spines: int, hosts_a_leaf: int) -> Columns:
    """Return leaves joined to every spine, one NIC a host; leaf i is set i, its hosts' NICs on rail i % 4."""
    num_hosts = num_leaves * hosts_a_leaf
    down = [(host, num_hosts + host // hosts_a_leaf) for host in range(num_hosts)]
    up = [
        (num_hosts + leaf, num_hosts + num_leaves + spine) for leaf in range(num_leaves) for spine in range(num_spines)
    ]
    ends = np.array(down + up)
    node, port = ends.reshape(-1), np.arange(ends.size)
    tier = np.where(node < num_hosts, 0, np.where(node < num_hosts + num_leaves, 1, 2))
    leaf = np.where(tier == 0, node // hosts_a_leaf, node - num_hosts)
    return {
        "port": port,
        "node": node,
        "node_name": np.array([f"n{one}" for one in node]),
        "node_kind": np.where(tier == 0, "host", "switch"),
        "tier": tier,
        "group": np.where(tier == 2, -1, leaf),
        "port_name": np.array([f"p{one}" for one in port]),
        "peer_port": port ^ 1,
        "rate_bps": np.full(len(port), 10**11),
        "nic": np.where(tier == 0, node, -1),
        "rail": np.where(tier == 0, leaf % 4, -1),
    }


def test_a_small_fabric_is_drawn_link_by_link(record: RunRecord) -> None:
    """Four links to hosts, and the two that join the same ToRs side by side: six lines that start at six places."""
    lines = lines_of(load_of(record))
    assert sorted(line.get("class").split()[0] for line in lines) == ["edge"] * 4 + ["link"] * 2
    assert len({(line.get("x1"), line.get("y1")) for line in lines}) == 6


def test_the_overloaded_link_is_drawn_last_and_says_so(record: RunRecord) -> None:
    """Port 8 carries 200 % forth and nothing back."""
    last = lines_of(load_of(record))[-1]
    assert last.get("class") == f"link line-{OVERLOADED + 1}", "over 150 %"
    assert last.find("title").text == "tor0:swp3 → tor1:swp3 200 %, back 0 %"


def test_each_direction_of_a_bundle_keeps_its_highest_load(record: RunRecord) -> None:
    """Hosts send 100 % up from NICs 0 and 1 and take 100 % down at 2 and 3; across, 200 % forth on one link."""
    load = load_of(record)
    load_U2 = bundle_loads(fold(load.fabric), load)
    assert sorted(load_U2.tolist()) == [[0.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [2.0, 0.0]]


@pytest.mark.parametrize(
    ("leaves", "spines", "hosts", "folded_by", "boxes"),
    [
        (4, 2, 8, "", 4 + 2 + 32),  # 38 nodes: all of them
        (100, 8, 16, "ToR set", 100 + 100 + 1),  # 1,708 nodes: hosts and leaf of each of 100 sets, spines as one
        (400, 8, 4, "rail", 4 + 4 + 1),  # 801 boxes by set: by the 4 rails instead
    ],
)
def test_a_fabric_is_folded_no_more_than_it_must(
    leaves: int, spines: int, hosts: int, folded_by: str, boxes: int
) -> None:
    """The finest of nodes, sets, rails and tiers that stays within the bounds; no node is lost on the way."""
    fabric = FabricView.from_table(two_tier_fabric(leaves, spines, hosts))
    folded = fold(fabric)
    assert (folded.folded_by, len(folded.name_B)) == (folded_by, boxes)
    assert folded.size_B.sum() == fabric.num_nodes
    assert len(folded.name_B) <= MAX_BOXES
    assert len(folded.ends_U2) <= MAX_BUNDLES


def test_a_leaf_serves_the_rail_of_its_hosts(record: RunRecord) -> None:
    """Leaf i of the two-tier fabric serves rail i % 4; spines touch no NIC and so serve none."""
    rails = node_rails(FabricView.from_table(two_tier_fabric(4, 2, 1)))
    assert rails.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, -1, -1]


def test_a_link_filled_to_its_rate_is_not_overloaded() -> None:
    """Steps end at 0, 20, 40, 60, 80 and 100 %, ends included, whatever a sum of thirds makes; then 150 to 300."""
    assert step_of([1.5, 1.51, 2.01, 3.0, 3.01]).tolist() == [6, 7, 8, 8, 9]
    assert step_of([0.0, 0.2, 0.21, 0.5, 0.8, 1 / 3 + 1 / 3 + 1 / 3 + 1e-12, 1.01]).tolist() == [0, 1, 2, 3, 4, 5, 6]


def test_the_caption_names_the_busiest_link_between_switches(make_record: Callable[..., RunRecord]) -> None:
    """Host links are full by design; the link worth naming is the one ECMP chose badly."""
    figure = draw_fabric((load := load_of(make_record())), fold(load.fabric))
    assert figure.caption == (
        "run: busiest link tor0:swp3 → tor1:swp3 at 200 % offered load; 1 oversubscribed link direction."
    )


def test_names_of_many_sets_do_not_run_into_one_another(make_record: Callable[..., RunRecord]) -> None:
    """64 ToR sets: "10" to "63" under brackets 14 wide were one string, and the last was cut at the edge."""
    num_links = 64
    port = np.arange(2 * num_links)
    is_host, leaf = port % 2 == 0, port // 2
    fabric = {
        "port": port,
        "node": np.where(is_host, leaf, num_links + leaf),
        "node_name": np.array([f"n{number}" for number in port]),
        "node_kind": np.where(is_host, "host", "switch"),
        "tier": np.where(is_host, 0, 1),
        "group": leaf,
        "port_name": np.array(["eth0"] * len(port)),
        "peer_port": port ^ 1,
        "rate_bps": np.full(len(port), 10**11),
        "nic": np.where(is_host, leaf, -1),
        "rail": np.where(is_host, 0, -1),
    }
    loads = dict.fromkeys(("port", "flows", "demand_bps"), port) | {"rate_bps": fabric["rate_bps"]}
    empty = {"transfers": None, "ports": None, "samples": None, "collisions": None}
    record = make_record(tables={"fabric": fabric, "loads": loads, **empty})
    section = fabric_section([open_run(record, "run")])
    assert section is not None
    drawing = str(section.blocks[0].drawing)  # type: ignore[union-attr]  # a figure
    names = re.findall(r'<text x="([\d.]+)" y="[\d.]+" class="tick" text-anchor="(\w+)">(\d+)</text>', drawing)
    starts = [float(x) - (6.6 * len(name) / (2 if anchor == "middle" else 1)) for x, anchor, name in names]
    ends = [start + 6.6 * len(name) for start, (_, _, name) in zip(starts, names, strict=True)]
    assert 20 < len(names) < 64
    assert all(start > end for start, end in zip(starts[1:], ends, strict=False))
    assert max(ends) <= 1040.1
