"""Settings of priorities that `mlnx_qos -i INTERFACE` prints: trust, DSCP, PFC, buffers, traffic classes.

Source: mlnx-tools, python/mlnx_qos.
"""

import re

_SETTING = re.compile(r"\s*(DCBX mode|Priority trust state|Cable len):\s*(\S.*)")
_ROW = re.compile(r"\s*(enabled|buffer|priority)((?:\s+\d+){8})\s*")
_DSCP_TITLE = re.compile(r"\s*dscp2prio mapping:\s*")
_DSCP = re.compile(r"\s*prio:(\d)\s+dscp:([\d,]+?),?\s*")
_CLASS = re.compile(r"\s*tc:\s*(\d)\s+(\S.*)")
_PRIORITIES = re.compile(r"\s*priority:\s+([\d\s]+)")
_NAME_OF_ROW = {"enabled": "PFC of priorities 0 to 7", "buffer": "buffer of priorities 0 to 7"}


class QosReader:
    """Reads the lines of reports of one or several interfaces into settings by device and name."""

    def __init__(self, settings: dict[tuple[str, str], str]) -> None:
        self.settings = settings
        self.traffic_class = ""

    def read(self, line: str, device: str) -> bool:
        """Read a line; returns whether it is one of such a report."""
        if _DSCP_TITLE.fullmatch(line):
            for key in [key for key in self.settings if key[0] == device and key[1].startswith("DSCP of")]:
                del self.settings[key]  # a later report of the same interface
        elif setting := _SETTING.fullmatch(line):
            self.settings[device, setting[1]] = setting[2]
        elif row := _ROW.fullmatch(line):
            if row[1] in _NAME_OF_ROW:
                self.settings[device, _NAME_OF_ROW[row[1]]] = " ".join(row[2].split())
        elif dscp := _DSCP.fullmatch(line):
            key = device, f"DSCP of priority {dscp[1]}"
            earlier = f"{self.settings[key]}," if key in self.settings else ""
            self.settings[key] = f"{earlier}{dscp[2]}"
        elif traffic_class := _CLASS.fullmatch(line):
            self.traffic_class = traffic_class[1]
            self.settings[device, f"traffic class {traffic_class[1]}"] = traffic_class[2]
        elif self.traffic_class and (priorities := _PRIORITIES.fullmatch(line)):
            name = f"priorities of traffic class {self.traffic_class}"
            self.settings[device, name] = " ".join(priorities[1].split())
        else:
            return False
        return True
