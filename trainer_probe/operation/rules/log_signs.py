"""Lines of a node's log that name a device or the kernel's part in a fault.

A line alone ends nothing: it is evidence beside a rank that died or hangs, and says whether a device is to blame.

Source: NVIDIA, "XID Errors" (r570), those whose action is a reset or replacement of the GPU; Linux mm/oom_kill.c,
drivers/edac, drivers/net/ethernet/mellanox/mlx5/core/health.c.

Left out: logs of switches.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

RESET_XIDS = (48, 62, 64, 74, 79, 95, 119, 120, 140)


@dataclass(frozen=True, kw_only=True)
class LogSign:
    """A line that is evidence."""

    meaning: str
    pattern: str
    is_hardware: bool


SIGNS = (
    LogSign(
        meaning="the GPU asks for a reset",
        pattern=rf"NVRM: Xid .*: ({'|'.join(map(str, RESET_XIDS))}),",
        is_hardware=True,
    ),
    LogSign(meaning="the GPU reports an error of a program", pattern=r"NVRM: Xid ", is_hardware=False),
    LogSign(
        meaning="memory has an error that cannot be corrected",
        pattern=r"EDAC .* UE |Uncorrected error",
        is_hardware=True,
    ),
    LogSign(meaning="a machine check", pattern=r"Machine Check|mce: \[Hardware Error\]", is_hardware=True),
    LogSign(
        meaning="the NIC reports a fault",
        pattern=r"mlx5_core .*(health|fatal|Link down|internal error)",
        is_hardware=True,
    ),
    LogSign(meaning="the kernel lacked memory", pattern=r"Out of memory: Killed process|oom-kill", is_hardware=False),
)


def read_signs(lines: Iterable[str]) -> tuple[tuple[LogSign, str], ...]:
    """Return the lines that are evidence, each with its sign."""
    return tuple(
        (sign, line)
        for line in lines
        if (sign := next((sign for sign in SIGNS if re.search(sign.pattern, line)), None)) is not None
    )


def names_killed_process(lines: Iterable[str], pid: int) -> bool:
    """Return whether the kernel killed a process for lack of memory."""
    return any(re.search(rf"Killed process {pid}\b|oom-kill.*\bpid={pid}\b", line) for line in lines)
