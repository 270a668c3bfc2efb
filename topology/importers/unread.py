"""What people give as a topology and no importer reads, with the next step for each.

Source: rdma-core, infiniband-diags; NCCL, src/graph/xml.cc; netlab, topology reference; Keysight/infragraph.
"""

import re

from fabrictune.foundation.unread_formats import UnreadFormat

_CABLING_LIST = "write its links as a cabling list (*.csv), a row for each cable"


def _format(pattern: bytes, what: str, next_step: str) -> UnreadFormat:
    return UnreadFormat(pattern=re.compile(pattern, re.MULTILINE), what=what, next_step=next_step)


UNREAD_TOPOLOGIES = (
    _format(
        rb"^(?:Switch|Ca|Router)\s{1,9}: 0x[0-9a-fA-F]{16} ports ",
        "a list of nodes without links (ibnetdiscover -l, ibswitches, ibhosts)",
        "give the output of `ibnetdiscover` without options",
    ),
    _format(
        rb"^START_(?:NODES|LINKS|CABLE_INFO)\b|^\{ (?:SW|CA)[ -]Ports:",
        "a file of ibdiagnet or a subnet list of OpenSM",
        "give the output of `ibnetdiscover`",
    ),
    _format(
        rb"^(?:provider|module|addressing|plugin|nodes):[^\0]{0,8000}^links:",
        "a topology of netlab",
        "give the clab.yml that `netlab create` writes for its provider clab",
    ),
    _format(
        rb"^infrastructure:",
        "an InfraGraph file of its first form, with connections as texts",
        "give one of its present form, with devices, instances and edges",
    ),
    _format(
        rb"<(?:system|graphs)\s+version=",
        "NCCL's topology or graph of one host, without the switches between hosts",
        "give a file that lists the switches and their links",
    ),
    _format(
        rb"\A\s*(?:strict\s+)?(?:di)?graph\b[^\n{]{0,80}\{",
        "a Graphviz file",
        f"write it as GraphML, or {_CABLING_LIST}",
    ),
    _format(
        rb"\ANodes\s+\d+\s+Connections\s",
        "a connection matrix of htsim, which is traffic",
        "give htsim's *.topo file here, and this one as the file of the workload traffic_trace",
    ),
)
