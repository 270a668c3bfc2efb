"""Ranks that are processes of this machine, and what becomes of them."""

import multiprocessing
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection

from fabrictune.foundation.errors import FabrictuneError
from tests.patience import patience

ENDS_WITHIN_S = 60


class Rank:
    """A process that does one thing, and what came of it."""

    def __init__(self, target: Callable[[], object]) -> None:
        context = multiprocessing.get_context("fork")
        self._receiver, sender = context.Pipe(duplex=False)
        self.process = context.Process(target=_run, args=(target, sender), daemon=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of numerical libraries are idle here
            self.process.start()
        sender.close()

    def outcome(self) -> str:
        """Return "done", or the words of the error."""
        assert self._receiver.poll(patience(ENDS_WITHIN_S)), "the rank hangs"
        text: str = self._receiver.recv()
        return text


@contextmanager
def running(targets: Sequence[Callable[[], object]]) -> Iterator[list[Rank]]:
    """Run each target in a process of its own, and end those that are left."""
    ranks: list[Rank] = []
    try:
        ranks.extend(Rank(target) for target in targets)
        yield ranks
    finally:
        for rank in ranks:
            rank.process.kill()
            rank.process.join()


def _run(target: Callable[[], object], sender: "Connection[str, str]") -> None:
    try:
        target()
        sender.send("done")
    except FabrictuneError as error:
        sender.send(str(error))
    except BaseException as error:
        sender.send(f"{type(error).__name__}: {error}")
