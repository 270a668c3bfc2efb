"""What came back of one node: sections of text, each the content of a file or the output of a command.

A reading comes as the JSON of the node's program, as the sections of its shell, or as a switch's own `config_db.json`;
it is kept as JSON, whatever it came as. The size of all is bounded before it is read; what fits none of the forms is a
mistake. Secrets in lines are replaced when it is read, and of a switch's configuration only the tables that are used
stay.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fabrictune.fleet.collect.script import RECORD_SEPARATOR
from fabrictune.foundation.documents import decode_text, parse_json
from fabrictune.foundation.errors import InputError, Mistake, quote
from fabrictune.foundation.redaction import redact_secrets
from fabrictune.topology.importers.sonic import name_of_file

Kind = Literal["file", "link", "command", "environment"]
KINDS: tuple[Kind, ...] = ("file", "link", "command", "environment")
FORMAT_KEY, FORMAT = "fabrictune_node", 1
MAX_NODE_BYTES = 32 * 2**20
ALLOWED = "what `fleet collect` or its script wrote, or the config_db.json of a switch"
MAX_SECTIONS = 200_000
MAX_LINE = 20_000  # characters; the rest of a longer line is left out
CONFIG_DB = "/etc/sonic/config_db.json"
SONIC_TABLES = re.compile(
    r"DEVICE_METADATA|DEVICE_NEIGHBOR(_METADATA)?|PORT|PORTCHANNEL(_MEMBER)?|CABLE_LENGTH|BUFFER_\w+|"
    r"DEFAULT_LOSSLESS_BUFFER_PARAMETER|QUEUE|SCHEDULER|WRED_PROFILE|\w+_MAP|MAP_\w+|PFC_WD|SWITCH_HASH|"
    r"SWITCH_TRIMMING|BGP_NEIGHBOR|BGP_PEER_RANGE|BFD\w*|INTERFACE|FLEX_COUNTER_TABLE"
)
_UNUSED_FIELDS = re.compile(r"passw|secret|key$|community|auth", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A file, a link's end, or what a command printed."""

    kind: Kind
    name: str  # path, or the command as it was run
    lines: Sequence[str]
    status: int = 0  # of the command

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)


@dataclass(frozen=True, kw_only=True)
class NodeReading:
    """All that was read on one node."""

    name: str
    how: str  # "python3", "sh" or "file"
    sections: Sequence[Section]
    unread: Sequence[tuple[str, str]] = ()  # path or command, and why
    is_cut: bool = False  # more was there than may be

    def where(self, section: Section, line: int = 0) -> str:
        """Return the place of a line, counted from 0: `gpu01: mlnx_qos -i eth0:12`."""
        return f"{self.name}: {section.name}:{line + 1}"

    def as_json(self) -> Mapping[str, Any]:
        """Return the reading as JSON values."""
        return {
            FORMAT_KEY: FORMAT,
            "name": self.name,
            "how": self.how,
            "sections": [
                {"kind": one.kind, "name": one.name, "status": one.status, "lines": list(one.lines)}
                for one in self.sections
            ],
            "unread": [list(one) for one in self.unread],
            "is_cut": self.is_cut,
        }


def parse_reading(data: bytes, path: Path, *, name: str = "") -> NodeReading:
    """Return the reading in a node's output or a file; `name` goes before the node's own. Raises InputError."""
    if data.startswith(RECORD_SEPARATOR.encode()):
        return _parse_shell(data.decode(errors="replace"), path, name)
    text = decode_text(data, path)
    if not text.lstrip().startswith("{"):
        found, step = f"text that begins with {quote(text[:40])}", "see what the node's login shell prints by itself"
        raise InputError(Mistake(where=str(path), found=found, allowed=ALLOWED, next_step=step))
    tree = parse_json(text, path).tree
    if not isinstance(tree, dict) or FORMAT_KEY not in tree:
        return _switch_file(tree, path, name)
    if tree[FORMAT_KEY] != FORMAT or not isinstance(tree.get("sections"), list):
        raise InputError(Mistake(where=str(path), found="a reading of another version", next_step="collect it again"))
    sections = tuple(_section(row) for row in tree["sections"][:MAX_SECTIONS])
    unread = [(str(one[0]), str(one[1])) for one in tree.get("unread", ()) if isinstance(one, list) and len(one) == 2]
    return NodeReading(
        name=name or str(tree.get("name") or path.stem),
        how=str(tree.get("how", "file")),
        sections=tuple(section for section in sections if section is not None),
        unread=unread,
        is_cut=bool(tree.get("is_cut")) or len(tree["sections"]) > MAX_SECTIONS,
    )


def encode_reading(reading: NodeReading) -> bytes:
    """Return the reading as a file: JSON with a line for each line that was read."""
    return (json.dumps(reading.as_json(), indent=1) + "\n").encode()


def _section(row: Any) -> Section | None:
    match row:
        case {"kind": str(kind), "name": str(name), "lines": list(lines)} if kind in KINDS:
            status = row.get("status", 0)
            return _made(kind, name, map(str, lines), status if isinstance(status, int) else 0)
    return None


def _made(kind: Any, name: str, lines: Iterator[str], status: int = 0) -> Section:
    kept = [line[:MAX_LINE] for line in lines]
    if name == CONFIG_DB:
        kept = _used_tables("\n".join(kept))
    elif kind != "link":
        kept = [redact_secrets(line) for line in kept]
    return Section(kind=kind, name=name, lines=tuple(kept), status=status)


def _used_tables(text: str) -> list[str]:
    """Return a configuration's used tables as lines; the text itself, redacted, where it is no JSON."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return [redact_secrets(line) for line in text.split("\n")]
    if not isinstance(tree, dict):
        return []
    kept = {name: _without_secrets(rows) for name, rows in tree.items() if _is_used(name, rows)}
    return json.dumps(kept, indent=1).split("\n")


def _is_used(name: str, rows: Any) -> bool:
    return bool(SONIC_TABLES.fullmatch(name.partition("|")[0])) or re.fullmatch(r"localhost|asic\d+", name) is not None


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_secrets(inner) for key, inner in value.items() if not _UNUSED_FIELDS.search(key)}
    return value


def _switch_file(tree: Any, path: Path, name: str) -> NodeReading:
    """Return a switch's own configuration as a reading of it."""
    if not isinstance(tree, dict) or not any(_is_used(key, None) for key in tree):
        raise InputError(Mistake(where=str(path), found="JSON of another kind", allowed=ALLOWED))
    section = _made("file", CONFIG_DB, iter(json.dumps(tree).split("\n")))
    metadata = tree.get("DEVICE_METADATA")
    localhost = metadata.get("localhost") if isinstance(metadata, dict) else None
    own = localhost.get("hostname") if isinstance(localhost, dict) else None
    return NodeReading(name=name or str(own or name_of_file(path) or path.stem), how="file", sections=(section,))


def _parse_shell(text: str, path: Path, name: str) -> NodeReading:
    sections: list[Section] = []
    unread: list[tuple[str, str]] = []
    own, is_whole, pending = "", False, ("", "", list[str]())
    for record in text.split(RECORD_SEPARATOR)[1 : MAX_SECTIONS + 1]:
        head, _, body = record.partition("\n")
        kind, _, what = head.partition(" ")
        if kind == "status":
            if pending[0] and (what == "0" or any(pending[2])):
                status = int(what) if what.isdecimal() and len(what) < 4 else 1
                sections.append(_made("command", pending[1], iter(pending[2]), status))
            elif pending[0]:
                unread.append((pending[1], f"exit status {what[:8]}"))
            pending = ("", "", [])
            continue
        lines = body.rstrip("\n").split("\n") if body.strip("\n") else []
        if kind == "node":
            own = what
        elif kind == "command":
            pending = (kind, what, lines)
        elif kind in KINDS:
            sections.append(_made(kind, what, iter(lines)))
        elif kind in ("missing", "unread"):
            unread.append((what, "not installed" if kind == "missing" else "not permitted"))
        elif kind == "end":
            is_whole = True
    return NodeReading(
        name=name or own or path.stem, how="sh", sections=tuple(sections), unread=tuple(unread), is_cut=not is_whole
    )
