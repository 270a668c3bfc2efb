"""Paths seen beside paths predicted, on paths that the model itself made and then on others."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.builders.clos import ClosSpec, build_clos
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.probing.comparison import Model, PathComparison, Way, compare_paths
from fabrictune.topology.probing.findings import find_differences
from fabrictune.topology.probing.observations import Ending
from fabrictune.topology.probing.paths import ObservedPath, TargetPaths

NUM_PORTS = 64
SOURCE_PORTS = range(49152, 49152 + NUM_PORTS)
ANY_QPN = 0xFFFFFE
SOURCE_NIC, TARGET_NIC = 0, 2


@pytest.fixture(scope="module")
def leaf_spine() -> Fabric:
    """Return two leaves and four spines."""
    return build_clos(
        ClosSpec(num_hosts=4, hosts_per_tor_set=2, nics_per_host=1, tiers=2, uplinks_per_tor=4, downlink_split=1)
    )


def names_of(fabric: Fabric) -> dict[int, str]:
    """Give every port an address, its number plus 1000."""
    return {1000 + port: fabric.port_label(port) for port in range(fabric.num_ports)}


def seen_as(fabric: Fabric, ways: Sequence[Way], ending: Ending = Ending.ARRIVED) -> TargetPaths:
    """Return what a probing would see if each source port took one of these ways, by the addresses of `names_of`."""
    address = {name: number for number, name in names_of(fabric).items()}
    source, target = fabric.nic_ipv4_C[[SOURCE_NIC, TARGET_NIC]].tolist()
    end = ((target,),) if ending is Ending.ARRIVED else ()
    ports: dict[Way, list[int]] = {}
    for way, port in zip(ways, SOURCE_PORTS, strict=False):
        ports.setdefault(way, []).append(port)
    paths = tuple(
        ObservedPath(hops=(*((address[hop],) for hop in way), *end), ending=ending, source_ports=tuple(numbers))
        for way, numbers in ports.items()
    )
    return TargetPaths(source_ipv4=source, target_ipv4=target, paths=paths)


def ways_of(fabric: Fabric, spec: HashSpec) -> list[Way]:
    """Return the way of each source port under a hash."""
    source, target = fabric.nic_ipv4_C[[SOURCE_NIC, TARGET_NIC]].tolist()
    return Model(fabric, spec, ANY_QPN).ways(source, target, list(SOURCE_PORTS), has_ports=True)


def ids(comparison: PathComparison) -> list[str]:
    """Return the rules that a comparison breaks."""
    return [finding.id for finding in find_differences(comparison)]


@pytest.mark.parametrize("ending", [Ending.ARRIVED, Ending.SILENT])
def test_a_network_that_hashes_as_the_model_agrees_in_full(ending: Ending, leaf_spine: Fabric) -> None:
    """Same function, same seed, whether or not the target answers: 64 of 64, and nothing to say."""
    target = seen_as(leaf_spine, ways_of(leaf_spine, HashSpec(seed=5)), ending)
    comparison = compare_paths(target, names_of(leaf_spine), Model(leaf_spine, HashSpec(seed=5), ANY_QPN))
    assert (comparison.num_agreeing, comparison.num_source_ports) == (NUM_PORTS, NUM_PORTS)
    assert comparison.seen == comparison.predicted
    assert ids(comparison) == []


def test_another_seed_keeps_the_paths_and_agrees_by_chance(leaf_spine: Fabric) -> None:
    """Four equal paths: about one port in four, as two hashes without a seed in common do."""
    target = seen_as(leaf_spine, ways_of(leaf_spine, HashSpec(seed=5)))
    comparison = compare_paths(target, names_of(leaf_spine), Model(leaf_spine, HashSpec(seed=6), ANY_QPN))
    assert comparison.seen == comparison.predicted
    assert comparison.chance_fraction == pytest.approx(1 / 4, abs=0.01)
    assert 0 < comparison.num_agreeing < NUM_PORTS // 2
    assert ids(comparison) == ["probe.choice-differs"]


def test_a_path_that_no_port_took_is_missing(leaf_spine: Fabric) -> None:
    """Where all flows of one spine go over another, the first is named."""
    ways = ways_of(leaf_spine, HashSpec())
    lost, kept = sorted(set(ways))[:2]
    target = seen_as(leaf_spine, [kept if way == lost else way for way in ways])
    comparison = compare_paths(target, names_of(leaf_spine), Model(leaf_spine, HashSpec(), ANY_QPN))
    assert (comparison.missing, comparison.unpredicted) == ((lost,), ())
    assert ids(comparison) == ["probe.missing", "probe.choice-differs"]


def test_few_source_ports_prove_no_path_missing(leaf_spine: Fabric) -> None:
    """Eight ports on one path: the other three are each missed with probability 0.75 ** 8 = 10 %."""
    target = seen_as(leaf_spine, ways_of(leaf_spine, HashSpec())[:1] * 8)
    assert compare_paths(target, names_of(leaf_spine), Model(leaf_spine, HashSpec(), ANY_QPN)).missing == ()


def test_a_path_that_the_cabling_does_not_have_is_an_error(leaf_spine: Fabric) -> None:
    """Up to spine 0 and down from spine 1."""
    crossed = ("tor0:down0", "agg0-0:down0", "tor1:up1")
    target = seen_as(leaf_spine, [crossed, *ways_of(leaf_spine, HashSpec())[1:]])
    comparison = compare_paths(target, names_of(leaf_spine), Model(leaf_spine, HashSpec(), ANY_QPN))
    assert comparison.unpredicted == (crossed,)
    (first, *_) = find_differences(comparison)
    assert (first.id, first.evidence) == ("probe.unpredicted", ("tor0:down0 > agg0-0:down0 > tor1:up1",))


def test_names_without_ports_are_compared_by_switch(leaf_spine: Fabric) -> None:
    """A hosts file that knows only switches still tells the spines apart."""
    names = {address: name.partition(":")[0] for address, name in names_of(leaf_spine).items()}
    target = seen_as(leaf_spine, ways_of(leaf_spine, HashSpec()))
    comparison = compare_paths(target, names, Model(leaf_spine, HashSpec(), ANY_QPN))
    assert comparison.predicted == tuple(("tor0", f"agg0-{spine}", "tor1") for spine in range(4))
    assert comparison.num_agreeing == NUM_PORTS


def test_addresses_without_a_name_are_told(leaf_spine: Fabric) -> None:
    """One spine's address is not in the file: its flows are not compared, and the address is named."""
    names = names_of(leaf_spine)
    (unnamed,) = [address for address, name in names.items() if name == "agg0-1:down0"]
    del names[unnamed]
    target = seen_as(leaf_spine, ways_of(leaf_spine, HashSpec()))
    comparison = compare_paths(target, names, Model(leaf_spine, HashSpec(), ANY_QPN))
    assert comparison.unnamed_ipv4 == (unnamed,)
    assert comparison.num_source_ports < NUM_PORTS
    assert comparison.num_agreeing == comparison.num_source_ports
    assert ids(comparison)[0] == "probe.unnamed"


def test_what_was_seen_in_part_is_not_compared(leaf_spine: Fabric) -> None:
    """An unknown hop, a path that fell silent early, one that was refused: 0 source ports, and no path is missing."""
    source, target = leaf_spine.nic_ipv4_C[[SOURCE_NIC, TARGET_NIC]].tolist()
    leaf = next(address for address, name in names_of(leaf_spine).items() if name == "tor0:down0")
    paths = tuple(
        ObservedPath(hops=hops, ending=ending, source_ports=tuple(SOURCE_PORTS))
        for hops, ending in [
            (((leaf,), (), (target,)), Ending.ARRIVED),
            (((leaf,),), Ending.SILENT),
            (((leaf,),), Ending.REFUSED),
            ((), Ending.SILENT),
        ]
    )
    seen = TargetPaths(source_ipv4=source, target_ipv4=target, paths=paths)
    comparison = compare_paths(seen, names_of(leaf_spine), Model(leaf_spine, HashSpec(), ANY_QPN))
    assert (comparison.num_source_ports, comparison.missing, comparison.seen) == (0, (), ())


def test_a_fabric_without_the_address_is_refused(leaf_spine: Fabric) -> None:
    """The scenario's fabric must have the NICs that are probed."""
    elsewhere = replace(leaf_spine, nic_ipv4_C=leaf_spine.nic_ipv4_C + np.int64(100))
    with pytest.raises(InputError) as caught:
        Model(elsewhere, HashSpec(), ANY_QPN).find_nic(int(leaf_spine.nic_ipv4_C[TARGET_NIC]))
    assert str(caught.value) == (
        f"fabric '{leaf_spine.name}': no NIC has the address 10.0.0.3\n"
        "  next: compare with a fabric whose NICs have the addresses that were probed"
    )
