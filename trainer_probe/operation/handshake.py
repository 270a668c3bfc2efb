"""The handshake of a connection: each side proves that it has the key, and both derive the keys of their frames.

The client sends a nonce. The server answers with its own and with an HMAC-SHA256 over both under the shared key; the
client checks that and answers with its HMAC. Each HMAC begins with a label of its own, so that nothing one side sends
can be sent back to it. The keys of the frames, one a direction, are HMACs over both nonces: a recorded session proves
nothing in another one, whose nonces differ.

Every message of a handshake has a fixed size, so that a peer without the key occupies no more than that.

Left out: secrecy. Frames can be read on their way; what must not be read goes through a tunnel of the user's.
"""

import hmac
import secrets
from dataclasses import dataclass

NONCE_BYTES = 32
PROOF_BYTES = 32
_CLIENT = b"fabrictune operation 1 client\n"
_SERVER = b"fabrictune operation 1 server\n"
CLIENT_HELLO_BYTES = len(_CLIENT) + NONCE_BYTES
SERVER_HELLO_BYTES = len(_SERVER) + NONCE_BYTES + PROOF_BYTES


@dataclass(frozen=True, kw_only=True)
class SessionKeys:
    """Keys of one connection's frames."""

    of_client: bytes  # of frames that the client sends
    of_server: bytes


class ServerHandshake:
    """The server's side: `answer` its client's hello, then `finish` with the client's proof."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._nonces = b""

    def answer(self, hello: bytes) -> bytes | None:
        """Return the answer to a client's hello, or None where it is none."""
        if len(hello) != CLIENT_HELLO_BYTES or not hello.startswith(_CLIENT):
            return None
        own = secrets.token_bytes(NONCE_BYTES)
        self._nonces = hello[len(_CLIENT) :] + own
        return _SERVER + own + _authenticate(self._key, _SERVER, self._nonces)

    def finish(self, proof: bytes) -> SessionKeys | None:
        """Return the keys of the session, or None where the client doesn't have the shared key."""
        if not hmac.compare_digest(proof, _authenticate(self._key, _CLIENT, self._nonces)):
            return None
        return _derive(self._key, self._nonces)


class ClientHandshake:
    """The client's side: send `hello`, then `finish` with the server's answer."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._nonce = secrets.token_bytes(NONCE_BYTES)
        self.hello = _CLIENT + self._nonce

    def finish(self, answer: bytes) -> tuple[bytes, SessionKeys] | None:
        """Return the proof to send and the keys of the session, or None where the server doesn't have the key."""
        if len(answer) != SERVER_HELLO_BYTES or not answer.startswith(_SERVER):
            return None
        nonces = self._nonce + answer[len(_SERVER) : len(_SERVER) + NONCE_BYTES]
        if not hmac.compare_digest(answer[-PROOF_BYTES:], _authenticate(self._key, _SERVER, nonces)):
            return None
        return _authenticate(self._key, _CLIENT, nonces), _derive(self._key, nonces)


def _derive(key: bytes, nonces: bytes) -> SessionKeys:
    return SessionKeys(
        of_client=_authenticate(key, b"frames of client\n", nonces),
        of_server=_authenticate(key, b"frames of server\n", nonces),
    )


def _authenticate(key: bytes, label: bytes, content: bytes) -> bytes:
    return hmac.digest(key, label + content, "sha256")
