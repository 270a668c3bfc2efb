"""Roles of nodes by what people call them: a host, or a switch of a tier.

A name or a role is read word by word, digits and plurals aside. A word for a switch counts more than one for a host:
`gpu-leaf-01` is the leaf of GPUs, `compute-tor-2` a ToR. What follows from a name is a guess; an importer notes it.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise

HOST_TIER = 0
_TIERS: Mapping[str, int] = {
    **dict.fromkeys(("server", "host", "gpu", "node", "compute", "storage", "client", "worker"), HOST_TIER),
    **dict.fromkeys(("leaf", "leave", "tor", "access", "rail", "borderleaf", "bleaf"), 1),
    **dict.fromkeys(("spine", "agg", "aggregation"), 2),
    **dict.fromkeys(("core", "superspine"), 3),
}
_HOST_NAMES = ("host", "server", "srv", "gpu", "node", "compute", "worker", "client", "dgx", "hgx", "storage", "tester")
_NO_TIER_IN_NAMES = ("access", "rail", "node")  # words that names of hosts, NICs and switches share
MAX_NAMED = 5  # nodes in one note


def tier_of_role(role: str) -> int | None:
    """Return the tier of a role such as `Super-Spine` or `leafs`, HOST_TIER for a host's, None for one not known."""
    words = _words(role)
    whole = "".join(words)
    return _TIERS.get(whole, _TIERS.get(whole.removesuffix("s")))


def tier_of_name(name: str) -> int | None:
    """Return the tier that a node's name says, HOST_TIER for a host's, None where it says none."""
    words = _words(name)
    pairs = [first + second for first, second in pairwise(words)]
    tiers = [_TIERS[word] for word in (*pairs, *words) if word in _TIERS and word not in _NO_TIER_IN_NAMES]
    switch_tiers = [tier for tier in tiers if tier != HOST_TIER]
    if switch_tiers:
        return switch_tiers[0]
    return HOST_TIER if name.lower().startswith(_HOST_NAMES) else None


def named(names: Iterable[str]) -> str:
    """Return how many nodes there are and the first of them: `7 (leaf1, leaf2, ...)`."""
    known = list(names)
    more = ", ..." if len(known) > MAX_NAMED else ""
    return f"{len(known)} ({', '.join(known[:MAX_NAMED])}{more})"


def _words(text: str) -> list[str]:
    return re.findall("[a-z]+", text.lower())
