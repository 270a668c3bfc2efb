"""Ranks of a placement file on the GPUs and NICs of a fabric.

Shapes: R ranks.
"""

from pathlib import Path

import numpy as np

from fabrictune.foundation.errors import InputError, Mistake, nearest_name, quote
from fabrictune.foundation.layout import ParallelLayout
from fabrictune.topology.fabric import NO_NIC, Fabric
from fabrictune.topology.host_choice import MAX_GUESSES, hosts_with_nics
from fabrictune.topology.placement import Placement, nics_of_gpus, require_room
from fabrictune.topology.placement_files import MAX_MISTAKES, UNSET, RankPlace, parse_placement


def read_placement(
    path: Path, layout: ParallelLayout, fabric: Fabric, *, gpus_per_host: int, job: str = ""
) -> Placement:
    """Return the placement that a file has for a job; raises InputError with every mistake, each with its line.

    `job` says whose rows count where the file has a column `job`.
    """
    require_room(layout, gpus_per_host, len(hosts_with_nics(fabric)))
    file = parse_placement(path, layout.world_size, gpus_per_host=gpus_per_host, job=job)
    placed = _Placed(path, fabric, layout.world_size, gpus_per_host)
    for place in sorted(file.places, key=lambda place: place.rank):
        placed.add(place)
    placed.require_all()
    host_R, gpu_R = np.array(placed.host_R, np.int64), np.array(placed.gpu_R, np.int64)
    nic_R, named_R = nics_of_gpus(fabric, host_R, gpu_R, gpus_per_host), np.array(placed.nic_R, np.int64)
    other = int(((named_R != NO_NIC) & (named_R != nic_R)).sum())
    notes = [f"{path}: ranks with another NIC than their GPU's share of the host's: {other}"] if other else []
    return Placement(
        layout=layout,
        host_R=host_R,
        gpu_R=gpu_R,
        nic_R=np.where(named_R == NO_NIC, nic_R, named_R),
        notes=(*file.notes, *notes),
    )


class _Placed:
    """Ranks on the GPUs of a fabric, as far as they are placed."""

    def __init__(self, path: Path, fabric: Fabric, num_ranks: int, gpus_per_host: int) -> None:
        self.path, self.fabric, self.gpus_per_host = path, fabric, gpus_per_host
        self.node_of_name = {fabric.node_name_N[host]: host for host in hosts_with_nics(fabric)}
        self.nic_of_label: dict[str, int] = {}
        for port in np.nonzero(fabric.port_nic_P != NO_NIC)[0].tolist():
            self.nic_of_label[fabric.port_label(port)] = int(fabric.port_nic_P[port])
        self.host_R, self.gpu_R, self.nic_R = ([UNSET] * num_ranks for _ in range(3))
        self.place_R: list[RankPlace | None] = [None] * num_ranks
        self.rank_on: dict[tuple[int, int], int] = {}  # of a host's GPU
        self.next_gpu: dict[int, int] = {}
        self.mistakes: list[Mistake] = []

    def add(self, place: RankPlace) -> None:
        """Place a rank, or note what is wrong with it; raises InputError once that is too much to read."""
        mistake = self._mistake_of(place)
        if mistake is None:
            host = self.node_of_name[place.host]
            gpu = place.gpu if place.gpu != UNSET else self.next_gpu.get(host, 0)
            mistake = self._mistake_of_gpu(place, host, gpu)
        if mistake is not None:
            self.mistakes.append(mistake)
            if len(self.mistakes) >= MAX_MISTAKES:
                raise InputError(*self.mistakes)
            return
        self.next_gpu[host] = gpu + 1
        self.rank_on[host, gpu], self.place_R[place.rank] = place.rank, place
        self.host_R[place.rank], self.gpu_R[place.rank] = host, gpu
        self.nic_R[place.rank] = self.nic_of_label[place.nic] if place.nic else NO_NIC

    def require_all(self) -> None:
        """Raise InputError with all mistakes, and for ranks that the file does not have."""
        missing = [rank for rank, place in enumerate(self.place_R) if place is None]
        if missing and not self.mistakes:
            more = f" and {len(missing) - MAX_MISTAKES} more" if len(missing) > MAX_MISTAKES else ""
            found = f"no place for ranks {', '.join(map(str, missing[:MAX_MISTAKES]))}{more}"
            allowed = f"each of ranks 0 to {len(self.place_R) - 1} once"
            self.mistakes.append(Mistake(where=str(self.path), found=found, allowed=allowed))
        if self.mistakes:
            raise InputError(*self.mistakes)

    def _where(self, place: RankPlace) -> str:
        return f"{self.path}:{place.line}"

    def _mistake_of(self, place: RankPlace) -> Mistake | None:
        """Return what is wrong with a rank's number, host or NIC."""
        where = self._where(place)
        if place.rank >= len(self.place_R):
            last = len(self.place_R) - 1
            return Mistake(
                where=self._where(place), found=f"rank {place.rank}", allowed=f"0 to {last}, those of the layout"
            )
        earlier = self.place_R[place.rank]
        if earlier is not None:
            found = f"rank {place.rank} again, on {place.host}; {self._where(earlier)} has it on {earlier.host}"
            return Mistake(where=where, found=found, allowed="each rank once")
        if place.host not in self.node_of_name:
            names = list(self.node_of_name)
            nearest, shown = nearest_name(place.host, names[:MAX_GUESSES]), ", ".join(names[:8])
            allowed = f"hosts with NICs of the fabric {self.fabric.name!r}: {shown}{', ...' if len(names) > 8 else ''}"
            found = f"unknown host {quote(place.host)}"
            return Mistake(where=where, found=found, allowed=allowed, nearest=nearest)
        if place.nic and place.nic not in self.nic_of_label:
            nearest = nearest_name(place.nic, [label for label in self.nic_of_label if label.startswith(place.host)])
            found = f"unknown NIC {quote(place.nic)}"
            return Mistake(
                where=self._where(place), found=found, allowed="host:port of its first port", nearest=nearest
            )
        host = self.node_of_name[place.host]
        if place.nic and int(self.fabric.nic_host_C[self.nic_of_label[place.nic]]) != host:
            found = f"the NIC {place.nic}, and rank {place.rank} is on {place.host}"
            return Mistake(where=where, found=found, allowed=f"a NIC of {place.host}")
        return None

    def _mistake_of_gpu(self, place: RankPlace, host: int, gpu: int) -> Mistake | None:
        """Return what is wrong with the GPU of a rank: there is none of that number, or it has a rank."""
        where = self._where(place)
        if gpu >= self.gpus_per_host:
            found = f"rank {place.rank} on {place.host} GPU {gpu}"
            allowed = f"GPUs 0 to {self.gpus_per_host - 1}: a host has {self.gpus_per_host}"
            step = "place the rank on another host, or set gpus_per_host"
            return Mistake(where=where, found=found, allowed=allowed, next_step=step)
        other = self.rank_on.get((host, gpu))
        if other is not None:
            earlier = self.place_R[other]
            found = f"rank {place.rank} on {place.host} GPU {gpu}, where rank {other} is"
            step = f"see {self._where(earlier or place)}; give one of them another GPU or host"
            return Mistake(where=where, found=found, allowed="one rank a GPU", next_step=step)
        return None
