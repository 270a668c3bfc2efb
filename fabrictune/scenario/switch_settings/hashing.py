"""Keys of routing from SWITCH_HASH, and from the seed that SONiC gives all switches of a type.

Source: sonic-yang-models, sonic-hash.yang; SONiC, "Generic Hash" (PR 2100 for fields by packet type); orchagent's
switch.json.j2 for seeds.
"""

from collections.abc import Iterator
from typing import Any

from fabrictune.scenario.switch_settings.settings import Setting, said
from fabrictune.topology.fabric import UNKNOWN_TIER
from fabrictune.topology.hashing import HeaderField
from fabrictune.topology.hashing.sonic import SONIC_ALGORITHMS
from fabrictune.topology.switch_qos import FabricQos

HEADER_FIELDS: dict[str, HeaderField] = {
    "SRC_IP": "source_ip",
    "DST_IP": "destination_ip",
    "IP_PROTOCOL": "protocol",
    "L4_SRC_PORT": "source_port",
    "L4_DST_PORT": "destination_port",
    "RDMA_BTH_DEST_QP": "destination_qp",
}
WITHOUT_EFFECT = {  # of fields that the model lacks, what each would do to RoCE packets
    "IN_PORT": "differs by the port a packet came through",
    "SRC_MAC": "is that of the hop before, the same for all its packets on a link",
    "DST_MAC": "is the switch's own on a routed hop",
    "ETHERTYPE": "is the same for all RoCE packets",
    "VLAN_ID": "is the same for all packets of a VLAN",
    "IPV6_FLOW_LABEL": "is in IPv6 packets only",
    "RDMA_BTH_OPCODE": "differs within a message, so that packets of one flow take several paths",
}
WITH_EFFECT = ("IN_PORT", "RDMA_BTH_OPCODE")  # a model without them is another hash


def routing_keys(qos: FabricQos) -> dict[str, Any]:
    """Return the keys of `routing`."""
    elected = qos.elected.get(("hash",))
    keys: dict[str, Any] = {}
    if elected is not None and elected.value.algorithm in SONIC_ALGORITHMS:
        keys["function"] = said(SONIC_ALGORITHMS[elected.value.algorithm], elected, "ecmp_hash_algorithm")
    if elected is not None and (fields := _known_fields(elected.value.header_fields)):
        keys["fields"] = said(f"[{', '.join(fields)}]", elected, elected.value.row)
    return keys | _seeds(qos)


def hash_remarks(qos: FabricQos) -> Iterator[str]:
    """Yield what the model of a hash leaves open or out."""
    value = qos.value("hash")
    if value is None:
        return
    if value.algorithm is None:
        yield "no ecmp_hash_algorithm: the chip's own, modelled by an ideal hash"
    elif value.algorithm not in SONIC_ALGORITHMS:
        yield f"ecmp_hash_algorithm {value.algorithm!r} is not known: an ideal hash is taken"
    else:
        yield f"ecmp_hash_algorithm {value.algorithm} is a family: polynomial and bits are the chip's"
    if value.header_fields is None:
        yield "no header fields of the hash: the 5-tuple, the chips' default, is taken"
        return
    unknown = [name for name in value.header_fields if name not in HEADER_FIELDS]
    for name in unknown:
        if name in WITH_EFFECT:
            yield f"{value.row}: {name} {WITHOUT_EFFECT[name]}: not in the model"
    rest = list(dict.fromkeys(_family(name) for name in unknown if name not in WITH_EFFECT))
    if rest:
        yield f"{value.row}: without effect on RoCE over IPv4: {', '.join(rest)}"
    if not _known_fields(value.header_fields):
        yield f"{value.row}: no field that the model has; the 5-tuple is taken"


def _family(name: str) -> str:
    return "INNER_*" if name.startswith("INNER_") else name


def _known_fields(names: tuple[str, ...] | None) -> list[str]:
    return [field for name, field in HEADER_FIELDS.items() if name in (names or ())]


def _seeds(qos: FabricQos) -> dict[str, Any]:
    """Return seeds: one for all switches of a tier, where their types have one."""
    known = {tier: seed for tier, seed in qos.seed_by_tier.items() if seed.value is not None}
    if not known:
        return {}
    common = next(iter(known.values()))
    keys: dict[str, Any] = {
        "seed": said(common.value, common),
        "seed_per_switch": Setting(value=False, source="switch.json.j2: one seed for all switches of a type"),
    }
    tiers = [
        {"tier": tier, "seed": said(seed.value, seed)}
        for tier, seed in sorted(known.items())
        if tier != UNKNOWN_TIER and seed.value != common.value
    ]
    return keys | ({"tiers": tiers} if tiers else {})
