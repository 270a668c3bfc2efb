"""Bounded readers of YAML and JSON files from others, with line numbers and without YAML's surprises.

`load_yaml(path)` and `load_json(path)` return a `Document`: `tree` is made of dict, list, str, int, float, bool and
None; `document.where("topology", "links", 2)` is the text `file.yaml:7: topology.links[2]` for a Mistake, with the line
of the deepest of these keys that the file contains. Keys of a mapping are always text.

YAML is read as its 1.2 core schema: `no`, `on` and `1:30` are text, and only true, false, null, numbers and text
exist. Refused, each with one message: files over a size limit, before they are read; text that is no UTF-8; empty
files; a duplicate key; tags; more than one document; nesting deeper than MAX_DEPTH; and aliases that unfold to
more than MAX_NODES values. A file is never executed and never costs more memory than its limits allow.

Source: YAML 1.2.2, section 10.3 (core schema), and its merge key `<<`; RFC 8259 (JSON).
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn

import yaml

from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import SPLIT, read_foreign

MAX_BYTES = 16 * 2**20
MAX_DEPTH = 64
MAX_NODES = 500_000  # values in a YAML file, aliases unfolded, and values of JSON whose lines are known
MAX_DIGITS = 40  # characters of a number; a longer one stays text in YAML and is refused in JSON
MAX_WHOLE = 2**63 - 1  # a whole number beyond stays text, or is refused, as well

Key = str | int


class Mark(NamedTuple):
    """The line of a value, and the marks of what it contains."""

    line: int
    inner: Mapping[Key, "Mark"] = MappingProxyType({})
    num_nodes: int = 1


@dataclass(frozen=True, kw_only=True)
class Document:
    """A file as plain values, with the place of each, and the text it had when it was read."""

    path: Path
    text: str = field(repr=False)
    tree: Any
    find_marks: Callable[[], Mark]

    def line(self, *keys: Key) -> int:
        """Return the line of the deepest of `keys` that the file contains."""
        mark = self.find_marks()
        for key in keys:
            if key not in mark.inner:
                break
            mark = mark.inner[key]
        return mark.line

    def where(self, *keys: Key) -> str:
        """Return `file:line: key.path[2]`, the place a Mistake names."""
        place = f"{self.path}:{self.line(*keys)}"
        return f"{place}: {key_path(keys)}" if keys else place


def key_path(keys: Sequence[Key]) -> str:
    """Return keys as people write them: `topology.links[2].endpoints`."""
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return text.removeprefix(".")


def load_yaml(path: Path, *, max_bytes: int = MAX_BYTES) -> Document:
    """Read a YAML file; raises InputError."""
    return parse_yaml(read_text(path, max_bytes=max_bytes), path)


def parse_yaml(text: str, path: Path) -> Document:
    """Return YAML text as a document; `path` is the file that mistakes name. Raises InputError."""
    tree, marks = _YamlComposer(path).compose(text)
    return Document(path=path, text=text, tree=tree, find_marks=lambda: marks)


def load_json(path: Path, *, max_bytes: int = MAX_BYTES) -> Document:
    """Read a JSON file; raises InputError. Lines are looked up only on request."""
    return parse_json(read_text(path, max_bytes=max_bytes), path)


def parse_json(text: str, path: Path) -> Document:
    """Return the JSON text of `path` as a document; raises InputError."""
    with _bad_json_refused(path):
        tree = _JSON.decode(text)
        refuse_half_characters(text, tree)
    return Document(path=path, text=text, tree=tree, find_marks=cache(lambda: _json_marks(text)))


def load_json_sequence(path: Path, *, max_bytes: int = MAX_BYTES) -> Iterator[Document]:
    """Yield the documents of a file in which JSON texts follow one another; raises InputError at one that is broken."""
    text = read_text(path, max_bytes=max_bytes)
    end, line, num_documents = 0, 1, 0
    while (start := _after_space(text, end)) < len(text):
        line += text.count("\n", end, start)
        num_documents += 1
        if num_documents > MAX_NODES:
            _refuse(
                f"{path}:{line}", "more JSON texts than can be used", allowed=f"{MAX_NODES} in a file", next_step=SPLIT
            )
        with _bad_json_refused(path):
            tree, end = _JSON.raw_decode(text, start)
            refuse_half_characters(text[start:end], tree)
        part = text[start:end]
        yield Document(path=path, text=part, tree=tree, find_marks=cache(partial(_json_marks, part, line)))
        line += text.count("\n", start, end)


def read_text(path: Path, *, max_bytes: int = MAX_BYTES) -> str:
    """Return a text file's content; raises InputError for one too large, empty, unreadable or no UTF-8."""
    return decode_text(read_foreign(path, max_bytes=max_bytes), path)


def decode_text(data: bytes, path: Path) -> str:
    """Return the text of a file's bytes; raises InputError for none, or for no UTF-8."""
    if not data.strip():
        _refuse(str(path), "an empty file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(str(path), f"not text: byte {error.start} is no UTF-8", allowed="text in UTF-8")


def _refuse(where: str, found: str, *, allowed: str = "", next_step: str = "") -> NoReturn:
    raise InputError(Mistake(where=where, found=found, allowed=allowed, next_step=next_step)) from None


class _MergeKey(str):
    """The key of a merge, `<<` without quotes; in quotes it is a key as any other."""


_MERGE = _MergeKey("<<")


class _YamlComposer:
    """Builds values and their marks from the parser's events, without recursion."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.anchors: dict[str, tuple[Any, Mark]] = {}
        self.open: list[_Collection] = []
        self.root: tuple[Any, Mark] | None = None
        self.num_documents = 0
        self.num_nodes = 0

    def compose(self, text: str) -> tuple[Any, Mark]:
        try:
            for event in _events(text):
                self._take(event)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            _refuse(f"{self.path}:{line}", f"no YAML: {error.problem or error.context}")
        except yaml.YAMLError as error:
            _refuse(str(self.path), f"no YAML: {str(error).splitlines()[0]}")
        if self.root is None:
            _refuse(str(self.path), "an empty file")
        return self.root

    def _take(self, event: yaml.Event) -> None:
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.DocumentStartEvent):
            self.num_documents += 1
            if self.num_documents > 1:
                self._refuse(line, "a second document (---)", "one document in a file")
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                self._refuse(line, f"alias *{event.anchor} without an anchor before it", "an anchor before its alias")
            self._add(*self.anchors[event.anchor], line, is_new=False)
        elif isinstance(event, yaml.ScalarEvent):
            self._add_scalar(event, line)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._check_tag(event, line)
            self.open.append(_Collection(isinstance(event, yaml.MappingStartEvent), event.anchor, line))
            if len(self.open) > MAX_DEPTH:
                self._refuse(line, "values nested too deeply", f"{MAX_DEPTH} levels")
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            self._close(self.open.pop())

    def _add_scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        self._check_tag(event, line)
        is_key = bool(self.open) and self.open[-1].awaits_key
        value = _plain_value(event.value) if event.implicit[0] and not is_key else event.value
        if is_key and event.implicit[0] and value == _MERGE:
            value = _MERGE
        pair = (value, Mark(line))
        if event.anchor:
            self.anchors[event.anchor] = pair
        self._add(*pair, line, is_new=True)

    def _close(self, collection: "_Collection") -> None:
        pair = collection.finish()
        if collection.anchor:
            self.anchors[collection.anchor] = pair
        self._add(*pair, collection.line, is_new=True)

    def _add(self, value: Any, mark: Mark, line: int, *, is_new: bool) -> None:
        self.num_nodes += 1 if is_new else mark.num_nodes
        if self.num_nodes > MAX_NODES:
            found = "more values than can be used, counting what aliases unfold to"
            self._refuse(line, found, f"{MAX_NODES} values", next_step=SPLIT)
        if not self.open:
            self.root = (value, mark)
        elif problem := self.open[-1].add(value, mark, line):
            self._refuse(line, problem, "each key once, as text")

    def _check_tag(self, event: Any, line: int) -> None:
        if event.tag not in (None, "!", "tag:yaml.org,2002:str"):
            self._refuse(line, f"the tag {event.tag!r}", "values without tags")

    def _refuse(self, line: int, found: str, allowed: str, *, next_step: str = "") -> NoReturn:
        _refuse(f"{self.path}:{line}", found, allowed=allowed, next_step=next_step)


class _Collection:
    """A mapping or a sequence that is being read."""

    def __init__(self, is_mapping: bool, anchor: str | None, line: int) -> None:
        self.is_mapping = is_mapping
        self.anchor = anchor
        self.line = line
        self.values: dict[Key, Any] = {}
        self.marks: dict[Key, Mark] = {}
        self.merged: list[tuple[Any, Mark]] = []
        self.key: str | None = None
        self.line_of_key = line
        self.num_nodes = 1

    @property
    def awaits_key(self) -> bool:
        return self.is_mapping and self.key is None

    def add(self, value: Any, mark: Mark, line: int) -> str:
        """Take the next key or value; returns what is wrong with it, or ""."""
        self.num_nodes += mark.num_nodes
        if self.awaits_key:
            if not isinstance(value, str):
                return "a key that is no text"
            if value is not _MERGE and value in self.values:
                return f"the key {str(value)!r} a second time"
            self.key, self.line_of_key = value, line
            return ""
        if self.key is _MERGE:
            return self._merge(value, mark)
        key: Key = len(self.values) if self.key is None else self.key
        self.values[key] = value
        self.marks[key] = Mark(line if self.key is None else self.line_of_key, mark.inner, mark.num_nodes)
        self.key = None
        return ""

    def finish(self) -> tuple[Any, Mark]:
        for value, mark in self.merged:
            for key in value:
                self.values.setdefault(key, value[key])
                self.marks.setdefault(key, mark.inner[key])
        tree: Any = self.values if self.is_mapping else list(self.values.values())
        return tree, Mark(self.line, self.marks, self.num_nodes)

    def _merge(self, value: Any, mark: Mark) -> str:
        """Remember the mapping, or mappings, whose keys replace those that are missing here."""
        self.key = None
        parts = [(value, mark)] if isinstance(value, dict) else []
        if isinstance(value, list):
            parts = [(part, mark.inner[row]) for row, part in enumerate(value)]
        if not parts or not all(isinstance(part, dict) for part, _ in parts):
            return "a merge (<<) of what is no mapping"
        self.merged.extend(parts)
        return ""


def _events(text: str) -> Iterator[yaml.Event]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's parser, where PyYAML was built with it
    return yaml.parse(text, Loader=loader)


_INTEGER = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?")
_CONSTANTS: Mapping[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def _plain_value(text: str) -> str | int | float | bool | None:
    """Return what an unquoted scalar means in the core schema; a number too long to read stays text."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text.lstrip("+-")) > MAX_DIGITS:
        return text
    if _INTEGER.fullmatch(text):
        number = int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        return number if abs(number) <= MAX_WHOLE else text
    return float(text) if _FLOAT.fullmatch(text) else text


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {repeated!r} appears twice in one object")
    return values


def _short_integer(text: str) -> int:
    digits = text.lstrip("-")
    if len(digits) > MAX_DIGITS or int(digits) > MAX_WHOLE:
        raise ValueError(f"a whole number of {len(digits)} digits")
    return int(text)


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number")
    return value


def refuse_half_characters(text: str, tree: Any) -> None:
    """Refuse half of a surrogate pair, which no file and no terminal can represent."""
    if "\\u" in text:
        try:
            json.dumps(tree, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{error.object[error.start]!r} is half of a character") from None


_JSON = json.JSONDecoder(
    object_pairs_hook=_without_repeats,
    parse_int=_short_integer,
    parse_float=_finite_float,
    parse_constant=_finite_float,
)
_JSON_SPACE = re.compile(r"[ \t\n\r]*")
_JSON_PIECE = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|\n|[^\s{}\[\],:"]+')  # possessive: no stack to go back on


def _after_space(text: str, start: int) -> int:
    space = _JSON_SPACE.match(text, start)
    assert space, "the pattern matches nothing, too"
    return space.end()


@contextmanager
def _bad_json_refused(path: Path) -> Iterator[None]:
    try:
        yield
    except json.JSONDecodeError as error:
        _refuse(f"{path}:{error.lineno}", f"no JSON: {error.msg} at column {error.colno}")
    except RecursionError:
        _refuse(str(path), "values nested too deeply to read")
    except ValueError as error:
        _refuse(str(path), f"no JSON that can be used: {error}")


def _json_marks(text: str, line: int = 1) -> Mark:
    """Return the marks of the first MAX_NODES values of JSON text that is known to be valid and begins on `line`."""
    root: dict[Key, Mark] = {}
    stack: list[tuple[dict[Key, Mark], bool]] = [(root, False)]  # marks of what is open, and whether it has keys
    num_marks = 0
    key: Key | None = None
    for match in _JSON_PIECE.finditer(text):
        piece = match.group()
        marks, has_keys = stack[-1]
        if piece == "\n":
            line += 1
        elif piece in ("}", "]"):
            stack.pop()
            key = None
        elif piece == ",":
            key = None
        elif has_keys and key is None:
            key = str(json.loads(piece))
            marks[key] = Mark(line)
        elif piece != ":":
            place = len(marks) if key is None else key
            line_of_key = marks[place].line if place in marks else line
            if piece in ("{", "["):
                inner: dict[Key, Mark] = {}
                marks[place] = Mark(line_of_key, inner)
                stack.append((inner, piece == "{"))
                key = None
            else:
                marks[place] = Mark(line_of_key)
            num_marks += 1
            if num_marks == MAX_NODES:
                break
    return root[0]
