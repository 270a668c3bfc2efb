"""What a law written in Python costs: a call through its C pointer, the same code inlined, and getting it ready.

The loop that calls is compiled too, as an engine's is. Inlined, the law has no checks. `on_cnp` cuts the rate,
`on_send` counts bytes below line rate, which is what they do for most of a run. A law is ready once a new process has
found it and linked its code: compiled, the compiler's own start included, the first time and after each change; kept,
every other time.

Run: `python -m benchmarks.run law_call`
"""

import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import njit

from fabrictune.cc import dcqcn
from fabrictune.cc.compiler import compile_law
from fabrictune.cc.flow_state import new_flow
from fabrictune.cc.interface import CompiledLaw
from fabrictune.cc.interpreter import HandCalledLaw
from fabrictune.cc.law_rules import handlers

RUNS = 7
NUM_CALLS = 5_000_000
PS_BETWEEN_CNPS = 60_000_000
SENT_BYTES = 4096
NEVER_FULL = {"byte_counter_bytes": 10**12}  # so that the rate stays below line rate
READY = """
import time
from fabrictune.cc.compiler import compile_law
from fabrictune.cc.laws import load_law
compile_law(load_law("{name}"))
print(time.process_time())
"""

Loop = Callable[[Any, Any, int], int]  # params, flow, number of calls


def benchmarks() -> list[dict[str, Any]]:
    """Return nanoseconds a call and processor seconds until a law is ready, as rows of benchmarks/results.json."""
    law = compile_law(dcqcn, NEVER_FULL)
    return [
        _row("cc.law-call.dcqcn.on_cnp.pointer", "ns", _call_ns(law, _cnp_by_pointer(law))),
        _row("cc.law-call.dcqcn.on_cnp.inlined", "ns", _call_ns(law, _cnp_inlined(_unchecked("on_cnp")))),
        _row("cc.law-call.dcqcn.on_send.pointer", "ns", _call_ns(law, _send_by_pointer(law))),
        _row("cc.law-call.dcqcn.on_send.inlined", "ns", _call_ns(law, _send_inlined(_unchecked("on_send")))),
        *_ready_rows(),
    ]


def _cnp_by_pointer(law: CompiledLaw) -> Loop:
    handler = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(
        law.handler_address["on_cnp"]
    )

    def loop(params: Any, flow: Any, num_calls: int) -> int:
        statuses = 0
        for call in range(num_calls):
            statuses += handler(params.ctypes.data, flow.ctypes.data, call * PS_BETWEEN_CNPS)
        return statuses

    return _compiled(loop)


def _cnp_inlined(handler: Any) -> Loop:
    def loop(params: Any, flow: Any, num_calls: int) -> int:
        statuses = 0
        for call in range(num_calls):
            statuses += handler(params[0], flow[0], call * PS_BETWEEN_CNPS)
        return statuses

    return _compiled(loop)


def _send_by_pointer(law: CompiledLaw) -> Loop:
    handler = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
        law.handler_address["on_send"]
    )

    def loop(params: Any, flow: Any, num_calls: int) -> int:
        statuses = 0
        for call in range(num_calls):
            statuses += handler(params.ctypes.data, flow.ctypes.data, call, SENT_BYTES)
        return statuses

    return _compiled(loop)


def _send_inlined(handler: Any) -> Loop:
    def loop(params: Any, flow: Any, num_calls: int) -> int:
        statuses = 0
        for call in range(num_calls):
            statuses += handler(params[0], flow[0], call, SENT_BYTES)
        return statuses

    return _compiled(loop)


def _unchecked(event: str) -> Any:
    """Return a handler of DCQCN compiled as it stands in its file, with the functions it calls."""
    handler = handlers(dcqcn)[event]
    called = {name: njit(value) for name, value in vars(dcqcn).items() if isinstance(value, FunctionType)}
    copy = FunctionType(handler.__code__, {**vars(dcqcn), **called}, handler.__name__)
    return njit(error_model="numpy")(copy)


def _compiled(loop: Loop) -> Loop:
    compiled: Loop = njit(error_model="numpy")(loop)
    return compiled


def _call_ns(law: CompiledLaw, loop: Loop) -> list[float]:
    """Return processor time per call of each run, on a flow that has just had its first CNP."""
    by_hand = HandCalledLaw(law)
    flow = new_flow(law.flow_dtype, line_rate_bps=400e9)
    loop(law.params, flow, 1)
    found = []
    for _ in range(RUNS):
        by_hand.call("on_start", flow, 0)
        by_hand.call("on_cnp", flow, 0)
        started_ns = time.process_time_ns()
        loop(law.params, flow, NUM_CALLS)
        found.append((time.process_time_ns() - started_ns) / NUM_CALLS)
    return found


def _ready_rows() -> Iterator[dict[str, Any]]:
    for name in ("none", "dcqcn"):
        with tempfile.TemporaryDirectory() as scratch:
            compiled_s = [_ready_s(name, Path(scratch, str(run))) for run in range(RUNS)]
            kept_s = [_ready_s(name, Path(scratch, str(run))) for run in range(RUNS)]
        yield _row(f"cc.law-ready.{name}.compiled", "s", compiled_s)
        yield _row(f"cc.law-ready.{name}.kept", "s", kept_s)


def _ready_s(name: str, cache: Path) -> float:
    command = [sys.executable, "-c", READY.format(name=name)]
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    return float(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)


def _row(name: str, unit: str, values: list[float]) -> dict[str, Any]:
    return {
        "name": name,
        "value": statistics.median(values),
        "unit": unit,
        "spread": f"median of {RUNS}, {min(values):.2f} to {max(values):.2f}",
    }
