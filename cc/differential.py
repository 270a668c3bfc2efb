"""Differential test of a law: its compiled form and its Python over the same random events, byte for byte."""

from types import ModuleType
from typing import Any

import numpy as np

from fabrictune.cc.compiler import compile_law
from fabrictune.cc.flow_state import Record, new_flow
from fabrictune.cc.interface import EVENTS, NEVER, TELEMETRY_DTYPE
from fabrictune.cc.interpreter import CallableLaw, HandCalledLaw, InterpretedLaw
from fabrictune.foundation.seeds import stream

LINE_RATE_BPS = 400e9


def count_mismatches(module: ModuleType, *, num_events: int, seed: int) -> int:
    """Return after how many of `num_events` random events the two forms differ, in any byte of the flow or in status.

    Numbers go on from one event to the next, so that a difference in the last bit stays and counts again.
    """
    compiled = HandCalledLaw(compile_law(module))
    laws: tuple[CallableLaw, CallableLaw] = (InterpretedLaw(module), compiled)
    flows = [new_flow(law.flow_dtype, line_rate_bps=LINE_RATE_BPS) for law in laws]
    events = [event for event in compiled.events if event != "on_start"] or ["on_start"]
    random = stream(seed, "cc", "agreement")
    now_ps = 0
    num_mismatches = 0
    for index in range(num_events):
        event = events[random.integers(len(events))] if index else "on_start"
        arguments = draw_arguments(event, now_ps, random)
        if event == "on_timer":
            for flow in flows:
                flow["deadline_ps"][0, arguments[1]] = NEVER
        statuses = {law.call(event, flow, *arguments) for law, flow in zip(laws, flows, strict=True)}
        num_mismatches += len(statuses) > 1 or flows[0].tobytes() != flows[1].tobytes()
        now_ps += int(random.integers(100_000_000))
    return num_mismatches


def draw_arguments(event: str, now_ps: int, random: np.random.Generator) -> list[Any]:
    """Return random arguments of an event, each in its usual range (`interface.EVENTS`)."""
    drawn: dict[str, Any] = {
        argument.name: int(random.integers(argument.low, argument.high + 1)) for argument in EVENTS[event]
    }
    drawn["now_ps"] = now_ps
    if "endpoint_delay_ps" in drawn:
        drawn["endpoint_delay_ps"] %= drawn["rtt_ps"]
    if "telemetry" in drawn:
        drawn["telemetry"] = _draw_telemetry(drawn["num_hops"], now_ps, random)
    return list(drawn.values())


def _draw_telemetry(num_hops: int, now_ps: int, random: np.random.Generator) -> Record:
    telemetry = np.zeros(num_hops, TELEMETRY_DTYPE)
    telemetry["time_ps"] = now_ps - random.integers(1_000_000, size=num_hops)
    telemetry["tx_bytes"] = random.integers(2**40, size=num_hops)
    telemetry["queue_bytes"] = random.integers(2**22, size=num_hops)
    telemetry["rate_bps"] = LINE_RATE_BPS
    return telemetry
