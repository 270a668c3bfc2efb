"""Host keys that are known, by host: what known_hosts files say, hashed names and revoked keys among them.

Source: OpenSSH, sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
Left out: certificate authorities and patterns with `*`, which know no key of a host: such a host counts as unknown.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import InputError, Mistake

if TYPE_CHECKING:
    from paramiko import PKey

MAX_KNOWN_HOSTS_BYTES = 64 * 2**20
REVOKED, HASHED = "@revoked", "|1|"


class KnownHosts:
    """The lines of a file by the names of hosts; keys are decoded when their host is asked for."""

    def __init__(self, text: str) -> None:
        self._of_name: dict[str, list[str]] = {}
        self._hashed: list[tuple[str, str]] = []
        self._revoked: set[str] = set()
        for line in text.splitlines():
            words = line.split()
            if words[:1] == [REVOKED] and len(words) > 3:
                self._revoked.add(words[3])
            elif len(words) > 2 and words[0][0] not in "#@":
                self._add(words[0], line.strip())

    def keys_of(self, name: str) -> "Iterator[PKey]":
        """Yield the keys of a host by the name that the file has for it: `host`, or `[host]:port`."""
        from paramiko.hostkeys import HostKeyEntry, InvalidHostKey
        from paramiko.ssh_exception import SSHException

        hashed = [line for pattern, line in self._hashed if _is_hash_of(name, pattern)]
        for line in (*self._of_name.get(name, ()), *hashed):
            try:
                entry = HostKeyEntry.from_line(line)
            except (SSHException, InvalidHostKey, ValueError, IndexError):  # of an unknown kind, or broken
                continue
            if entry is not None and entry.key is not None and entry.key.get_base64() not in self._revoked:
                yield entry.key

    def _add(self, names: str, line: str) -> None:
        if names.startswith(HASHED):
            self._hashed.append((names, line))
        else:
            for name in names.split(","):
                self._of_name.setdefault(name, []).append(line)


def _is_hash_of(name: str, pattern: str) -> bool:
    from paramiko.hostkeys import HostKeys

    try:
        return HostKeys.hash_host(name, pattern) == pattern
    except (ValueError, IndexError, AssertionError):  # a salt that is broken, or of another length
        return False


def read_known_hosts(path: Path, *, is_named: bool) -> KnownHosts:
    """Return what a file knows, nothing where the user has no such file; raises InputError for one that was named."""
    is_missing = not path.is_file() and not is_named
    if is_missing or path == Path(os.devnull) or (path.is_file() and path.stat().st_size == 0):
        return KnownHosts("")
    try:
        return KnownHosts(read_text(path, max_bytes=MAX_KNOWN_HOSTS_BYTES))
    except InputError as error:
        (mistake,) = error.mistakes
        step = "name a file of known host keys, such as ~/.ssh/known_hosts"
        raise InputError(Mistake(where=mistake.where, found=mistake.found, next_step=step)) from None
