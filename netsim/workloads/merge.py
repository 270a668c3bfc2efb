"""Merge of several workloads, each on queue pairs of its own."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fabrictune.foundation.arrays import IntArray
from fabrictune.foundation.traces import RELAYS, UNKNOWN, Dependencies, Medium, TrafficTrace
from fabrictune.netsim.engine_inputs.limits import LAST_INSTANT_PS
from fabrictune.netsim.workloads.table import GeneratedTraffic, raise_input_error
from fabrictune.topology.queue_pairs import join_queue_pairs


def join(parts: Sequence[GeneratedTraffic], start_ps: Sequence[int], notes: Sequence[str] = ()) -> GeneratedTraffic:
    """Return the queue pairs and transfers of all workloads, one workload after another.

    Each part is what it was alone, later by its `start_ps`. Transfers of different parts never wait for one another.
    `notes` follow those of the parts. Raises InputError where a NIC runs out of queue-pair numbers, and for a start
    beyond the engine's clock.
    """
    traces = [trace for _, trace in parts]
    for trace, part_start_ps in zip(traces, start_ps, strict=True):
        latest_ps = part_start_ps + int(trace.start_ps_N.max(initial=0))
        if latest_ps > LAST_INSTANT_PS:
            raise_input_error("start", f"a transfer at {latest_ps} ps", f"up to {LAST_INSTANT_PS} ps, 53 days")
    first_row = _firsts([len(trace) for trace in traces])
    first_qp = _firsts([len(queue_pairs) for queue_pairs, _ in parts])
    first_operation = _firsts([int(trace.operation_N.max(initial=UNKNOWN)) + 1 for trace in traces])
    first_gpu = _firsts([_num_gpus(trace) for trace in traces])
    traffic = TrafficTrace(
        **{name: _stacked(traces, name) for name in ("medium_N", "bytes_N", "delay_ps_N")},
        **{name: _stacked(traces, name, first_gpu) for name in RELAYS},
        source_N=_stacked_ends(traces, "source_N", first_gpu),
        destination_N=_stacked_ends(traces, "destination_N", first_gpu),
        qp_N=_stacked(traces, "qp_N", first_qp),
        operation_N=_stacked(traces, "operation_N", first_operation),
        start_ps_N=np.concatenate([trace.start_ps_N + start for trace, start in zip(traces, start_ps, strict=True)]),
        dependencies=_joined_dependencies(traces, first_row),
        notes=tuple(dict.fromkeys([*(note for trace in traces for note in trace.notes), *notes])),
        jobs=tuple(
            replace(job, begin=job.begin + first, end=job.end + first)
            for trace, first in zip(traces, first_row.tolist(), strict=True)
            for job in trace.jobs
        ),
    )
    return join_queue_pairs([queue_pairs for queue_pairs, _ in parts]), traffic


def _firsts(sizes: Sequence[int]) -> IntArray:
    """Return where each part begins in a table of all."""
    return np.cumsum([0, *sizes])[:-1]


def _stacked(traces: Sequence[TrafficTrace], name: str, firsts: Sequence[int] | IntArray = ()) -> IntArray:
    """Return one column of all parts; numbers of rows elsewhere are moved by `firsts`, unknown ones stay unknown."""
    columns = [getattr(trace, name) for trace in traces]
    if len(firsts):
        columns = [
            np.where(column == UNKNOWN, UNKNOWN, column + first) for column, first in zip(columns, firsts, strict=True)
        ]
    return np.concatenate(columns)


def _num_gpus(trace: TrafficTrace) -> int:
    """Return how many numbers the GPUs of a part take."""
    is_gpu_N = trace.medium_N != Medium.FABRIC
    ends = [trace.source_N[is_gpu_N], trace.destination_N[is_gpu_N], trace.relayed_from_N, trace.relayed_to_N]
    return 1 + max(int(gpus.max(initial=UNKNOWN)) for gpus in ends)


def _stacked_ends(traces: Sequence[TrafficTrace], name: str, first_gpu: IntArray) -> IntArray:
    """Return one end of all parts' transfers: NICs are those of one fabric, GPUs each part's own."""
    return np.concatenate(
        [
            np.where(trace.medium_N == Medium.FABRIC, getattr(trace, name), getattr(trace, name) + first)
            for trace, first in zip(traces, first_gpu, strict=True)
        ]
    )


def _joined_dependencies(traces: Sequence[TrafficTrace], first_row: IntArray) -> Dependencies:
    sizes = np.concatenate([np.diff(trace.dependencies.offset_N1) for trace in traces])
    return Dependencies(
        offset_N1=np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]),
        row_D=np.concatenate(
            [trace.dependencies.row_D + first for trace, first in zip(traces, first_row, strict=True)]
        ),
    )
