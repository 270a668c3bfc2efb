"""Application of JSON patches, for tests: what `config apply-patch` does to CONFIG_DB.

Source: RFC 6902, sections 4.1 to 4.3, on objects; RFC 6901 for pointers.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any


def apply_patch(tree: Mapping[str, Any], operations: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tree with operations made; `replace` and `remove` need what they name."""
    result: dict[str, Any] = copy.deepcopy(dict(tree))
    for operation in operations:
        *outer, last = (key.replace("~1", "/").replace("~0", "~") for key in operation["path"].split("/")[1:])
        target = result
        for key in outer:
            target = target[key]
        assert operation["op"] in ("add", "replace", "remove"), operation
        assert operation["op"] == "add" or last in target, operation
        if operation["op"] == "remove":
            del target[last]
        else:
            target[last] = operation["value"]
    return result
