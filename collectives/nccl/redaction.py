"""Redaction of environments in foreign files: only network settings are kept.

An environment holds passwords, names, addresses and paths. A variable is kept where its name is that of a library of
the network, and its value where it is a plain word: no path, no address, no name of a host, and nothing under a name
that sounds like a secret.
"""

import re
from collections.abc import Iterable, Mapping

REDACTED = "(redacted)"
MAX_VARIABLES = 1000
_LIBRARIES = re.compile(
    r"(?:NCCL|RCCL|TORCH_NCCL|UCX|FI|GLOO|MLX5|IBV|SHARP|CUDA_DEVICE|CUDA_VISIBLE)_[A-Z0-9_]{1,100}"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CRED|AUTH|COMM_ID|HOSTID|URI|URL")
_PLAIN = re.compile(r"[A-Za-z0-9_.,:=^+-]{0,200}")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]{0,4}::|(?:[0-9a-fA-F]{1,4}:){3}")


def redact(assignments: Iterable[str], hosts: Iterable[str] = ()) -> Mapping[str, str]:
    """Return what may be kept of `NAME=value` texts, in order of names; `hosts` are names that no value may hold."""
    names = [host.lower() for host in hosts if host]
    kept: dict[str, str] = {}
    for assignment in assignments:
        name, _, value = assignment.partition("=")
        if _LIBRARIES.fullmatch(name) and len(kept) < MAX_VARIABLES:
            is_plain = _PLAIN.fullmatch(value) and not _ADDRESS.search(value) and not _SECRET.search(name)
            kept[name] = value if is_plain and not any(host in value.lower() for host in names) else REDACTED
    return dict(sorted(kept.items()))
