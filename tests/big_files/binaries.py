"""Files that are no text: captures, execution traces, tables, and records with one large file."""

import gzip
import json
import pickle
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from fabrictune.collectives.traces.chakra_schema import CollectiveType, GlobalMetadata, Node, NodeType
from fabrictune.foundation.errors import RecordError
from fabrictune.foundation.flows import ObservedFlows
from fabrictune.foundation.tables import read_table, write_table
from fabrictune.foundation.traces import CommTrace, Dependencies, Operation
from fabrictune.topology.draft import FIRST_IPV4
from tests.big_files.texts import profile, recorded

PACKED_EVENTS = 20_000  # of a profile, again and again
NUM_PAIRS = 4096  # of queue pairs in a capture


def _frame(number: int) -> bytes:
    """Return a RoCEv2 write of 16 bytes from one of NUM_PAIRS queue pairs."""
    pair = number % NUM_PAIRS
    source, destination = FIRST_IPV4 + pair % 4, FIRST_IPV4 + (pair + 1) % 4
    payload = struct.pack(">BBHII", 10, 0x40, 0xFFFF, pair, number // NUM_PAIRS % 2**24) + bytes(16 + 16 + 4)
    udp = struct.pack(">HHHH", 49152 + pair % 16384, 4791, 8 + len(payload), 0)
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(udp + payload), 0, 0, 64, 17, 0, source, destination)
    return bytes(12) + b"\x08\x00" + ip + udp + payload


def pcap(count: int) -> bytes:
    frames = (_frame(number) for number in range(count))
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    return head + b"".join(
        struct.pack("<IIII", 1, number % 10**6, len(frame), len(frame)) + frame for number, frame in enumerate(frames)
    )


def pcapng(count: int) -> bytes:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    head = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 65535))
    frames = (_frame(number) for number in range(count))
    return head + b"".join(
        block(6, struct.pack("<IIIII", 0, 0, number, len(frame), len(frame)) + frame)
        for number, frame in enumerate(frames)
    )


def chakra(count: int) -> bytes:
    """Return a chain of work and collectives in turn."""
    parts = []
    for message in (GlobalMetadata(version="1.0"), *(_node(number) for number in range(count))):
        body = message.SerializeToString()
        length, head = len(body), b""
        while length > 0x7F:
            head += bytes([length & 0x7F | 0x80])
            length >>= 7
        parts.append(head + bytes([length]) + body)
    return b"".join(parts)


def _node(number: int) -> Any:
    node = Node(id=number, name=f"layer{number}", data_deps=[number - 1] if number else [])
    if number % 2:
        node.type, node.duration_micros = NodeType.COMPUTE, 10
        return node
    node.type = NodeType.COLLECTIVE
    node.attr.add(name="comm_type", int64_val=CollectiveType.ALL_REDUCE)
    node.attr.add(name="comm_size", int64_val=4096)
    return node


def packed_profile(count: int) -> bytes:
    """Return a profile in gzip's form, not made smaller: text of many times the file would be another size."""
    return gzip.compress(profile(count).encode(), compresslevel=0)


def well_packed_profile(path: Path, count: int) -> None:
    """Write a profile in gzip's form, some 25 to 1, as profilers do: of a hundred events one is a collective's."""
    head, _, events = profile(PACKED_EVENTS, one_in=100).partition("[\n")
    block = events.removesuffix("]}\n").encode()
    with gzip.open(path, "wb", compresslevel=6) as file:
        file.write(f"{head}[\n".encode())
        for number in range(-(-25 * count // PACKED_EVENTS)):
            file.write((b",\n" if number else b"") + block)
        file.write(b"]}\n")


def pickled_recorder(count: int) -> bytes:
    """Return a dump of the flight recorder as PyTorch writes it by default."""
    return pickle.dumps(recorded(count), protocol=2)


def flows(path: Path, count: int) -> None:
    chance = np.random.default_rng(0)
    pair_F = np.arange(count)
    ObservedFlows(
        source_ipv4_F=np.full(count, -1),
        source_host_F=tuple(f"host{number % 4}" for number in range(count)),
        source_device_F=("nic0",) * count,
        source_qpn_F=chance.integers(0, 2**24, count),
        destination_ipv4_F=np.full(count, -1),
        destination_host_F=tuple(f"host{(number + 1) % 4}" for number in range(count)),
        destination_device_F=("nic0",) * count,
        destination_qpn_F=chance.integers(0, 2**24, count),
        source_port_F=chance.integers(49152, 2**16, count),
        destination_port_F=np.full(count, 4791),
        packets_F=chance.integers(1, 10**6, count),
        bytes_F=chance.integers(1, 10**9, count),
        first_ns_F=pair_F,
        last_ns_F=pair_F + 1,
        origin_F=tuple(f"capture.pcap: flow {number}" for number in range(count)),
    ).write(path)


def trace(path: Path, count: int) -> None:
    """Four ranks that all-reduce again and again."""
    count -= count % 4
    chance, row_N = np.random.default_rng(0), np.arange(count)
    rank_N = row_N // (count // 4)
    is_first_N = row_N % (count // 4) == 0
    CommTrace(
        groups=((0, 1, 2, 3),),
        rank_N=rank_N,
        operation_N=np.full(count, int(Operation.ALL_REDUCE)),
        group_N=np.zeros(count, np.int64),
        peer_N=np.full(count, -1),
        bytes_N=np.tile(chance.integers(1, 2**20, count // 4), 4),
        compute_before_ps_N=chance.integers(0, 10**9, count),
        step_N=row_N % (count // 4) // 1000,
        axis_N=("dp",) * count,
        policy_N=("none",) * count,
        tag_N=tuple(f"layer {number % 96}" for number in range(count)),
        dependencies=Dependencies(
            offset_N1=np.concatenate([[0], np.cumsum(~is_first_N)]), row_D=row_N[~is_first_N] - 1
        ),
    ).write(path)


def record_with_table(path: Path, template: Path, table: str, count: int) -> None:
    """Write a record whose table has so many rows, drawn from the template's; times differ from row to row."""
    shutil.copytree(template, path, dirs_exist_ok=True)
    columns = read_table(template / f"{table}.parquet", error=RecordError)
    chance = np.random.default_rng(0)
    row_N = chance.integers(0, columns.num_rows, count)
    grown: dict[str, Any] = {name: columns.column(name).to_numpy()[row_N] for name in columns.column_names}
    for name in grown:
        grown[name] += chance.integers(0, 10**6, count) if name.endswith("_ps") else 0
    if table == "transfers":
        grown["transfer"] = np.arange(count)
    write_table(path / f"{table}.parquet", grown)


def record_with_findings(path: Path, template: Path, count: int) -> None:
    shutil.copytree(template, path, dirs_exist_ok=True)
    finding = {
        "id": "ecmp.link-overloaded",
        "severity": "warning",
        "expected": "at most 100 %",
        "actual": "200 %",
        "next_step": "spread the flows",
        "confidence": "measured",
        "evidence": [],
    }
    rows = (json.dumps({**finding, "entity": f"leaf{number}:up0"}) + "\n" for number in range(count))
    (path / "findings.jsonl").write_text("".join(rows))


def record_with_head(path: Path, template: Path, count: int) -> None:
    shutil.copytree(template, path, dirs_exist_ok=True)
    head: Mapping[str, Any] = json.loads((template / "run.json").read_text())
    notes = [f"a remark of the run: number {number}" for number in range(count)]
    (path / "run.json").write_text(json.dumps({**head, "notes": notes}, indent=2))
