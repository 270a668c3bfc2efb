"""Redis commands behind a store's operations.

Every key is a stream of one entry, because reading a stream is the one command of Redis that waits for a key, leaves it
there, brings its value and serves any number of waiters (`XREAD BLOCK`); nothing is ever polled. Writing is a script,
so that value and expiry change together. A stream's name is a key's own, under the attempt's prefix.

Source: redis.io, commands XADD, XREAD, EVALSHA. Streams need Redis 5.0; nothing here needs more.
"""

import hashlib
from dataclasses import dataclass, field

EPOCH = "epoch"  # the key that distinguishes one life of the server from the next

Word = str | bytes | int
Command = tuple[Word, ...]


@dataclass(frozen=True)
class Script:
    """A script of one key, known to the server by its digest once it has run there."""

    text: str
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest())

    def call(self, key: str, *arguments: Word) -> Command:
        """Return the command that runs the script where the server knows it."""
        return ("EVALSHA", self.digest, 1, key, *arguments)

    def introduce(self) -> Command:
        """Return the command that makes the server know the script, until it is restarted."""
        return ("SCRIPT", "LOAD", self.text)


# ARGV[1] is the expiry in milliseconds, the same in all of them.
_PUT = """
local function put(value)
    redis.call('XADD', KEYS[1], 'MAXLEN', 1, '*', 'v', value)
    redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
local function held()
    local entry = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
    return entry and entry[2][2]
end
"""
WRITE = Script(_PUT + "put(ARGV[2])")
WRITE_IF_ABSENT = Script(_PUT + "if not held() then put(ARGV[2]) end return held()")
APPEND = Script(_PUT + "put((held() or '') .. ARGV[2])")
ADD = Script(_PUT + "local sum = string.format('%d', (held() or 0) + ARGV[2]) put(sum) return sum")
COMPARE_SET = Script(
    _PUT
    + """
local value = held()
if value and value ~= ARGV[2] then return value end
if not value and ARGV[2] ~= '' then return ARGV[2] end
put(ARGV[3])
return ARGV[3]
"""
)
SCRIPTS = (WRITE, WRITE_IF_ABSENT, APPEND, ADD, COMPARE_SET)


def await_value(key: str, timeout_s: float) -> Command:
    """Return the command that waits for a key and brings its value."""
    return ("XREAD", "COUNT", 1, "BLOCK", max(1, round(timeout_s * 1000)), "STREAMS", key, 0)


def awaited_value(reply: object) -> bytes | None:
    """Return the value in the reply to `await_value`, None if it did not come in time."""
    if not reply:
        return None
    assert isinstance(reply, list), "XREAD answers with a list of streams"
    value = reply[0][1][0][1][1]  # first stream, its entries, first entry, its fields, value of the first
    assert isinstance(value, bytes)
    return value
