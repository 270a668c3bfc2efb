"""ssh_config: the hosts it names, and what it sets for a host that something else names.

A file as an inventory gives each name of its `Host` lines that is no pattern. Beside another inventory its settings
fill what that leaves open. `Match exec`, which runs a command, and tokens that would need one are refused.

Source: OpenSSH, ssh_config(5); read by paramiko.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from fabrictune.fleet.hosts.host import FleetHost, make_host
from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.extras import require_extra

if TYPE_CHECKING:
    from paramiko import SSHConfig

MAX_CONFIG_BYTES = 2**20
_PATTERN = re.compile(r"[*?!]")
_HOST_LINE = re.compile(r"\s*host[\s=]+(.*)", re.IGNORECASE)
_RUNS_COMMANDS = re.compile(r"\s*match\b.*\bexec\b", re.IGNORECASE)


class SshSettings:
    """The settings of one ssh_config file."""

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        self.lines = text.splitlines()
        self._config = _parse(text, path)

    def named_hosts(self) -> Iterator[FleetHost]:
        """Yield the hosts that the file names itself."""
        for number, line in enumerate(self.lines, start=1):
            if match := _HOST_LINE.fullmatch(line):
                for name in match[1].replace('"', " ").split():
                    if not _PATTERN.search(name):
                        yield self.applied_to(make_host(name, where=f"{self.path}:{number}"))

    def applied_to(self, host: FleetHost) -> FleetHost:
        """Return a host with what the file sets for its name, where the host's own settings say nothing."""
        try:
            found = self._config.lookup(host.name)
        except Exception as error:  # paramiko raises its own, and whatever a broken token gives
            raise InputError(
                Mistake(where=str(self.path), found=f"cannot be applied to {host.name}: {error}")
            ) from None
        known = make_host(
            host.name,
            where=host.where,
            address=found.get("hostname") if host.address == host.name else host.address,
            user=host.user or found.get("user"),
            port=host.port or found.get("port"),
            jump=host.jump or _jump(found.get("proxyjump")),
            key_file=host.key_file or next(iter(found.get("identityfile", ())), ""),
        )
        return replace(known, where=host.where)


def read_ssh_settings(path: Path) -> SshSettings:
    """Return the settings of a file; raises InputError, UnavailableError without paramiko."""
    return SshSettings(read_text(path, max_bytes=MAX_CONFIG_BYTES), path)


def _parse(text: str, path: Path) -> "SSHConfig":
    require_extra("paramiko", extra="fleet", where=str(path))
    for number, line in enumerate(text.splitlines(), start=1):
        if _RUNS_COMMANDS.match(line):
            found, step = "a Match that runs a command", "name the hosts with Host lines"
            raise InputError(Mistake(where=f"{path}:{number}", found=found, next_step=step))
    import paramiko

    try:
        config = paramiko.SSHConfig()
        config.parse(io.StringIO(text))
    except Exception as error:  # ConfigParseError, and ValueError of shlex
        raise InputError(Mistake(where=str(path), found=f"no ssh_config: {error}")) from None
    return config


def _jump(text: str | None) -> str:
    return "" if text is None or text.lower() == "none" else text
