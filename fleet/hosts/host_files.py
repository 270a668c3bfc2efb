"""Host files: a host a line, or Slurm's list of several, as `user@host:port` where they need more.

What follows the first word of a line (`slots=8`) says how many ranks run there, and is read over.
Source: Slurm, `man srun` (--nodelist); Open MPI 4.1, `man mpirun` (hostfile).
"""

from collections.abc import Iterator
from pathlib import Path

from fabrictune.fleet.hosts.host import MAX_HOSTS, FleetHost, parse_target
from fabrictune.topology.host_lists import expand_hosts


def read_host_file(text: str, path: Path) -> Iterator[FleetHost]:
    """Yield the hosts of a file's text; raises InputError."""
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if words:
            yield from expand_targets(words[0], where=f"{path}:{number}")


def expand_targets(text: str, *, where: str) -> Iterator[FleetHost]:
    """Yield the hosts of a list such as `admin@gpu[01-64],leaf1`; raises InputError."""
    for name in expand_hosts(text, where=where, max_hosts=MAX_HOSTS):
        yield parse_target(name, where=where)
