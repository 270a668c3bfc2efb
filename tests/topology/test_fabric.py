"""Every rule of a fabric finds its own breach, and says its name."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fabrictune.foundation.errors import FabricError
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import MAX_SHOWN, STAGES, Fabric


def two_hosts() -> Fabric:
    """Return hosts a and b on the switch s: ports 0 and 1 are the link a - s, 2 and 3 the link b - s."""
    draft = FabricDraft("pair")
    a, s, b = draft.add_host("a"), draft.add_switch("s"), draft.add_host("b")
    draft.add_link((a, "e0"), (s, "p0"), rate_bps=100, delay_ps=5)
    draft.add_link((b, "e0"), (s, "p1"), rate_bps=100, delay_ps=5)
    return draft.finish()


def changed(column: str, row: int, value: Any) -> Callable[[Fabric], dict[str, Any]]:
    """Return a change of one entry of a column."""

    def change(fabric: Fabric) -> dict[str, Any]:
        old = getattr(fabric, column)
        entries = [value if place == row else entry for place, entry in enumerate(old)]
        return {column: tuple(entries) if isinstance(old, tuple) else np.array(entries)}

    return change


BREACHES: dict[str, Callable[[Fabric], dict[str, Any]]] = {
    "node-named": changed("node_name_N", 0, ""),
    "node-names-differ": changed("node_name_N", 2, "a"),
    "node-kind": changed("node_kind_N", 1, 2),
    "node-group": changed("node_group_N", 1, -2),
    "port-named": changed("port_name_P", 1, ""),
    "port-node": changed("port_node_P", 1, 3),
    "port-peer": changed("port_peer_P", 1, 4),
    "port-rate": changed("port_rate_bps_P", 0, 0),
    "port-delay": changed("port_delay_ps_P", 0, -1),
    "port-nic": changed("port_nic_P", 0, 2),
    "nic-host": changed("nic_host_C", 0, 3),
    "nic-rail": changed("nic_rail_C", 0, -2),
    "nic-address": changed("nic_ipv4_C", 0, 2**32),
    "nic-addresses-differ": lambda fabric: {"nic_ipv4_C": np.full(2, fabric.nic_ipv4_C[0])},
    "tier-fits-kind": changed("node_tier_N", 1, 0),
    "port-names-differ": changed("port_name_P", 3, "p0"),
    "peers-are-mutual": changed("port_peer_P", 0, 0),
    "link-joins-two-nodes": lambda fabric: {"port_peer_P": np.array([2, 3, 0, 1])},
    "link-rates-agree": changed("port_rate_bps_P", 0, 200),
    "nics-own-host-ports": changed("port_nic_P", 0, -1),
    "nic-on-one-host": changed("port_nic_P", 0, 1),
    "nic-is-on-host": changed("nic_host_C", 0, 1),
    "nic-has-ports": lambda fabric: {
        "nic_host_C": np.array([0, 2, 2]),
        "nic_rail_C": np.full(3, -1),
        "nic_ipv4_C": np.arange(3),
    },
}


def test_every_rule_is_tried() -> None:
    """A rule without a breach in this file would be a rule nobody has seen fail."""
    assert set(BREACHES) == {rule.name for stage in STAGES for rule in stage}


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_is_named(name: str) -> None:
    """The error names the rule and says what it demands."""
    fabric = two_hosts()
    with pytest.raises(FabricError) as raised:
        replace(fabric, **BREACHES[name](fabric))
    statement = next(rule.statement for stage in STAGES for rule in stage if rule.name == name)
    found = {(mistake.found, mistake.allowed) for mistake in raised.value.mistakes}
    assert (f"breaks the rule {name}", statement) in found


def test_message_names_port_and_rule() -> None:
    """The whole message of one breach, word for word."""
    fabric = two_hosts()
    with pytest.raises(FabricError) as raised:
        replace(fabric, port_rate_bps_P=np.array([100, 100, 0, 100]))
    assert str(raised.value) == (
        "fabric 'pair': port 2 'b:e0': breaks the rule port-rate\n  allowed: a rate is above 0, up to 100 Tbps"
    )


def test_columns_of_unequal_length_are_refused() -> None:
    """Columns that do not fit cannot be checked further, so this comes alone."""
    with pytest.raises(FabricError, match="columns-fit: every column of the ports has one entry for each"):
        replace(two_hosts(), port_rate_bps_P=np.array([100, 100]))


def test_an_empty_fabric_is_refused() -> None:
    """A topology without nodes is a mistake upstream, never what someone wants to study."""
    with pytest.raises(FabricError, match="not-empty: a fabric has a node"):
        FabricDraft("nothing").finish()


def test_many_breaches_of_one_rule_are_summed_up() -> None:
    """49,152 ports with a wrong rate are MAX_SHOWN lines and a count, not 49,152 lines."""
    fabric = build_clos(ClosSpec(num_hosts=1536, hosts_per_tor_set=64))
    with pytest.raises(FabricError) as raised:
        replace(fabric, port_rate_bps_P=np.zeros(fabric.num_ports, np.int64))
    assert len(raised.value.mistakes) == MAX_SHOWN + 1
    assert raised.value.mistakes[-1].found == f"{49_152 - MAX_SHOWN} more ports break the rule port-rate"


def test_columns_cannot_be_changed() -> None:
    """A checked fabric stays as it was checked."""
    with pytest.raises(ValueError, match="read-only"):
        two_hosts().port_rate_bps_P[0] = 0
