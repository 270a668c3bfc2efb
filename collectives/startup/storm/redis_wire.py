"""Redis on the wire, with the commands of `redis_commands.py`, in RESP2.

A reply is a line, or a line with a length and as many bytes, or a line with a number and as many replies.

Source: redis.io, "Redis serialization protocol specification".
"""

from fabrictune.collectives.startup.operation_count import OperationCount
from fabrictune.collectives.startup.redis_commands import (
    ADD,
    COMPARE_SET,
    EPOCH,
    WRITE,
    WRITE_IF_ABSENT,
    Command,
    await_value,
    awaited_value,
)
from fabrictune.collectives.startup.store_operations import Add, CheckKey, CompareSet, Get, Set, StoreOperation, Wait
from fabrictune.collectives.startup.storm.wires import StoreRequest, Taken, Taker

RespValue = None | int | bytes | list["RespValue"]


class RedisWire:
    """Redis, as `RedisClient` speaks to it. The server must know the scripts."""

    def __init__(self, attempt: str, *, password: str, expiry_ms: int, timeout_s: float) -> None:
        self._attempt = attempt
        self._password = password
        self._expiry_ms = expiry_ms
        self._timeout_s = timeout_s

    def greeting(self) -> tuple[StoreRequest, ...]:
        """Return what opens the server, and asks for its epoch."""
        epoch = WRITE_IF_ABSENT.call(self._name(EPOCH), self._expiry_ms, "storm")
        return tuple(StoreRequest(_packed(command), _take_nothing) for command in (("AUTH", self._password), epoch))

    def requests(self, operation: StoreOperation) -> tuple[StoreRequest, ...]:
        """Return an operation's requests."""
        match operation:
            case Set(key, value):
                command = WRITE.call(self._name(key), self._expiry_ms, value)
                return (StoreRequest(_packed(command), _take_nothing),)
            case CompareSet(key, expected, desired):
                command = COMPARE_SET.call(self._name(key), self._expiry_ms, expected, desired)
                return (StoreRequest(_packed(command), _take_word),)
            case Add(key, amount):
                command = ADD.call(self._name(key), self._expiry_ms, amount)
                return (StoreRequest(_packed(command), _take_number),)
            case Get(key):
                return (self._read(key, _take_entry),)
            case Wait(keys):
                return tuple(self._read(key, _take_nothing) for key in keys)
            case CheckKey(key):
                return (StoreRequest(_packed(("EXISTS", self._name(key))), _take_flag),)
        raise AssertionError(f"{operation} asks nothing of a store")

    def _read(self, key: str, take: Taker) -> StoreRequest:
        return StoreRequest(_packed(await_value(self._name(key), self._timeout_s)), take)

    def _name(self, key: str) -> str:
        return f"{self._attempt}/{key}"

    def num_requests(self, count: OperationCount) -> int:
        """Return how many requests counted operations are: each awaited key is one."""
        return sum(count[name] for name in ("Set", "CompareSet", "Add", "Get", "CheckKey", "awaited keys"))


def _packed(command: Command) -> bytes:
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


def parse_resp(data: bytes, begin: int = 0) -> tuple[RespValue, int] | None:
    """Return the value that begins at a byte and the byte after it; None while it is not all there."""
    line_end = data.find(b"\r\n", begin)
    if line_end < 0:
        return None
    kind, line, end = data[begin : begin + 1], data[begin + 1 : line_end], line_end + 2
    if kind == b"-":
        raise ConnectionError(line.decode())
    if kind == b":":
        return int(line), end
    if kind == b"$":
        size = int(line)
        if size < 0:
            return None, end
        return (data[end : end + size], end + size + 2) if len(data) >= end + size + 2 else None
    if kind == b"*":
        return _parse_items(data, end, int(line))
    return line, end


def _parse_items(data: bytes, begin: int, number: int) -> tuple[RespValue, int] | None:
    if number < 0:
        return None, begin
    items: list[RespValue] = []
    for _ in range(number):
        parsed = parse_resp(data, begin)
        if parsed is None:
            return None
        items.append(parsed[0])
        begin = parsed[1]
    return items, begin


def _take_nothing(data: bytes) -> Taken | None:
    parsed = parse_resp(data)
    return (None, parsed[1]) if parsed else None


def _take_word(data: bytes) -> Taken | None:
    parsed = parse_resp(data)
    return (parsed[0].decode(), parsed[1]) if parsed and isinstance(parsed[0], bytes) else None


def _take_number(data: bytes) -> Taken | None:
    parsed = parse_resp(data)
    return (int(parsed[0]), parsed[1]) if parsed and isinstance(parsed[0], bytes) else None


def _take_flag(data: bytes) -> Taken | None:
    parsed = parse_resp(data)
    return (parsed[0] == 1, parsed[1]) if parsed else None


def _take_entry(data: bytes) -> Taken | None:
    parsed = parse_resp(data)
    if parsed is None:
        return None
    value = awaited_value(parsed[0])
    return (value.decode() if value is not None else None), parsed[1]
