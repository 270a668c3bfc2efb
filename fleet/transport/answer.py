"""How a node answered, and the limits within which it has to."""

from dataclasses import dataclass
from enum import StrEnum

from fabrictune.fleet.collect.node_reading import MAX_NODE_BYTES


class State(StrEnum):
    """What came of asking a node."""

    COLLECTED = "collected"
    UNREACHABLE = "unreachable"
    REFUSED = "connection refused"
    KEY_UNKNOWN = "host key unknown"
    KEY_CHANGED = "host key changed"
    NOT_AUTHENTICATED = "login refused"
    TIMED_OUT = "timed out"
    ENDED = "ended early"
    UNUSABLE = "unusable answer"
    STOPPED = "stopped"


NEXT_STEPS: dict[State, str] = {
    State.UNREACHABLE: "check the name, the address and the route to it",
    State.REFUSED: "see whether sshd runs there, and on which port",
    State.KEY_UNKNOWN: "compare its key with the console's (ssh-keyscan), and add it to known_hosts",
    State.KEY_CHANGED: "find out whether the node was reinstalled before its old key is removed (ssh-keygen -R)",
    State.NOT_AUTHENTICATED: "check user and key: ssh USER@HOST true",
    State.TIMED_OUT: "see whether the node hangs, or allow more with --timeout",
    State.ENDED: "look at the node's log, and ask it again",
    State.UNUSABLE: "run the script there by hand: fabrictune fleet collect --print-script",
    State.STOPPED: "ask it again",
}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long each phase may take, and how much may come back."""

    connect_s: float = 5.0  # until TCP stands
    handshake_s: float = 10.0  # until the host key is checked
    login_s: float = 15.0
    run_s: float = 60.0  # the script
    max_bytes: int = MAX_NODE_BYTES


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one node answered."""

    name: str
    state: State
    detail: str = ""
    output: bytes = b""
    wall_s: float = 0.0

    @property
    def is_good(self) -> bool:
        """Whether the node was read."""
        return self.state == State.COLLECTED


class AskError(Exception):
    """Why a node was not read; never leaves the transports."""

    def __init__(self, state: State, detail: str = "") -> None:
        super().__init__(detail)
        self.state, self.detail = state, detail
