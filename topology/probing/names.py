"""Names of the addresses that answer, from a file in the form of /etc/hosts: an address, then its name.

Switches answer from the address of a port, so a name that is to be compared with a fabric is `node` or `node:port`, as
`fabrictune topo show --links` prints them. No name server is asked: a look-up would send packets that were not
announced.
"""

from collections.abc import Mapping
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from pathlib import Path

from fabrictune.foundation.documents import read_text
from fabrictune.foundation.errors import InputError, Mistake, quote
from fabrictune.topology.probing.observations import Hop

UNKNOWN_HOP = "?"

Names = Mapping[int, str]


def read_names(path: Path) -> Names:
    """Return the first name of every IPv4 address in a hosts file; raises InputError with every wrong line."""
    names: dict[int, str] = {}
    mistakes = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words or _is_ipv6(words[0]):
            continue
        try:
            names.setdefault(int(IPv4Address(words[0])), words[1])
        except (AddressValueError, IndexError):
            allowed = "an address and a name, such as 10.255.0.9 spine0:down3"
            mistakes.append(Mistake(where=f"{path}:{number}", found=quote(line.strip()), allowed=allowed))
    if mistakes:
        raise InputError(*mistakes)
    return names


def hop_text(hop: Hop, names: Names) -> str:
    """Return a hop for people: its name, or its address where it has none."""
    return " or ".join(names.get(address, str(IPv4Address(address))) for address in hop) or UNKNOWN_HOP


def _is_ipv6(word: str) -> bool:
    try:
        IPv6Address(word)
    except AddressValueError:
        return False
    return True
