"""Names of hops, from a file in the form of /etc/hosts."""

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.probing.names import hop_text, read_names


def test_a_hosts_file_is_read(tmp_path: Path) -> None:
    """The first name counts, comments and IPv6 do not."""
    path = tmp_path / "hosts"
    path.write_text("# lab\n10.255.0.9\tspine0:down3 alias\n\n::1 localhost\n10.255.0.11 spine1:down3 # the second\n")
    names = read_names(path)
    assert {str(IPv4Address(address)): name for address, name in names.items()} == {
        "10.255.0.9": "spine0:down3",
        "10.255.0.11": "spine1:down3",
    }
    known, unknown = int(IPv4Address("10.255.0.9")), int(IPv4Address("10.0.0.9"))
    assert [hop_text(hop, names) for hop in ((known,), (unknown,), (unknown, known), ())] == [
        "spine0:down3",
        "10.0.0.9",
        "10.0.0.9 or spine0:down3",
        "?",
    ]


def test_every_wrong_line_is_named(tmp_path: Path) -> None:
    """An address without a name, and a name without an address."""
    path = tmp_path / "hosts"
    path.write_text("10.255.0.9\n10.255.0.10 leaf0\nspine0 10.255.0.9\n")
    with pytest.raises(InputError) as caught:
        read_names(path)
    allowed = "\n  allowed: an address and a name, such as 10.255.0.9 spine0:down3"
    assert str(caught.value) == f"{path}:1: '10.255.0.9'{allowed}\n{path}:3: 'spine0 10.255.0.9'{allowed}"
