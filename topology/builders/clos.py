"""One parametrised CLOS fabric: ToR sets, rails, two or three tiers, any radix and oversubscription.

A *ToR set* is the ToRs that share their hosts: the links of a host, its first NIC's before its second's, are dealt to
the ToRs of its set in turn, so that with a ToR for each NIC, NIC r of every host goes to ToR r: a rail. ToRs and
aggregation switches form pods; in a pod every ToR reaches every aggregation switch. With three tiers the aggregation
switches' uplinks are dealt to the cores in turn, which gives a fat tree's wiring where numbers are even, and stays
balanced where they are not. With two tiers there is one pod and nothing above it. A ToR port may be split into several
slower NIC links, so that one uplink carries several flows. The ToRs of a set may be dealt to several *planes*, networks
that only hosts join; the counts of aggregation and core switches are those of one plane.

Source: MegaScale (NSDI'24), section 3.6: 64 ports of 400 Gbps, 32 down and 32 up in every tier, each ToR downlink split
into 2 x 200 Gbps, eight rails, up to 64 servers a ToR set. How its pods are wired is not published; here they are full
meshes of ToRs and aggregation switches.
"""

from fabrictune.foundation.units import CABLE_DELAY_PS_PER_MM
from fabrictune.topology.builders.clos_plan import ClosPlan, ClosSpec, plan_clos, preset
from fabrictune.topology.draft import FabricDraft
from fabrictune.topology.fabric import Fabric

__all__ = ["ClosSpec", "build_clos", "plan_clos", "preset"]


def build_clos(spec: ClosSpec) -> Fabric:
    """Return the fabric; NIC c is rail `c % nics_per_host` of host `c // nics_per_host`. Raises FabricError."""
    plan = plan_clos(spec)
    draft = FabricDraft(f"{spec.kind}-{spec.num_hosts}x{spec.nics_per_host}")
    hosts = [
        draft.add_host(f"host{number}", group=number // spec.hosts_per_tor_set) for number in range(spec.num_hosts)
    ]
    tors = [
        draft.add_switch(f"tor{tor_set}-{number}" if plan.tors_per_set > 1 else f"tor{tor_set}", tier=1, group=tor_set)
        for tor_set in range(plan.num_sets)
        for number in range(plan.tors_per_set)
    ]
    aggregations = [
        draft.add_switch(f"agg{pod}-{number}", tier=2, group=plan.num_sets + pod)  # groups of sets come first
        for pod in range(plan.num_pods)
        for number in range(plan.num_planes * plan.aggregations_per_pod)  # those of a plane together
    ]
    cores = [draft.add_switch(f"core{number}", tier=3) for number in range(plan.num_planes * plan.num_cores)]
    _cable_hosts(draft, spec, plan, hosts, tors)
    _cable_pods(draft, spec, plan, tors, aggregations)
    _cable_cores(draft, spec, plan, aggregations, cores)
    return draft.finish()


def _cable_hosts(draft: FabricDraft, spec: ClosSpec, plan: ClosPlan, hosts: list[int], tors: list[int]) -> None:
    links_per_host = spec.nics_per_host * spec.ports_per_nic
    for number, host in enumerate(hosts):
        tor_set, place = divmod(number, spec.hosts_per_tor_set)
        for link in range(links_per_host):
            turn, tor = divmod(link, plan.tors_per_set)
            rail, port = divmod(link, spec.ports_per_nic)
            downlink = place * (links_per_host // plan.tors_per_set) + turn
            draft.add_link(
                (host, f"nic{rail}" if spec.ports_per_nic == 1 else f"nic{rail}p{port}"),
                (tors[tor_set * plan.tors_per_set + tor], _split_name(downlink, spec.downlink_split)),
                rate_bps=spec.nic_rate_bps,
                delay_ps=spec.host_cable_mm * CABLE_DELAY_PS_PER_MM,
                rail=rail,
                nic=None if port == 0 else number * spec.nics_per_host + rail,
            )


def _cable_pods(draft: FabricDraft, spec: ClosSpec, plan: ClosPlan, tors: list[int], aggregations: list[int]) -> None:
    for number, tor in enumerate(tors):
        tor_set, tor_of_set = divmod(number, plan.tors_per_set)
        pod, set_of_pod = divmod(tor_set, plan.sets_per_pod)
        tor_of_plane, plane = divmod(tor_of_set, plan.num_planes)
        place = set_of_pod * (plan.tors_per_set // plan.num_planes) + tor_of_plane
        first_aggregation = (pod * plan.num_planes + plane) * plan.aggregations_per_pod
        for uplink in range(plan.uplinks_per_tor):
            parallel, aggregation = divmod(uplink, plan.aggregations_per_pod)
            downlink = parallel * plan.tors_per_pod + place
            draft.add_link(
                (tor, f"up{uplink}"),
                (aggregations[first_aggregation + aggregation], f"down{downlink}"),
                rate_bps=spec.uplink_rate_bps,
                delay_ps=spec.tor_cable_mm * CABLE_DELAY_PS_PER_MM,
            )


def _cable_cores(draft: FabricDraft, spec: ClosSpec, plan: ClosPlan, aggregations: list[int], cores: list[int]) -> None:
    for number, aggregation in enumerate(aggregations):
        pod_and_plane, aggregation_of_plane = divmod(number, plan.aggregations_per_pod)
        pod, plane = divmod(pod_and_plane, plan.num_planes)
        first_link = (pod * plan.aggregations_per_pod + aggregation_of_plane) * plan.uplinks_per_aggregation
        for uplink in range(plan.uplinks_per_aggregation):
            downlink, core = divmod(first_link + uplink, plan.num_cores)
            draft.add_link(
                (aggregation, f"up{uplink}"),
                (cores[plane * plan.num_cores + core], f"down{downlink}"),
                rate_bps=spec.uplink_rate_bps,
                delay_ps=spec.core_cable_mm * CABLE_DELAY_PS_PER_MM,
            )


def _split_name(downlink: int, split: int) -> str:
    """Return `down3`, or `down3/1` for the second link of a split port."""
    port, lane = divmod(downlink, split)
    return f"down{port}/{lane}" if split > 1 else f"down{port}"
