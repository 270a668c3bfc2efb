"""Settings with the place each comes from, as a tree of keys, and the tree as YAML with the places as comments."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fabrictune.topology.switch_qos.votes import Elected

COMMENT_COLUMN = 32


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A value as a scenario writes it, and where it comes from."""

    value: str | int | float | bool
    source: str

    @property
    def text(self) -> str:
        """The value as YAML."""
        return str(self.value).lower() if isinstance(self.value, bool) else str(self.value)


def said(value: str | int | float | bool, elected: Elected, name: str = "") -> Setting:
    """Return a setting with its place, and how many have it where not all do; `name` is a field of the place's row."""
    where = elected.first.where_of(name) if name else elected.first.where
    share = "" if elected.is_unanimous else f" ({elected.num_votes} of {elected.num_voters})"
    return Setting(value=value, source=f"{where}{share}")


def plain(tree: Any) -> Any:
    """Return the tree with the values alone."""
    if isinstance(tree, Mapping):
        return {key: plain(value) for key, value in tree.items()}
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        return [plain(value) for value in tree]
    return tree.value if isinstance(tree, Setting) else tree


def yaml_lines(tree: Mapping[str, Any], indent: int = 0) -> Iterator[str]:
    """Yield a tree of mappings, lists of mappings, lists of words and settings as YAML."""
    for key, value in tree.items():
        head = f"{' ' * indent}{key}:"
        if isinstance(value, Mapping):
            yield head
            yield from yaml_lines(value, indent + 2)
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield head
            for entry in value:
                first, *rest = yaml_lines(entry, indent + 4)
                yield f"{' ' * (indent + 2)}- {first.lstrip()}"
                yield from rest
        elif isinstance(value, Setting):
            yield _commented(f"{head} {value.text}", value.source)
        else:
            yield f"{head} {value}"


def _commented(line: str, comment: str) -> str:
    shown = "".join(character if character.isprintable() else "?" for character in comment)
    return f"{line.ljust(COMMENT_COLUMN)}  # {shown}" if shown else line
