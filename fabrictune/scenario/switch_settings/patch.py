"""Changes of one switch: SONiC's own commands, and a JSON patch for `config apply-patch`.

A patch names rows of CONFIG_DB by JSON pointers, below the namespace on a switch with several ASICs; all its values are
text, as CONFIG_DB's are.

Source: RFC 6902 (JSON Patch), RFC 6901 (JSON Pointer); sonic-utilities, generic_config_updater and its
gcu_field_operation_validators.conf.json (which fields may be patched while the switch runs).
"""

import shlex
from dataclasses import dataclass, field
from typing import Any

from fabrictune.topology.switch_qos.switch import SwitchQos

AT_ONCE = "needs nothing: takes effect at once; `sudo config save -y` keeps it"
BY_COMMAND = "needs nothing by the command; apply-patch takes a profile of this name only where its ASIC has no list"
ON_KNOWN_ASICS = "needs nothing where apply-patch allows it for the ASIC; else `config reload -y`, which stops traffic"
BY_RELOAD = "needs a restart of swss: set it in config_db.json, and `config reload -y`, which stops traffic"
AZURE_PROFILE = "AZURE_LOSSLESS"
FIELDS_IN_USE = {  # that apply-patch may change while the switch runs, where its ASIC is listed
    "BUFFER_PROFILE": ("dynamic_th", "xoff"),
    "BUFFER_POOL": ("size", "xoff"),
}


@dataclass
class SwitchChanges:
    """What is to be done on one switch, or one of its ASICs."""

    switch: SwitchQos
    commands: list[str] = field(default_factory=list)
    operations: dict[str, dict[str, Any]] = field(default_factory=dict)  # of RFC 6902, by path
    needs: dict[str, None] = field(default_factory=dict)  # each once, in order
    computed: dict[str, None] = field(default_factory=dict)  # what would have changed, but is the switch's own

    def set(self, table: str, row: str, name: str, value: Any) -> bool:
        """Note a field's new value, unless the switch has it; returns whether it is new.

        A row that the running switch has made is in no configuration, and cannot be patched.
        """
        own = self.switch.rows.of(table).get(row, {}).get(name)
        if own == value:
            return False
        if not self._is_configured(table, row):
            self.computed[f"{table} {row} of {self.name} is computed by the switch: no patch"] = None
            return False
        path = self._path(table, row, name)
        self.operations[path] = {"op": "add" if own is None else "replace", "path": path, "value": value}
        self.needs[f"{table} {_need(table, row, name)}"] = None
        return True

    def remove(self, table: str, row: str) -> None:
        """Note that a row goes."""
        path = self._path(table, row)
        self.operations[path] = {"op": "remove", "path": path}
        self.needs[f"{table} {AT_ONCE}"] = None

    def run(self, *words: object) -> None:
        """Note a command, once."""
        line = shlex.join(("sudo", *map(str, words)))  # names are foreign text
        if line not in self.commands:
            self.commands.append(line)

    @property
    def name(self) -> str:
        """Switch and ASIC."""
        return f"{self.switch.name}/{self.switch.asic}" if self.switch.asic else self.switch.name

    def _is_configured(self, table: str, row: str) -> bool:
        configured = self.switch.tables.configured.get(table)
        return table == "SWITCH_HASH" or (isinstance(configured, dict) and row in configured)

    def _path(self, *keys: str) -> str:
        outer = (self.switch.asic.lower(),) if self.switch.asic else ()
        return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in (*outer, *keys))


def _need(table: str, row: str, name: str) -> str:
    if table == "WRED_PROFILE":
        return AT_ONCE if row == AZURE_PROFILE else BY_COMMAND
    if table in FIELDS_IN_USE:
        return ON_KNOWN_ASICS if name in FIELDS_IN_USE[table] else BY_RELOAD
    return AT_ONCE
