"""Failed switches and links: from their names to the ports that carry nothing any more.

The fabric stays as it is, so that nodes keep their hash seeds and ports their numbers; routing receives the failures.
A network in time is a row of routing epochs, of which each later one begins when routing has converged.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from fabrictune.foundation.arrays import BoolArray
from fabrictune.foundation.errors import InputError, Mistake, RouteError
from fabrictune.topology.fabric import Fabric
from fabrictune.topology.hashing import HashSpec
from fabrictune.topology.lookup import find_node, find_port
from fabrictune.topology.network import Network
from fabrictune.topology.routing import route


def failed_ports(fabric: Fabric, failed: Sequence[str], *, where: str = "fail") -> BoolArray:
    """Return which ports are down, both of every link that is named `node:port` or hangs on a `node`; shape (P,).

    Raises InputError for a name that is none.
    """
    is_down_P = np.zeros(fabric.num_ports, bool)
    for name in failed:
        if ":" in name:
            is_down_P[find_port(fabric, name, where=where)] = True
        else:
            is_down_P |= fabric.port_node_P == find_node(fabric, name, where=where)
    down_P: BoolArray = is_down_P | is_down_P[fabric.port_peer_P]
    return down_P


def reroute(
    network: Network, hash_spec: HashSpec, failed: Sequence[str], *, start_ps: int, where: str = "fail"
) -> Network:
    """Return the network with one more epoch: from `start_ps` on all of `failed` is down, and nothing else is.

    What an earlier epoch had down and `failed` does not name is repaired. Raises InputError for a name that is none or
    a start before that of the last epoch, and RouteError naming the queue pairs that are cut off.
    """
    last_ps = network.epochs[-1].start_ps
    if start_ps <= last_ps:
        raise InputError(Mistake(where=where, found=f"a start at {start_ps} ps", allowed=f"one after {last_ps} ps"))
    is_failed_P = failed_ports(network.fabric, failed, where=where)
    try:
        epoch = route(network.fabric, network.queue_pairs, hash_spec, start_ps=start_ps, is_failed_P=is_failed_P)
    except RouteError as error:
        raise RouteError(*(_with_cause(mistake, failed) for mistake in error.mistakes)) from None
    return replace(network, epochs=(*network.epochs, epoch))


def follow_failures(
    network: Network, hash_spec: HashSpec, states: Iterable[tuple[int, frozenset[int]]], *, delay_ps: int
) -> Network:
    """Return the network with an epoch for each state of its ports, `delay_ps` (1 or more) after the state began.

    A state is an instant and the ports that are down from then on; instants ascend. Queue pairs that a state cuts off
    have no path in its epoch. Epochs of equal states share their paths, so that a link may flap a thousand times.
    """
    assert delay_ps >= 1, "the first epoch has begun"
    epochs, now = [network.epochs[0]], frozenset[int]()
    of_state = {now: network.epochs[0]}
    for time_ps, down in states:
        if down == now:
            continue
        now, start_ps = down, time_ps + delay_ps
        if down not in of_state:
            is_failed_P = np.zeros(network.fabric.num_ports, bool)
            is_failed_P[list(down)] = True
            of_state[down] = route(
                network.fabric, network.queue_pairs, hash_spec, is_failed_P=is_failed_P, may_cut_off=True
            )
        epochs.append(replace(of_state[down], start_ps=start_ps))
    return replace(network, epochs=tuple(epochs))


def _with_cause(mistake: Mistake, failed: Sequence[str]) -> Mistake:
    return replace(
        mistake,
        found=f"{mistake.found} while {', '.join(failed)} {'is' if len(failed) == 1 else 'are'} down",
        allowed="failures that leave every queue pair a path",
        next_step="attach NICs to two ToRs, or leave these NICs out of the job",
    )
