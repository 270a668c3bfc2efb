"""Containerlab topologies (`*.clab.yml`): nodes, and links in their brief and extended forms.

Labels of a node say what it is: `fabrictune-kind: host | switch` and `fabrictune-tier: 2`. Without them its `group`
does, where that is a role such as `leaf`, `spine` or `server`, else a label that other tools read (ROLE_LABELS). Else
nodes of kind `linux` (and the other kinds in HOST_KINDS, testers among them) become hosts with a NIC for each cabled
interface, and all other kinds switches. A node of kind `linux` whose image is routing software, or that is called as a
switch is, becomes a switch, which is noted.
Containerlab's cables have neither rate nor length; labels of a link may give them (`fabrictune-rate: 400 Gbps`,
`fabrictune-cable: 30 m`), and every other link gets the defaults, which is noted. Links to the machine that runs the
lab (`host`, `mgmt-net`, `macvlan`) and links with one end (`dummy`, `vxlan`) carry none of the fabric's traffic; they
are skipped and noted.

Names may hold `${VAR:=default}` or `${VAR:-default}`: the default is used. A variable without default is refused, since
the fabric would depend on who reads it.

Source: containerlab, "Topology definition file" and schemas/clab.schema.json (version 0.60).
Left out: Go templates (render them first), stages, and everything that configures a node.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote as quoted
from typing import Any

from fabrictune.foundation.documents import Document, Key, load_yaml
from fabrictune.foundation.errors import FabricError, Mistake, UnitError
from fabrictune.foundation.units import CABLE_DELAY_PS_PER_MM, parse_length_mm, parse_link_rate_bps
from fabrictune.topology.assumed_links import assumed_notes
from fabrictune.topology.draft import DEFAULT_CABLE_MM, DEFAULT_RATE_BPS
from fabrictune.topology.fabric import UNKNOWN_TIER, Fabric, NodeKind
from fabrictune.topology.importers.cabling import Cable, Cabling, End, the_only
from fabrictune.topology.importers.recognition import begins_with
from fabrictune.topology.importers.roles import HOST_TIER, named, tier_of_name, tier_of_role

LINUX = "linux"
HOST_KINDS = (LINUX, "host", "ext-container", "k8s-kind", "keysight_ixia-c-one")
LINK_TYPES = ("veth", "veth-stitch")  # between two nodes
SKIPPED_LINK_TYPES = ("host", "mgmt-net", "macvlan", "dummy", "vxlan", "vxlan-stitch")
KIND_LABEL, TIER_LABEL = "fabrictune-kind", "fabrictune-tier"
ROLE_LABELS = ("role", "topoViewer-role", "graph-icon", "ansible-group")  # of other tools, in this order
RATE_LABEL, CABLE_LABEL = "fabrictune-rate", "fabrictune-cable"

_ROUTER_IMAGE = re.compile(r"\b(frr|frrouting|bird|gobgp|quagga|holo|cumulus|sonic)", re.IGNORECASE)
_HEAD = re.compile(rb"^\s*[{\"']?\s*(topology|fabric)\b", re.MULTILINE)  # or a scenario, which is then called one
_VARIABLE = re.compile(r"\$\{?(\w+)(?::[=-]([^}]*))?\}?")


def is_containerlab(path: Path) -> bool:
    """Return whether the file is YAML, and its name or its beginning that of a containerlab topology."""
    if path.suffix not in (".yml", ".yaml"):
        return False
    return ".clab." in path.name or begins_with(path, _HEAD)


def load_containerlab(paths: Sequence[Path], *, default_rate_bps: int = DEFAULT_RATE_BPS) -> Fabric:
    """Read one topology file; raises InputError with every mistake in it."""
    return _Reader(load_yaml(the_only(paths)), default_rate_bps).read()


class _Reader:
    """Reads one document into a Cabling."""

    def __init__(self, document: Document, default_rate_bps: int) -> None:
        self.document = document
        self.default_rate_bps = default_rate_bps
        self.num_defaulted = 0
        self.num_default_cables = 0
        self.guessed: dict[str, list[str]] = {}  # by what was guessed: nodes
        self.cabling = Cabling(document.path.name.split(".")[0])

    def read(self) -> Fabric:
        top = self._mapping(self.document.tree)
        if "topology" not in top and "fabric" in top and "traffic" in top:
            raise FabricError(_scenario(self.document))
        topology = self._mapping(top.get("topology"), "topology")
        nodes = self._mapping(topology.get("nodes"), "topology", "nodes")
        if self.cabling.mistakes:
            raise FabricError(*self.cabling.mistakes)
        if isinstance(top.get("name"), str):
            self.cabling.name = self._text(top["name"], "name")
        for name, node in nodes.items():
            self._read_node(topology, name, {} if node is None else node)
        links = topology.get("links")
        if links is not None and not isinstance(links, list):
            self._mistake("not a list of links", "a list", "topology", "links")
        for row, link in enumerate(links if isinstance(links, list) else []):
            self._read_link(row, link)
        self.cabling.notes.extend(assumed_notes(self.num_defaulted, self.default_rate_bps, self.num_default_cables))
        self.cabling.notes.extend(f"{guess}: {named(names)}" for guess, names in self.guessed.items())
        return self.cabling.finish()

    def _read_node(self, topology: Mapping[str, Any], name: str, node: Any) -> None:
        keys = ("topology", "nodes", name)
        if not isinstance(node, dict):
            self._mistake("not a mapping", "a mapping", *keys)
            return
        settings = self._settings(topology, node)
        labels = settings["labels"]
        kind_name = self._text(settings.get("kind", ""), *keys, "kind")
        group_tier = _tier_of(settings["group"], labels)
        kind = NodeKind.HOST if kind_name in HOST_KINDS else NodeKind.SWITCH
        if group_tier is not None:
            kind = NodeKind.HOST if group_tier == HOST_TIER else NodeKind.SWITCH
        if KIND_LABEL in labels:
            label = str(labels[KIND_LABEL])
            if label not in ("host", "switch"):
                self._mistake(f"{KIND_LABEL} {label!r}", "host or switch", *keys, "labels", KIND_LABEL)
            kind = NodeKind.HOST if label == "host" else NodeKind.SWITCH
        elif not kind_name:
            self._mistake("a node without kind", "a kind of its own, of its group, or by default", *keys)
        elif kind_name == LINUX and group_tier is None:
            kind = self._kind_of_linux(str(name), str(settings["image"]))
        tier = str(labels.get(TIER_LABEL, group_tier or UNKNOWN_TIER))
        if kind == NodeKind.SWITCH and TIER_LABEL in labels and not re.fullmatch("[1-9]", tier):
            self._mistake(f"{TIER_LABEL} {tier!r}", "1 to 9", *keys, "labels", TIER_LABEL)
            tier = str(UNKNOWN_TIER)
        name = self._text(name, *keys)
        if name in self.cabling.nodes:
            self._mistake(f"the node {name!r} a second time", "one name for each node", *keys)
        where = self.document.where(*keys)
        self.cabling.add_node(name, kind, where=where, tier=int(tier) if kind == NodeKind.SWITCH else UNKNOWN_TIER)

    def _kind_of_linux(self, name: str, image: str) -> NodeKind:
        """Return what a container without a role is, by its name and its image; a switch is noted as a guess."""
        tier = tier_of_name(name)
        if tier is None and _ROUTER_IMAGE.search(image):
            self.guessed.setdefault("nodes of kind linux with routing software, taken as switches", []).append(name)
        elif tier is not None and tier != HOST_TIER:
            self.guessed.setdefault("nodes of kind linux, taken as switches by their names", []).append(name)
        else:
            return NodeKind.HOST
        return NodeKind.SWITCH

    def _settings(self, topology: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
        """Return a node's kind, image, group and labels: its own before those of its group, its kind and the defaults.

        The defaults may name the group of nodes without one.
        """
        defaults = _section(topology, "defaults")
        default_group = _section(topology, "groups", defaults.get("group"))
        group = _section(topology, "groups", node["group"]) if "group" in node else default_group
        kinds = (layer.get("kind") for layer in (node, group, default_group, defaults))
        kind = next((kind for kind in kinds if kind is not None), "")
        layers = (defaults, _section(topology, "kinds", kind), group, node)
        labels = {key: value for layer in layers for key, value in _section(layer, "labels").items()}
        image = next((layer["image"] for layer in reversed(layers) if layer.get("image")), "")
        role = node.get("group", "" if "kind" in node else defaults.get("group", ""))
        return {"kind": kind, "labels": labels, "image": image, "group": role}

    def _read_link(self, row: int, link: Any) -> None:
        keys = ("topology", "links", row)
        before = len(self.cabling.mistakes)
        link = self._mapping(link, *keys)
        if len(self.cabling.mistakes) > before:
            return
        link_type = link.get("type", "veth")
        if link_type in SKIPPED_LINK_TYPES:
            self.cabling.notes.append(f"{self.document.where(*keys)}: a link of type {link_type} skipped")
            return
        if link_type not in LINK_TYPES:
            allowed = ", ".join((*LINK_TYPES, *SKIPPED_LINK_TYPES))
            self._mistake(f"a link of the type {str(link_type)[:40]!r}", allowed, *keys, "type")
            return
        endpoints = link.get("endpoints")
        if not isinstance(endpoints, list) or len(endpoints) != 2:
            self._mistake("not two endpoints", '["node:interface", "node:interface"]', *keys, "endpoints")
            return
        ends = [self._read_end(end, *keys, "endpoints", column) for column, end in enumerate(endpoints)]
        outside = [end[0] for end in ends if end and end[0] in SKIPPED_LINK_TYPES and end[0] not in self.cabling.nodes]
        if outside:
            self.cabling.notes.append(f"{self.document.where(*keys)}: a link to {outside[0]} skipped")
        elif ends[0] and ends[1]:
            self._add_cable((ends[0], ends[1]), _section(link, "labels"), keys)

    def _read_end(self, end: Any, *keys: Key) -> End | None:
        """Return one end of a link in either form, or None where it has no meaning."""
        if isinstance(end, str) and ":" in end:
            node, _, interface = self._text(end, *keys).partition(":")
        elif isinstance(end, dict) and isinstance(end.get("node"), str) and isinstance(end.get("interface"), str):
            node, interface = self._text(end["node"], *keys, "node"), self._text(end["interface"], *keys, "interface")
        else:
            node = interface = ""
        if not node or not interface:
            self._mistake("not an end of a link", '"node:interface", or node and interface', *keys)
            return None
        return node, interface

    def _add_cable(self, ends: tuple[End, End], labels: Mapping[str, Any], keys: tuple[Key, ...]) -> None:
        rate_bps, cable_mm = self.default_rate_bps, DEFAULT_CABLE_MM
        self.num_defaulted += RATE_LABEL not in labels
        self.num_default_cables += CABLE_LABEL not in labels
        try:
            if RATE_LABEL in labels:
                where = self.document.where(*keys, "labels", RATE_LABEL)
                rate_bps = parse_link_rate_bps(str(labels[RATE_LABEL]), where=where)
            if CABLE_LABEL in labels:
                where = self.document.where(*keys, "labels", CABLE_LABEL)
                cable_mm = parse_length_mm(str(labels[CABLE_LABEL]), where=where)
        except UnitError as error:
            self.cabling.add_mistakes(*error.mistakes)
        delay_ps = cable_mm * CABLE_DELAY_PS_PER_MM
        where = self.document.where(*keys)
        self.cabling.cables.append(Cable(ends=ends, rate_bps=rate_bps, delay_ps=delay_ps, where=where))

    def _text(self, value: Any, *keys: Key) -> str:
        """Return text with variables replaced by their defaults; what has none is a mistake."""
        if not isinstance(value, str):
            self._mistake(f"a {type(value).__name__}", "text", *keys)
            return ""

        def default(match: re.Match[str]) -> str:
            if match[2] is None:
                self._mistake(f"the variable {match[0]} without a default", "names, or ${NAME:=default}", *keys)
                return match[0]
            self.cabling.notes.append(f"{self.document.where(*keys)}: {match[0]} taken as {match[2]!r}")
            return match[2]

        return _VARIABLE.sub(default, value)

    def _mapping(self, value: Any, *keys: Key) -> Mapping[str, Any]:
        if isinstance(value, dict):
            return value
        self._mistake("nothing" if value is None else "not a mapping", "a mapping", *keys)
        return {}

    def _mistake(self, found: str, allowed: str, *keys: Key) -> None:
        self.cabling.add_mistakes(Mistake(where=self.document.where(*keys), found=found, allowed=allowed))


def _scenario(document: Document) -> Mistake:
    """Return the mistake of a scenario given as a topology, with the command that shows its fabric."""
    fabric = document.tree["fabric"] if isinstance(document.tree["fabric"], dict) else {}
    builder, file = fabric.get("builder"), fabric.get("file")
    command = f"fabrictune scenario check {quoted(str(document.path))}"
    if isinstance(file, str):
        command = f"fabrictune topo show {quoted(str(document.path.parent / file))}"
    elif isinstance(builder, str):
        settings = [quoted(f"{key}={value}") for key, value in fabric.items() if key != "builder"]
        command = " ".join(["fabrictune topo build", quoted(builder), *settings])
    found = "a scenario of fabrictune, not a topology"
    next_step = f"see its fabric: {command}"
    return Mistake(where=str(document.path), found=found, allowed="a topology file", next_step=next_step)


def _section(mapping: Mapping[str, Any], *keys: Any) -> Mapping[str, Any]:
    """Return the mapping at the end of a path of keys, empty where there is none."""
    value: Any = mapping
    for key in keys:
        value = value.get(key) if isinstance(value, dict) and isinstance(key, str) else None
    return value if isinstance(value, dict) else {}


def _tier_of(group: Any, labels: Mapping[str, Any]) -> int | None:
    """Return the tier of the first role among a node's group and labels, None where none of them is one."""
    roles = (str(role) for role in (group, *(labels.get(name, "") for name in ROLE_LABELS)))
    return next((tier for role in roles if (tier := tier_of_role(role)) is not None), None)
