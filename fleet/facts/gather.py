"""Facts of a fleet: every node's readers, devices by one name each, and what follows from several facts.

An RDMA device, its PCI function and its interface are one device here, named by the interface where that is known: PFC
is the interface's, firmware the RDMA device's, and a rule may ask for both. What cannot be read is counted, node by
node, and never guessed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from fabrictune.fleet.collect.node_reading import CONFIG_DB, NodeReading
from fabrictune.fleet.facts.commands import command_facts
from fabrictune.fleet.facts.fact import HOST, SWITCH, Fact, FleetFacts
from fabrictune.fleet.facts.links import find_links
from fabrictune.fleet.facts.settings_files import settings_facts
from fabrictune.fleet.facts.sonic import sonic_facts
from fabrictune.fleet.facts.sysfs import sysfs_facts, vendor_of
from fabrictune.foundation.errors import FabrictuneError

HOST_READERS = (sysfs_facts, settings_facts, command_facts)


def gather_facts(readings: Sequence[NodeReading]) -> FleetFacts:
    """Return the facts of all nodes, without those that follow from several (`derived`)."""
    roles = {reading.name: role_of(reading) for reading in readings}
    facts: list[Fact] = []
    unread = [(reading.name, what, why) for reading in readings for what, why in reading.unread]
    for reading in readings:
        if roles[reading.name] == SWITCH:
            try:
                facts += sonic_facts(reading)
            except FabrictuneError as error:
                unread.append((reading.name, CONFIG_DB, str(error).split("\n")[0]))
            facts += (fact for fact in command_facts(reading) if fact.name.startswith("switch."))
        else:
            facts += host_facts(reading)
    return FleetFacts(facts=tuple(facts), links=find_links(readings, roles), roles=roles, unread=tuple(unread))


def host_facts(reading: NodeReading) -> list[Fact]:
    """Return the facts of a host, each device by its one name, and of one name and device the first."""
    found = [fact for read in HOST_READERS for fact in read(reading)]
    names = _names(found)
    facts: dict[tuple[str, str], Fact] = {}
    for fact in found:
        device = names.get(fact.device, fact.device)
        facts.setdefault((device, fact.name), replace(fact, device=device))
    facts.update(_vendors(facts, found, names))
    return list(facts.values())


def role_of(reading: NodeReading) -> str:
    """Return whether a node is a host or a switch."""
    return SWITCH if any(section.name == CONFIG_DB for section in reading.sections) else HOST


def _names(facts: Sequence[Fact]) -> Mapping[str, str]:
    """Return the one name of each RDMA device and PCI function."""
    netdev_of = {fact.device: str(fact.value) for fact in facts if fact.name == "rdma.netdev"}
    pci_of = {fact.device: str(fact.value) for fact in facts if fact.name == "rdma.pci"}
    of_pci = {pci: netdev_of.get(device, device) for device, pci in pci_of.items()}
    return {**of_pci, **netdev_of}


def _vendors(
    facts: Mapping[tuple[str, str], Fact], found: Sequence[Fact], names: Mapping[str, str]
) -> Iterator[tuple[tuple[str, str], Fact]]:
    """Yield the vendor of devices whose driver's link was not read, by their names."""
    for fact in found:
        device = names.get(fact.device, fact.device)
        if fact.name == "rdma.state" and (device, "rdma.vendor") not in facts and (vendor := vendor_of(fact.device)):
            yield (device, "rdma.vendor"), replace(fact, device=device, name="rdma.vendor", value=vendor)
