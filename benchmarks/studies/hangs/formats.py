"""A halted job in the formats of foreign tools, written in their form from scratch.

Eight ranks a host, a NIC each; the process of rank r is FIRST_PID + r. Every job has a communicator of all ranks, whose
requests are all complete.
"""

import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.studies.hangs.halts import Halt, Issue, Key, Standing
from fabrictune.foundation.traces import Operation

RANKS_OF_HOST = 8
FIRST_PID = 4000
_NCCL = {
    Operation.ALL_REDUCE: "AllReduce",
    Operation.REDUCE_SCATTER: "ReduceScatter",
    Operation.ALL_GATHER: "AllGather",
    Operation.BROADCAST: "Broadcast",
    Operation.ALL_TO_ALL: "AlltoAll",
}
_TORCH = {
    Operation.ALL_REDUCE: "all_reduce",
    Operation.REDUCE_SCATTER: "_reduce_scatter_base",
    Operation.ALL_GATHER: "_all_gather_base",
    Operation.BROADCAST: "broadcast",
    Operation.ALL_TO_ALL: "all_to_all",
    Operation.SEND: "send",
    Operation.RECEIVE: "recv",
}
_FRAMES = {  # of a rank's main thread
    "waits": (
        "all_reduce (torch/distributed/distributed_c10d.py:2219)",
        "wrapper (torch/distributed/c10d_logger.py:81)",
    ),
    "stalled loader": ("wait (threading.py:320)", "_try_get_data (torch/utils/data/dataloader.py:1131)"),
    "stalled checkpoint": ("write (io.py:90)", "save (torch/serialization.py:850)"),
    "stalled collection": ("collect (gc:1)", "train_step (train.py:88)"),
    "works": ("step (my_optimizer.py:41)",),
}
_OUTER = ("train (train.py:120)", "<module> (train.py:301)")


@dataclass(frozen=True, kw_only=True)
class Case:
    """A halted job, and what was done to it."""

    halt: Halt
    fault: str
    ranks: tuple[int, ...]  # that are to blame

    def host(self, rank: int) -> str:
        """Return the host of a rank."""
        return f"node{rank // RANKS_OF_HOST:03}"

    @property
    def keys(self) -> Mapping[Key, str]:
        """Return the groups of collectives, each with a communicator's hash."""
        keys = dict.fromkeys(
            key for of_rank in self.halt.standings.values() for key in of_rank if not key[0].endswith(">")
        )
        return {key: f"0x{0xABC000 + 17 * number:x}" for number, key in enumerate(keys)}

    @property
    def dead(self) -> tuple[int, ...]:
        """Ranks that answer nobody."""
        return self.ranks if self.fault in ("killed rank", "stopped rank") else ()


WORLD = "0xf00d"


def write_ras(case: Case, folder: Path) -> None:
    """Write RAS's answer."""
    world = tuple(range(case.halt.num_ranks))
    communicators = [_communicator(case, WORLD, world, None)]
    communicators += [_communicator(case, name, key[1], key) for key, name in case.keys.items()]
    tree = {"nccl_version": "2.29.7", "timestamp": "2026-02-19 13:06:53", "communicators": communicators}
    (folder / "ras.json").write_text(json.dumps(tree, indent=1))


def _communicator(case: Case, name: str, ranks: tuple[int, ...], key: Key | None) -> dict[str, Any]:
    status = {"init_state": 0, "async_error": 0, "finalize_called": False, "destroy_flag": False, "abort_flag": False}
    answered, missing = [], []
    for place, rank in enumerate(ranks):
        who = {"rank": place, "host": f"10.0.0.{1 + rank // RANKS_OF_HOST}", "pid": FIRST_PID + rank,
               "cuda_dev": rank % RANKS_OF_HOST, "nvml_dev": rank % RANKS_OF_HOST}  # fmt: skip
        if rank in case.dead:
            is_dead = case.fault == "killed rank"
            missing.append({**who, "status": {"unresponsive": not is_dead, "considered_dead": is_dead}})
            continue
        standing = case.halt.standings[rank].get(key, Standing()) if key else Standing()
        counts = {nccl: standing.counts.get(operation, 0) for operation, nccl in _NCCL.items()}
        answered.append({**who, "status": status, "collective_counts": counts})
    return {"hash": name, "size": len(ranks), "ranks": answered, "missing_ranks": missing}


def write_inspector(case: Case, folder: Path) -> None:
    """Write the lines of each process's last completed collectives."""
    for rank in range(case.halt.num_ranks):
        lines = []
        for key, name in case.keys.items():
            standing = case.halt.standings[rank].get(key)
            for number, issue, time in standing.done if standing else ():
                lines.append(json.dumps(_inspected(case, rank, key, name, number, issue, time)))
        (folder / f"{case.host(rank)}-pid{FIRST_PID + rank}.log").write_text("".join(f"{line}\n" for line in lines))


def _inspected(case: Case, rank: int, key: Key, name: str, number: int, issue: Issue, time: int) -> dict[str, Any]:
    hosts = len({member // RANKS_OF_HOST for member in key[1]})
    return {
        "header": {"id": name, "rank": key[1].index(rank), "n_ranks": len(key[1]), "nnodes": hosts},
        "metadata": {"inspector_output_format_version": "v4.0", "hostname": case.host(rank), "pid": FIRST_PID + rank,
                     "dump_timestamp_us": 1_752_867_229_000_000 + 500 * time},
        "coll_perf": {"coll": _NCCL[issue.operation], "coll_sn": number, "coll_exec_time_us": 120,
                      "coll_msg_size_bytes": max(1, issue.num_bytes)},
    }  # fmt: skip


def write_dumps(case: Case, folder: Path) -> None:
    """Write each rank's dump of the flight recorder: pickles of even ranks, JSON of odd ones."""
    names = {key: str(number + 1) for number, key in enumerate(case.keys)}
    chains = _chains(case)
    everyone = list(range(case.halt.num_ranks))
    configuration = {"0": {"name": "0", "desc": "default_pg", "ranks": str(everyone)}}
    for key, name in names.items():
        configuration[name] = {"name": name, "desc": f"mesh_{key[0]}", "ranks": str(list(key[1]))}
    for chain in chains.values():
        name = str(1000 + chain[0])
        configuration[name] = {"name": name, "desc": "mesh_pp", "ranks": str(list(chain))}
    for rank in everyone:
        if rank in case.dead:
            continue
        entries: list[dict[str, Any]] = []
        status = {"0": _counted(12, 12)}
        for key, standing in case.halt.standings[rank].items():
            name = names.get(key) or str(1000 + chains[rank][0])
            rows = [(number, issue, "completed") for number, issue, _ in standing.done]
            rows += [(number, issue, "scheduled") for number, issue in sorted(standing.open.items())]
            entries += [
                _entry(chains.get(rank, ()), rank, key, name, number, issue, state) for number, issue, state in rows
            ]
            if key in names:
                status[name] = _counted(standing.issued, standing.completed)
        dump = {"version": "2.10", "pg_config": configuration, "pg_status": status, "entries": entries}
        if rank % 2:
            (folder / f"nccl_trace_rank_{rank}").write_text(json.dumps(dump))
        else:
            (folder / f"nccl_trace_rank_{rank}").write_bytes(pickle.dumps(dump, protocol=2))


def _chains(case: Case) -> Mapping[int, tuple[int, ...]]:
    """Return for each rank that sends messages those that they join it with, as pipelines are process groups."""
    chain_of: dict[int, set[int]] = {}
    for of_rank in case.halt.standings.values():
        for axis, ranks in of_rank:
            if axis.endswith(">"):
                joined = set(ranks).union(*(chain_of.get(rank, ()) for rank in ranks))
                chain_of.update(dict.fromkeys(joined, joined))
    return {rank: tuple(sorted(chain)) for rank, chain in chain_of.items()}


def _counted(issued: int, completed: int) -> dict[str, int]:
    return {
        "last_enqueued_collective": issued,
        "last_started_collective": -1,
        "last_completed_collective": completed or -1,
    }


def _entry(
    chain: tuple[int, ...], rank: int, key: Key, name: str, number: int, issue: Issue, state: str
) -> dict[str, Any]:
    kind = f"nccl:{_TORCH[issue.operation]}"
    if issue.operation is Operation.SEND:
        kind += f" {chain.index(rank)}->{chain.index(key[1][1])}"
    elif issue.operation is Operation.RECEIVE:
        kind += f" {chain.index(rank)}<-{chain.index(key[1][0])}"
    return {
        "record_id": number,
        "pg_id": int(name),
        "process_group": (name, f"mesh_{key[0].rstrip('>')}"),
        "collective_seq_id": number,
        "profiling_name": kind,
        "time_created_ns": 1_795_452_338_000_000_000 + number,
        "input_sizes": [[max(1, issue.num_bytes // 2)]],
        "input_dtypes": ["BFloat16"],
        "output_sizes": [[max(1, issue.num_bytes // 2)]],
        "state": state,
        "frames": [{"name": "reduce", "filename": "train.py", "line": 88}],
    }


def write_watchdog(case: Case, folder: Path) -> None:
    """Write the log of each host: timeouts of ranks that have requests open, signals to dump of those without."""
    lines: dict[str, list[str]] = {}
    ids = {key: number + 1 for number, key in enumerate(case.keys)}
    for rank in range(case.halt.num_ranks):
        if rank in case.dead:
            continue
        log = lines.setdefault(case.host(rank), [])
        head = f"[rank{rank}]:[E810 03:04:11.06312{rank % 10} ProcessGroupNCCL.cpp"
        has_open = False
        for key, standing in case.halt.standings[rank].items():
            if key not in ids or not standing.open:
                continue
            has_open = True
            number, issue = min(standing.open.items())
            place = key[1].index(rank)
            size = max(1, issue.num_bytes // 2)
            kind = _TORCH[issue.operation].upper()
            group = f"[PG ID {ids[key]} PG GUID {ids[key]}(mesh_{key[0]}) Rank {place}]"
            log.append(
                f"{head}:683] [Rank {place}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={number}, "
                f"OpType={kind}, NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) ran for 600096 milliseconds "
                "before timing out."
            )
            log.append(
                f"{head}:2241] {group}  failure detected by watchdog at work sequence id: {number} PG status: "
                f"last enqueued work: {standing.issued}, last completed work: {number - 1}"
            )
        for key, standing in case.halt.standings[rank].items():
            if key in ids and not standing.open and not has_open:
                group = f"[PG ID {ids[key]} PG GUID {ids[key]}(mesh_{key[0]}) Rank {key[1].index(rank)}]"
                log.append(
                    f"{head}:1858] {group} Received a dump signal due to a collective timeout from  rank 1 and we will "
                    f"try our best to dump the debug info. Last enqueued NCCL work: {standing.issued}, "
                    f"last completed NCCL work: {standing.completed}."
                )
    for host, log in lines.items():
        (folder / f"{host}.err").write_text("".join(f"{line}\n" for line in log))


def write_log(case: Case, folder: Path) -> None:
    """Write the log of each host with NCCL_DEBUG=INFO and the subsystems INIT and COLL."""
    lines: dict[str, list[str]] = {}
    everyone = tuple(range(case.halt.num_ranks))
    for rank in everyone:
        log, gpu = lines.setdefault(case.host(rank), []), rank % RANKS_OF_HOST
        head = f"{case.host(rank)}:{FIRST_PID + rank}:{9000 + rank} [{gpu}] NCCL INFO"
        for number, (name, ranks) in enumerate([(WORLD, everyone), *((n, key[1]) for key, n in case.keys.items())]):
            if rank not in ranks:
                continue
            pointer = f"0x55{number:06x}"
            log.append(
                f"{head} ncclCommInitRankConfig comm {pointer} rank {ranks.index(rank)} nranks {len(ranks)} "
                f"cudaDev {gpu} nvmlDev {gpu} busId {gpu}000 commId {name} - Init START"
            )
        for number, key in enumerate(case.keys):
            standing = case.halt.standings[rank].get(key)
            for count in range(standing.issued if standing else 0):
                assert standing is not None
                kept = {done: issue for done, issue, _ in standing.done} | standing.open
                issue = kept.get(count + 1) or next(iter(kept.values()))
                log.append(
                    f"{head} {_NCCL[issue.operation]}: opCount {count:x} sendbuff 0x7f00 recvbuff 0x7f80 acc (nil) "
                    f"count {max(1, issue.num_bytes // 2)} datatype 9 op 0 root 0 comm 0x55{number + 1:06x} "
                    f"[nranks={len(key[1])}] stream 0x5566"
                )
    for host, log in lines.items():
        (folder / f"{host}.nccl").write_text("".join(f"{line}\n" for line in log))


def write_stacks(case: Case, folder: Path) -> None:
    """Write the stacks of all ranks that answer: text of even ranks, JSON of odd ones, one folder a host."""
    for rank in range(case.halt.num_ranks):
        if rank in case.dead:
            continue
        state = "waits" if case.halt.awaits[rank] is not None else "works"
        state = case.fault if rank in case.ranks and case.fault in _FRAMES else state
        frames = [*_FRAMES[state], *_OUTER]
        place = folder / case.host(rank)
        place.mkdir(exist_ok=True)
        if rank % 2:
            rows = [dict(zip(("name", "filename", "line"), _split(frame), strict=True)) for frame in frames]
            thread = {
                "pid": FIRST_PID + rank,
                "thread_id": 1,
                "thread_name": "MainThread",
                "active": True,
                "frames": rows,
            }
            (place / f"stack_{FIRST_PID + rank}.json").write_text(json.dumps([thread]))
        else:
            text = "".join(f"    {frame}\n" for frame in frames)
            head = f"Process {FIRST_PID + rank}: python train.py\nPython v3.11.9 (/usr/bin/python3.11)\n\n"
            (place / f"stack_{FIRST_PID + rank}.txt").write_text(
                f'{head}Thread {FIRST_PID + rank} (idle): "MainThread"\n{text}'
            )


def _split(frame: str) -> tuple[str, str, int]:
    name, _, place = frame.removesuffix(")").partition(" (")
    file, _, line = place.rpartition(":")
    return name, file, int(line)


FORMATS: Mapping[str, Callable[[Case, Path], None]] = {
    "ras": write_ras,
    "inspector": write_inspector,
    "dumps": write_dumps,
    "watchdog": write_watchdog,
    "log": write_log,
    "stacks": write_stacks,
}
