"""Synthetic workloads, one kind a file, listed here.

Every transfer has a queue pair of its own. Traffic of a job's collectives and of traces is composed at the roof.
"""

from collections.abc import Mapping

from fabrictune.netsim.workloads.all_to_all import AllToAllSpec, make_all_to_all
from fabrictune.netsim.workloads.incast import IncastSpec, make_incast
from fabrictune.netsim.workloads.permutation import PermutationSpec, make_permutation
from fabrictune.netsim.workloads.poisson import PoissonSpec, make_poisson
from fabrictune.netsim.workloads.storage import StorageSpec, make_storage
from fabrictune.netsim.workloads.table import Workload

WORKLOADS: Mapping[str, Workload] = {
    "incast": Workload(spec=IncastSpec, make=make_incast, summary="many NICs send to one"),
    "permutation": Workload(spec=PermutationSpec, make=make_permutation, summary="every NIC sends to one other"),
    "all_to_all": Workload(spec=AllToAllSpec, make=make_all_to_all, summary="every NIC sends to every other"),
    "poisson": Workload(spec=PoissonSpec, make=make_poisson, summary="flows of published sizes at random times"),
    "storage": Workload(spec=StorageSpec, make=make_storage, summary="at intervals all NICs write to a few"),
}
