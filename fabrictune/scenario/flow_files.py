"""Files of observed flows: `FLOW_FORMATS` lists the formats, and each reader is in its own room.

The first format that recognises all files of a question reads them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fabrictune.collectives.nccl.flows import nccl_flows
from fabrictune.collectives.nccl.graph_xml import read_graphs, ring_flows
from fabrictune.collectives.nccl.log import read_nccl_log
from fabrictune.collectives.nccl.simccl_flows import HEAD as SIMCCL_HEAD
from fabrictune.collectives.nccl.simccl_flows import simccl_flows
from fabrictune.foundation.errors import InputError, Mistake, require_one_of
from fabrictune.foundation.flows import ObservedFlows, concatenate_flows
from fabrictune.foundation.foreign_files import read_head
from fabrictune.foundation.unread_formats import refuse_unread
from fabrictune.rdma_bench.captures.reader import is_capture, read_capture
from fabrictune.rdma_bench.resources import listed_flows, read_listing

LOOKED_AT_BYTES = 2**20  # of a file, read to recognise its format


@dataclass(frozen=True, kw_only=True)
class FlowQuestion:
    """Context that readers get with the files."""

    qps_per_connection: int | None  # None: as the files say
    hosts: tuple[str, ...]  # in the order of the ring, for files that know one host alone


@dataclass(frozen=True, kw_only=True)
class FlowFormat:
    """A format that flows can be read from."""

    summary: str
    recognises: Callable[[Path], bool]
    read: Callable[[Sequence[Path], FlowQuestion], ObservedFlows]


def read_flows(paths: Sequence[Path], question: FlowQuestion, file_format: str | None = None) -> ObservedFlows:
    """Return the flows in the files, in a named format or the one they look like; raises InputError."""
    missing = [path for path in paths if not path.is_file()]
    if missing:
        raise InputError(
            *(Mistake(where=str(path), found="no such file", next_step="check the path") for path in missing)
        )
    if file_format is not None:
        require_one_of(file_format, tuple(FLOW_FORMATS), where="format", what="format", error=InputError)
        return FLOW_FORMATS[file_format].read(paths, question)
    for flow_format in FLOW_FORMATS.values():
        if paths and all(flow_format.recognises(path) for path in paths):
            return flow_format.read(paths, question)
    refuse_unread(paths, (), error=InputError, reads_packed=False)
    formats = ", ".join(FLOW_FORMATS)
    found = f"{', '.join(str(path) for path in paths) or 'no file'}: not one of the formats that are read"
    raise InputError(Mistake(where="files", found=found, allowed=formats, next_step="name the format"))


def _read_captures(paths: Sequence[Path], question: FlowQuestion) -> ObservedFlows:
    return concatenate_flows([read_capture(path).observed() for path in paths])


def _read_listings(paths: Sequence[Path], question: FlowQuestion) -> ObservedFlows:
    return listed_flows([queue_pair for path in paths for queue_pair in read_listing(path)])


def _read_log(paths: Sequence[Path], question: FlowQuestion) -> ObservedFlows:
    return nccl_flows(read_nccl_log(paths), qps_per_connection=question.qps_per_connection)


def _read_graphs(paths: Sequence[Path], question: FlowQuestion) -> ObservedFlows:
    if len(question.hosts) < 2:
        found, allowed = f"{len(question.hosts)} hosts", "two or more: a graph file knows its own host alone"
        raise InputError(Mistake(where="hosts", found=found, allowed=allowed))
    return concatenate_flows(
        [
            ring_flows(
                read_graphs(path),
                question.hosts,
                qps_per_connection=question.qps_per_connection or 1,
                origin=str(path),
            )
            for path in paths
        ]
    )


def _read_simccl(paths: Sequence[Path], question: FlowQuestion) -> ObservedFlows:
    return simccl_flows(paths, question.hosts)


def _read_tables(paths: Sequence[Path], question: FlowQuestion) -> ObservedFlows:
    return concatenate_flows([ObservedFlows.read(path) for path in paths])


def _holds(text: bytes) -> Callable[[Path], bool]:
    """Return whether the first part of a file contains a text."""

    def recognises(path: Path) -> bool:
        return text in read_head(path, LOOKED_AT_BYTES)

    return recognises


FLOW_FORMATS: Mapping[str, FlowFormat] = {
    "capture": FlowFormat(
        summary="captures of RoCEv2 traffic (pcap, pcapng)", recognises=is_capture, read=_read_captures
    ),
    "flows": FlowFormat(
        summary="tables of observed flows (Parquet)",
        recognises=lambda path: path.suffix == ".parquet",
        read=_read_tables,
    ),
    "nccl_graph": FlowFormat(
        summary="graphs that NCCL searched (NCCL_GRAPH_DUMP_FILE), the same on all `hosts`",
        recognises=_holds(b"<graphs"),
        read=_read_graphs,
    ),
    "nccl_log": FlowFormat(summary="logs of NCCL (NCCL_DEBUG=INFO)", recognises=_holds(b" NCCL INFO "), read=_read_log),
    "rdma": FlowFormat(
        summary="`rdma -j resource show qp`, one file a host, called <host>.json",
        recognises=_holds(b'"lqpn"'),
        read=_read_listings,
    ),
    "simccl": FlowFormat(
        summary="flows that SimCCL writes (ncclFlowModel_detailed_flows.csv), ranks in order over `hosts`",
        recognises=_holds(SIMCCL_HEAD),
        read=_read_simccl,
    ),
}
