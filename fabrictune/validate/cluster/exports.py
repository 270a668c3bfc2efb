"""Limits of this fabric in the forms of other tools: LBNL Node Health Check, and SuperBench's diagnosis rules.

NHC gets each node's interfaces with the speed and MTU that were planned; SuperBench the least rate of a flow (RDMA, its
link's rate less RoCEv2's headers) and of an all-reduce's ring, in 10^9 bytes a second as its metrics have it.

Source: mej/nhc, README (check_hw_eth, check_cmd_output); microsoft/superbenchmark, docs/user-tutorial/data-diagnosis.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from fabrictune.foundation.finding_rules.cluster import FLOW_LOW
from fabrictune.foundation.output_files import replaced_file
from fabrictune.validate.cluster.nics import Nic
from fabrictune.validate.cluster.rate_model import RateModel
from fabrictune.validate.cluster.site import Site

FOLDER, NHC, SUPERBENCH = "limits", "nhc.conf", "superbench.yaml"
ROCE_MTU, ROCE_OVERHEAD = 4096, 82  # Ethernet 38, IPv4 20, UDP 8, base transport header 12, check sequence 4
BYTES_PER_GB = 10**9
BITS, MBPS = 8, 10**6


def write_limits(site: Site) -> Path:
    """Write the files into the validation's folder, and return theirs; raises InputError."""
    folder = site.folder / FOLDER
    folder.mkdir(exist_ok=True)
    for name, lines in ((NHC, nhc_lines(site)), (SUPERBENCH, superbench_lines(site))):
        with replaced_file(folder / name) as half:
            half.write_text("".join(f"{line}\n" for line in lines))
    return folder


def nhc_lines(site: Site) -> Iterator[str]:
    """Yield the lines of NHC's configuration."""
    yield "# Limits of the planned fabric for LBNL Node Health Check"
    for node, nics in site.nics.nics.items():
        for nic in nics:
            yield f"{node} || check_hw_eth {nic.interface}"
            yield f"{node} || check_cmd_output -m '/mtu {nic.mtu} /' ip link show {nic.interface}"
            if nic.rate_bps:
                speed = f"/Speed: {round(nic.rate_bps / MBPS)}Mb/"
                yield f"{node} || check_cmd_output -m '{speed}' ethtool {nic.interface}"


def superbench_lines(site: Site) -> Iterator[str]:
    """Yield the lines of a rule file for `sb result diagnosis`; rules of what is not known are left out."""
    yield "# Limits of the planned fabric: sb result diagnosis --rule-file superbench.yaml"
    yield "version: v0.11"
    yield "superbench:"
    yield "  rules:"
    nics = [nic for own in site.nics.nics.values() for nic in own if nic.rate_bps]
    if not nics:
        yield "    {}  # no link's rate is known: validate with --fabric"
        return
    share = 1 - site.rules.threshold(FLOW_LOW, "shortfall")
    flow_bps = share * roce_payload_bps(min(nics, key=lambda nic: nic.rate_bps))
    yield from _rule("flow-of-a-rail", flow_bps, r"ib-traffic/ib_write_bw_8388608_.*")
    ring_bps = ring_of_nodes_bps(site)
    if ring_bps:
        yield from _rule("ring-of-all-nodes", share * ring_bps, r"nccl-bw:.*/allreduce_(1073741824|8589934592)_busbw")


def roce_payload_bps(nic: Nic) -> float:
    """Return what RoCEv2's messages get of a NIC's link at the largest MTU."""
    return nic.rate_bps * ROCE_MTU / (ROCE_MTU + ROCE_OVERHEAD)


def ring_of_nodes_bps(site: Site) -> float:
    """Return the least rate over hash seeds of the slowest flow of a ring on every rail, times the rails; 0 unknown."""
    model, nodes = RateModel(site.fabric, {}), list(site.nics.nics)
    ends = [
        (site.nics.on_rail(near, rail), site.nics.on_rail(far, rail))
        for near, far in zip(nodes, (*nodes[1:], *nodes[:1]), strict=True)
        for rail in site.nics.rails
    ]
    flows = [(near, far) for near, far in ends if near and far and near.node != far.node]
    least_bps = model.slowest(flows).least_bps if flows else 0.0
    return least_bps * len(site.nics.rails) if least_bps < float("inf") else 0.0


def _rule(name: str, limit_bps: float, metric: str) -> Iterator[str]:
    assert re.fullmatch(r"[\w-]+", name), "a key of YAML"
    yield f"    {name}:"
    yield "      function: value"
    yield f'      criteria: "lambda x: x < {limit_bps / BITS / BYTES_PER_GB:.4g}"'
    yield "      categories: Fabric"
    yield "      metrics:"
    yield f"        - '{metric}'"
