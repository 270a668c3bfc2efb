"""Placement: which host, GPU and NIC each rank of a job gets.

Ranks are taken with their tensor groups together, then context-parallel and data-parallel neighbours next to one
another, whatever order their numbers have, and laid on the places a strategy offers. A place is a block of GPUs of one
host that holds a tensor group. *Contiguous* fills one ToR set before the next, so that a data-parallel ring leaves its
set only where it must. *Interleaved* deals the blocks out over the sets in turn, so that every step of the ring climbs
to the aggregation switches. *Random* takes them in any order: what a scheduler does that does not know the network.

Source: MegaScale (NSDI'24), section 3.6: data-intensive nodes are scheduled under the same ToRs.

Shapes: R ranks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, zip_longest

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.errors import InputError, Mistake, require_one_of
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.foundation.seeds import stream
from fabrictune.topology.fabric import Fabric

Place = tuple[int, int]  # host, first GPU of the block
SetPlaces = Sequence[Sequence[Place]]  # the places of each ToR set


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Host, GPU and NIC of every rank of a layout."""

    layout: ParallelLayout
    host_R: IntArray  # node
    gpu_R: IntArray  # index in the host
    nic_R: IntArray  # the NIC of the rank's GPU
    notes: tuple[str, ...] = ()  # what was guessed or left out where a file said it


def contiguous(places: SetPlaces, seed: int) -> list[Place]:
    """Return the places of one ToR set after another."""
    return list(chain.from_iterable(places))


def interleaved(places: SetPlaces, seed: int) -> list[Place]:
    """Return the first place of every ToR set, then the second of every one, and so on."""
    return [place for places_of_turn in zip_longest(*places) for place in places_of_turn if place is not None]


def random(places: SetPlaces, seed: int) -> list[Place]:
    """Return the places in an order drawn at random, those of one host together."""
    hosts = [list(own) for _, own in groupby(contiguous(places, seed), key=lambda place: place[0])]
    return [place for row in stream(seed, "placement").permutation(len(hosts)).tolist() for place in hosts[row]]


PLACEMENTS: Mapping[str, Callable[[SetPlaces, int], list[Place]]] = {
    "contiguous": contiguous,
    "interleaved": interleaved,
    "random": random,
}


def place(
    layout: ParallelLayout,
    fabric: Fabric,
    strategy: str,
    *,
    gpus_per_host: int = 8,
    seed: int = 0,
    hosts: Sequence[int] | None = None,
) -> Placement:
    """Return the placement of a job on `hosts`, by default all; raises InputError where these have too few GPUs.

    A host's GPUs share its NICs evenly, in order: GPU g of G uses NIC `g * nics // G`. Hosts without NIC are left out.
    `seed` is that of the random strategy; the others have nothing to draw.
    """
    require_one_of(strategy, tuple(PLACEMENTS), where="placement", what="placement", error=InputError)
    hosts_of_set = tor_sets(fabric)
    if hosts is not None:
        allowed = set(hosts)
        hosts_of_set = [[host for host in own if host in allowed] for own in hosts_of_set]
    require_room(layout, gpus_per_host, sum(map(len, hosts_of_set)), is_of_some=hosts is not None)
    block = math.gcd(layout.tp, gpus_per_host)
    places = [[(host, gpu) for host in hosts for gpu in range(0, gpus_per_host, block)] for hosts in hosts_of_set]
    chosen = np.array(PLACEMENTS[strategy](places, seed), np.int64).reshape(-1, 2)
    position = layout.coordinates(np.arange(layout.world_size))
    of_stage_R = position["cp"] + layout.cp * (position["dp"] + layout.dp * position["pp"])
    slot_R = position["tp"] + layout.tp * of_stage_R
    host_R = chosen[slot_R // block, 0]
    gpu_R = chosen[slot_R // block, 1] + slot_R % block
    nic_R = nics_of_gpus(fabric, host_R, gpu_R, gpus_per_host)
    return Placement(layout=layout, host_R=host_R, gpu_R=gpu_R, nic_R=nic_R)


def require_room(layout: ParallelLayout, gpus_per_host: int, num_hosts: int, *, is_of_some: bool = False) -> None:
    """Raise InputError for a job of more ranks than hosts have GPUs; `is_of_some`: there are others besides these."""
    num_gpus = gpus_per_host * num_hosts
    if layout.world_size > num_gpus or gpus_per_host < 1:
        more = "name more hosts" if is_of_some else "build a larger fabric"
        raise InputError(
            Mistake(
                where="hosts" if is_of_some else "placement",
                found=f"{layout.world_size} ranks for {num_gpus} GPUs at {gpus_per_host} a host",
                allowed="a rank for each GPU at most",
                next_step=f"lower the degrees of the layout, or {more}",
            )
        )


def tor_sets(fabric: Fabric) -> list[list[int]]:
    """Return the hosts that have NICs, by the switches they are cabled to; sets and hosts in node order."""
    on_host_P = fabric.port_nic_P >= 0
    attached: dict[int, set[int]] = {}
    switches_P = fabric.port_node_P[fabric.port_peer_P[on_host_P]]
    for host, switch in zip(fabric.port_node_P[on_host_P].tolist(), switches_P.tolist(), strict=True):
        attached.setdefault(host, set()).add(switch)
    sets: dict[frozenset[int], list[int]] = {}
    for host in sorted(attached):
        sets.setdefault(frozenset(attached[host]), []).append(host)
    return list(sets.values())


def nics_of_gpus(fabric: Fabric, host_R: IntArray, gpu_R: IntArray, gpus_per_host: int) -> IntArray:
    """Return the NIC of each GPU: a host's GPUs share its NICs evenly, in order."""
    order_C = np.argsort(fabric.nic_host_C, kind="stable")
    first_N1 = np.searchsorted(fabric.nic_host_C[order_C], np.arange(fabric.num_nodes + 1))
    num_nics_R = first_N1[host_R + 1] - first_N1[host_R]
    nic_R: IntArray = order_C[first_N1[host_R] + gpu_R * num_nics_R // gpus_per_host]
    return nic_R
