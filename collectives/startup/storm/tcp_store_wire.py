"""torch's TCPStore on the wire: one byte for the operation, and texts after their length.

Source: torch 2.13, TCPStore.cpp. There is no document; a test holds this to what torch's own client sends.
"""

import struct

from fabrictune.collectives.startup.operation_count import OperationCount
from fabrictune.collectives.startup.store_operations import Add, CheckKey, CompareSet, Get, Set, StoreOperation, Wait
from fabrictune.collectives.startup.storm.wires import StoreRequest, Taken, Taker

_VALIDATE, _SET, _COMPARE_SET, _GET, _ADD, _CHECK, _WAIT, _PING = 0, 1, 2, 3, 4, 5, 6, 13
_MAGIC = 0x3C85F7CE


class TcpStoreWire:
    """TCPStore of torch. Its `get` is two requests, a wait and a read; its `set` has no reply."""

    def __init__(self, attempt: str) -> None:
        self._prefix = f"/{attempt}/"

    def greeting(self) -> tuple[StoreRequest, ...]:
        """Return torch's validation, and its ping with a number that comes back."""
        return (
            StoreRequest(struct.pack("<BI", _VALIDATE, _MAGIC), None),
            StoreRequest(struct.pack("<BI", _PING, 1), _take_u32),
        )

    def requests(self, operation: StoreOperation) -> tuple[StoreRequest, ...]:
        """Return an operation's requests."""
        match operation:
            case Set(key, value):
                return (StoreRequest(bytes((_SET,)) + self._key(key) + _text(value), None),)
            case CompareSet(key, expected, desired):
                data = bytes((_COMPARE_SET,)) + self._key(key) + _text(expected) + _text(desired)
                return (StoreRequest(data, _take_text),)
            case Add(key, amount):
                return (StoreRequest(bytes((_ADD,)) + self._key(key) + struct.pack("<q", amount), _take_i64),)
            case Get(key):
                return (
                    self._keys_request(_WAIT, (key,), _take_done),
                    StoreRequest(bytes((_GET,)) + self._key(key), _take_text),
                )
            case Wait(keys):
                return (self._keys_request(_WAIT, keys, _take_done),)
            case CheckKey(key):
                return (self._keys_request(_CHECK, (key,), _take_is_ready),)
        raise AssertionError(f"{operation} asks nothing of a store")

    def _keys_request(self, kind: int, keys: tuple[str, ...], take: Taker) -> StoreRequest:
        return StoreRequest(struct.pack("<BQ", kind, len(keys)) + b"".join(map(self._key, keys)), take)

    def _key(self, key: str) -> bytes:
        return _text(self._prefix + key)

    def num_requests(self, count: OperationCount) -> int:
        """Return how many requests counted operations are."""
        return sum(count[name] for name in ("Set", "CompareSet", "Add", "Wait", "CheckKey")) + 2 * count["Get"]


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _take_u32(data: bytes) -> Taken | None:
    return (struct.unpack_from("<I", data)[0], 4) if len(data) >= 4 else None


def _take_i64(data: bytes) -> Taken | None:
    return (struct.unpack_from("<q", data)[0], 8) if len(data) >= 8 else None


def _take_text(data: bytes) -> Taken | None:
    if len(data) < 8 or len(data) < (end := 8 + struct.unpack_from("<Q", data)[0]):
        return None
    return data[8:end].decode(), end


def _take_done(data: bytes) -> Taken | None:
    return (None, 1) if data else None


def _take_is_ready(data: bytes) -> Taken | None:
    return (data[0] == 0, 1) if data else None
