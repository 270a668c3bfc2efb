"""Documents: plain values with lines, nothing executed, nothing without a bound."""

import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.documents import MAX_BYTES, MAX_DEPTH, Document, load_json, load_json_sequence, load_yaml
from fabrictune.foundation.errors import InputError

TEXT = """\
name: lab   # line 1
links:
  - from: a
    to: {node: b, port: 1}
  - from: c
"""


def loaded(tmp_path: Path, text: str, name: str = "file.yaml") -> Document:
    """Read text as a file of this name."""
    path = tmp_path / name
    path.write_text(text)
    return load_json(path) if name.endswith(".json") else load_yaml(path)


def refusal(tmp_path: Path, text: str, name: str = "file.yaml") -> str:
    """Return the message for a text that is refused, with the path cut off."""
    with pytest.raises(InputError) as raised:
        loaded(tmp_path, text, name)
    return str(raised.value).replace(str(tmp_path / name), "")


def test_values_and_their_lines(tmp_path: Path) -> None:
    """A key's line is where the key stands; of a path that goes on, the deepest part that exists counts."""
    document = loaded(tmp_path, TEXT)
    assert document.tree == {"name": "lab", "links": [{"from": "a", "to": {"node": "b", "port": 1}}, {"from": "c"}]}
    assert [document.line(*keys) for keys in ((), ("links",), ("links", 0), ("links", 0, "to", "port"))] == [1, 2, 3, 4]
    assert document.line("links", 1, "to", "port") == 5
    assert document.where("links", 1, "from").endswith("file.yaml:5: links[1].from")


def test_json_has_lines_too(tmp_path: Path) -> None:
    """Lines of keys, of list items, and behind strings full of brackets."""
    text = '{"a": "}{][,:\\"",\n "b": [1,\n  {"c": null}],\n "d":\n {"e": []}}'
    document = loaded(tmp_path, text, "file.json")
    found = [document.line(*keys) for keys in (("a",), ("b",), ("b", 1), ("b", 1, "c"), ("d",), ("d", "e"))]
    assert found == [1, 2, 3, 3, 4, 5]


def test_looking_up_a_line_behind_a_long_string_costs_little(tmp_path: Path) -> None:
    """A pattern that can go back on its steps keeps each of them: a hundred bytes for every letter of a string."""
    document = loaded(tmp_path, '{"a": "' + "x" * 2**20 + '",\n "b": 1}', "file.json")
    tracemalloc.start()
    assert document.line("b") == 2
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 8 * 2**20


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
        max_leaves=12,
    )
)
def test_yaml_agrees_with_its_reference_writer(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    """What PyYAML writes of plain values is read back as it was."""
    path = tmp_path_factory.getbasetemp() / "written.yaml"
    path.write_text(yaml.safe_dump({"value": value}, allow_unicode=False))
    assert load_yaml(path).tree == {"value": value}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("012", 12),
        ("0x1F", 31),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("~", None),
        ("true", True),
        ("'7'", "7"),
        ("400 Gbps", "400 Gbps"),
        ("9" * 18, 10**18 - 1),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807", -(2**63) + 1),
        ("9223372036854775808", "9223372036854775808"),
        ("9" * 5000, "9" * 5000),
        ("3.141592653589793115997963", 3.141592653589793),
    ],
)
def test_only_the_core_schema_has_meaning(text: str, value: Any, tmp_path: Path) -> None:
    """YAML 1.1 would make `no` false, `1:30` ninety and a day a date."""
    assert loaded(tmp_path, f"key: {text}\n").tree == {"key": value}


def test_aliases_and_merges_are_unfolded(tmp_path: Path) -> None:
    """An anchor's values stand wherever it is named; keys of one's own come before merged ones."""
    document = loaded(tmp_path, "base: &b {x: 1, y: 2}\nfirst: *b\nsecond:\n  <<: *b\n  y: 3\n")
    assert document.tree["first"] == {"x": 1, "y": 2}
    assert document.tree["second"] == {"x": 1, "y": 3}
    assert document.line("second", "x") == 1


def test_a_merge_key_in_quotes_is_a_key(tmp_path: Path) -> None:
    """YAML merges by the plain scalar alone; a writer puts a key of that name into quotes."""
    assert loaded(tmp_path, "'<<': null\n").tree == {"<<": None}
    document = loaded(tmp_path, "base: &b {x: 1}\nboth:\n  '<<': 7\n  <<: *b\n")
    assert document.tree["both"] == {"<<": 7, "x": 1}
    assert (
        refusal(tmp_path, '"<<": 1\n"<<": 2\n') == ":2: the key '<<' a second time\n  allowed: each key once, as text"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\na: 2\n", ":2: the key 'a' a second time\n  allowed: each key once, as text"),
        ("{[1]: 2}\n", ":1: a key that is no text\n  allowed: each key once, as text"),
        ("a: !!python/object/apply:os.system [x]\n", ":1: the tag 'tag:yaml.org,2002:python/object/apply:os.system'\n"
         "  allowed: values without tags"),
        ("a: 1\n---\nb: 2\n", ":2: a second document (---)\n  allowed: one document in a file"),
        ("a: *b\n", ":1: alias *b without an anchor before it\n  allowed: an anchor before its alias"),
        ("<<: 7\n", ":1: a merge (<<) of what is no mapping\n  allowed: each key once, as text"),
        ("[" * (MAX_DEPTH + 1), f":1: values nested too deeply\n  allowed: {MAX_DEPTH} levels"),
        ("", ": an empty file"),
        ("# a comment\n", ": an empty file"),
        ("a: [1\n", ":2: no YAML: did not find expected ',' or ']'"),
    ],
)  # fmt: skip
def test_refusals_say_where_and_why(text: str, message: str, tmp_path: Path) -> None:
    """Each surprise of YAML is one message with its line."""
    assert refusal(tmp_path, text) == message


def test_an_alias_bomb_is_refused(tmp_path: Path) -> None:
    """Nine levels of ten aliases each would be 10^9 values from ten lines."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    assert "more values than can be used, counting what aliases unfold to" in refusal(tmp_path, "\n".join(lines))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1,\n "a": 2}', ": no JSON that can be used: the key 'a' appears twice in one object"),
        ('{"a": NaN}', ": no JSON that can be used: NaN is no number"),
        ('{"a": 1e999}', ": no JSON that can be used: 1e999 is no number"),
        ('{"a": 9223372036854775808}', ": no JSON that can be used: a whole number of 19 digits"),
        ('{"a": 12345678901234567890}', ": no JSON that can be used: a whole number of 20 digits"),
        ('{"a":\n oops}', ":2: no JSON: Expecting value at column 2"),
        ('{"a": "\\ud83d"}', ": no JSON that can be used: '\\ud83d' is half of a character"),
        ("[" * 100_000, ": values nested too deeply to read"),
    ],
)
def test_json_refusals(text: str, message: str, tmp_path: Path) -> None:
    """What Python's reader lets through, or answers with a traceback, is refused."""
    assert refusal(tmp_path, text, "file.json") == message


def test_json_texts_run_together_keep_their_lines(tmp_path: Path) -> None:
    """Arrays without anything between them, as some collectors append them, and a number on a line of its own."""
    path = tmp_path / "file.json"
    path.write_text('[1,\n 2][\n {"a":\n  3}]\n\n 4 \n')
    documents = list(load_json_sequence(path))
    assert [document.tree for document in documents] == [[1, 2], [{"a": 3}], 4]
    assert [documents[0].line(1), documents[1].line(0, "a"), documents[2].line()] == [2, 3, 6]


def test_the_number_of_json_texts_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Megabytes of empty arrays are refused after as many as a file may have."""
    monkeypatch.setattr("fabrictune.foundation.documents.MAX_NODES", 3)
    path = tmp_path / "file.json"
    path.write_text("[][]\n[]\n[]")
    with pytest.raises(InputError, match=r"json:3: more JSON texts than can be used\n  allowed: 3 in a file"):
        list(load_json_sequence(path))


def test_both_halves_of_a_character_are_one(tmp_path: Path) -> None:
    """Escaped as JSON escapes what lies beyond 16 bits."""
    assert loaded(tmp_path, '{"a": "\\ud83d\\ude00"}', "file.json").tree == {"a": "\U0001f600"}


def test_a_broken_json_text_is_refused_with_its_line_in_the_file(tmp_path: Path) -> None:
    """What stands before it has been yielded."""
    path = tmp_path / "file.json"
    path.write_text('{"a": 1}\n{"b":\n 2')
    documents = load_json_sequence(path)
    assert next(documents).tree == {"a": 1}
    with pytest.raises(InputError, match="3: no JSON: Expecting ',' delimiter at column 3"):
        next(documents)


@pytest.mark.parametrize("name", ["noise.yaml", "noise.json"])
def test_a_hundred_megabytes_are_refused_unread(name: str, tmp_path: Path) -> None:
    """A sparse file of that size is refused by its size alone."""
    path = tmp_path / name
    path.touch()
    os.truncate(path, 100 * 2**20)
    with pytest.raises(InputError) as raised:
        load_json(path) if name.endswith("json") else load_yaml(path)
    assert str(raised.value) == (
        f"{path}: a file of 104857600 bytes\n  allowed: at most {MAX_BYTES} bytes\n"
        "  next: leave out what is not needed, or split it"
    )


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    """The message says where the text ends."""
    path = tmp_path / "file.yaml"
    path.write_bytes(b"a: \xff\n")
    with pytest.raises(InputError, match="not text: byte 3 is no UTF-8"):
        load_yaml(path)


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    """Both are told apart."""
    with pytest.raises(InputError, match="not a file"):
        load_yaml(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        load_yaml(tmp_path / "missing.yaml")
