"""Schedulers' lists of hosts, written out."""

import time

import pytest

from fabrictune.foundation.errors import InputError
from fabrictune.topology.host_lists import expand_hosts


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("gpu07", ["gpu07"]),
        ("gpu[07-09,12],login1", ["gpu07", "gpu08", "gpu09", "gpu12", "login1"]),
        ("rack[1-2]n[0-1]", ["rack1n0", "rack1n1", "rack2n0", "rack2n1"]),
        ("n[8-10]-ib", ["n8-ib", "n9-ib", "n10-ib"]),
        ("host1*2,host2", ["host1", "host1", "host2"]),
        ("", []),
    ],
)
def test_a_list_is_written_out_as_slurm_does(text: str, hosts: list[str]) -> None:
    """Zeros in front are kept, the last bracket counts fastest, and an asterisk repeats: `man srun`, `man scontrol`."""
    assert expand_hosts(text, where="hosts") == hosts


@pytest.mark.parametrize("text", ["gpu[1-", "gpu[3-1]", "gpu[a-b]", "gpu[]", "a b", "host1*", "gpu]"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is no list of hosts"):
        expand_hosts(text, where="hosts")


def test_a_list_is_counted_before_it_is_written_out() -> None:
    """Two brackets of a thousand million each are 10^18 names; a hundred thousand open brackets are read once."""
    with pytest.raises(InputError, match="hosts or more"):
        expand_hosts("a[0-999999999]b[0-999999999]", where="hosts")
    started = time.process_time()
    with pytest.raises(InputError):
        expand_hosts("[," * 100_000, where="hosts")
    assert time.process_time() - started < 1
