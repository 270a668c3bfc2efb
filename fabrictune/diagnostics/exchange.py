"""Orders to ranks and their answers, as JSON in a store, so that no test rests on the network between the ranks.

The leader publishes one order after another; a rank answers those that name it. A rank that does not answer within an
order's limit is silent, and is asked no more.
"""

import json
from collections.abc import Iterable
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch.distributed as dist

_MAX_BYTES = 2**20  # of an order or answer
_LEAST_S = 0.001


class LeaderSide:
    """Publishes orders, and collects answers."""

    def __init__(self, store: "dist.Store") -> None:
        self._store, self._number = store, 0

    def ask(self, order: dict[str, Any], ranks: Iterable[int], *, limit_s: float) -> dict[int, Any]:
        """Return the answers of these ranks to an order; those that are silent for `limit_s` have none."""
        number, ranks = self._number, list(ranks)
        self._number += 1
        self._store.set(f"order/{number}", json.dumps({**order, "number": number, "ranks": ranks}))
        deadline_s, answers = monotonic() + limit_s, {}
        for rank in ranks:
            content = _get(self._store, f"answer/{number}/{rank}", deadline_s - monotonic())
            if content is not None:
                answers[rank] = json.loads(content)
        return answers


class RankSide:
    """Takes orders, and answers them."""

    def __init__(self, store: "dist.Store", rank: int) -> None:
        self._store, self._rank, self._number = store, rank, 0

    def next_order(self, *, limit_s: float) -> dict[str, Any] | None:
        """Return the next order that names this rank, None where none comes within `limit_s`."""
        while True:
            content = _get(self._store, f"order/{self._number}", limit_s)
            if content is None:
                return None
            self._number += 1
            order = json.loads(content)
            assert isinstance(order, dict), "as published"
            if self._rank in order["ranks"]:
                return order

    def answer(self, order: dict[str, Any], values: Any) -> None:
        """Answer an order."""
        self._store.set(f"answer/{order['number']}/{self._rank}", json.dumps(values))


def _get(store: "dist.Store", key: str, limit_s: float) -> bytes | None:
    import torch.distributed as dist

    try:
        store.wait([key], timedelta(seconds=max(_LEAST_S, limit_s)))
    except dist.DistStoreError:
        return None
    content = bytes(store.get(key))
    assert len(content) <= _MAX_BYTES, "an order or answer is small"
    return content
