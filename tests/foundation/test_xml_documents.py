"""XML documents: elements with lines, and nothing that unfolds or grows without a bound."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabrictune.foundation.documents import MAX_BYTES, MAX_DEPTH
from fabrictune.foundation.errors import InputError
from fabrictune.foundation.xml_documents import XmlDocument, load_xml

TEXT = """\
<?xml version="1.0" encoding="utf-8"?>
<top xmlns="urn:a" xmlns:i="urn:b">
  <!-- a comment -->
  <link i:type="short" rate="1"><from> a </from><i:to>b</i:to></link>
  <link
    rate="2"><from>&lt;c&#62;</from> behind </link>
</top>
"""


def loaded(tmp_path: Path, text: str) -> XmlDocument:
    """Read text as a file."""
    path = tmp_path / "file.xml"
    path.write_text(text)
    return load_xml(path)


def refusal(tmp_path: Path, text: str) -> str:
    """Return the message for a text that is refused, with the path cut off."""
    with pytest.raises(InputError) as raised:
        loaded(tmp_path, text)
    return str(raised.value).replace(str(tmp_path / "file.xml"), "")


def test_elements_have_attributes_text_and_lines(tmp_path: Path) -> None:
    """Prefixes are dropped, entities of XML itself are read, and a line is that of the opening tag."""
    document = loaded(tmp_path, TEXT)
    links = list(document.root.each("link"))
    assert [link.line for link in links] == [4, 5]
    assert links[0].attributes == {"type": "short", "rate": "1"}
    assert [links[0].text_of("from"), links[0].text_of("to"), links[0].text_of("none")] == ["a", "b", ""]
    assert [element.text for element in document.root.each("link", "from")] == ["a", "<c>"]
    assert links[1].text == ""
    assert document.where(links[1]) == f"{tmp_path}/file.xml:5: <link>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", ":1: no XML: syntax error"),
        ("<a>\n<b></a>", ":2: no XML: mismatched tag"),
        ("<a>\n", ":2: no XML: no element found"),
        ("<a/><b/>", ":1: no XML: junk after document element"),
        ("<a>&x;</a>", ":1: no XML: undefined entity"),
        ("<b:a/>", ":1: no XML: unbound prefix"),
        ("<a>\x00</a>", ":1: no XML: not well-formed (invalid token)"),
        ("  ", ": an empty file"),
    ],
)
def test_what_is_no_xml_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    """One message a file, in the parser's words."""
    assert refusal(tmp_path, text) == message


@pytest.mark.parametrize(
    "declarations",
    [
        "<!DOCTYPE a>",
        '<!DOCTYPE a SYSTEM "file:///etc/passwd">',
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE a [<!ENTITY % x "y"> %x;]>',
        '<!DOCTYPE a [<!ENTITY x0 "lol">'
        + "".join(f'<!ENTITY x{n} "{f"&x{n - 1};" * 10}">' for n in range(1, 10))
        + "]>",
    ],
)
def test_declarations_are_refused_before_they_act(declarations: str, tmp_path: Path) -> None:
    """Another file's text, and a billion laughs from ten lines: neither is ever unfolded."""
    assert refusal(tmp_path, f"{declarations}<a>&x;&x9;</a>") == (
        ":1: a document type declaration\n  allowed: elements and attributes, without <!DOCTYPE> and <!ENTITY>"
    )


def test_depth_and_number_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The deepest tree that is read, one deeper; as many elements and attributes as are read, and one more."""
    assert loaded(tmp_path, "<a>" * MAX_DEPTH + "</a>" * MAX_DEPTH).root.tag == "a"
    deeper = "<a>" * (MAX_DEPTH + 1)
    assert refusal(tmp_path, deeper) == f":1: elements nested too deeply\n  allowed: {MAX_DEPTH} levels"
    monkeypatch.setattr("fabrictune.foundation.xml_documents.MAX_NODES", 4)
    assert len(loaded(tmp_path, '<a><b x="1"/><b/></a>').root.children) == 2
    next_step = "leave out what is not needed, or split it"
    message = f":2: more elements and attributes than can be used\n  allowed: 4 of both\n  next: {next_step}"
    assert refusal(tmp_path, '<a><b x="1"/>\n<b y="2"/></a>') == message


def test_a_hundred_megabytes_are_refused_unread(tmp_path: Path) -> None:
    """A sparse file of that size is refused by its size alone."""
    path = tmp_path / "big.xml"
    path.touch()
    os.truncate(path, 100 * 2**20)
    with pytest.raises(InputError) as raised:
        load_xml(path)
    assert str(raised.value) == (
        f"{path}: a file of 104857600 bytes\n  allowed: at most {MAX_BYTES} bytes\n"
        "  next: leave out what is not needed, or split it"
    )


@given(st.text(alphabet="<>/!&;='\" ab\n[]?-", max_size=40))
def test_any_text_is_a_document_or_a_message(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    """Text of the characters that mean something in XML."""
    path = tmp_path_factory.getbasetemp() / "any.xml"
    path.write_text(text)
    try:
        outcome = load_xml(path).root.tag
    except InputError as error:
        outcome = str(error).removeprefix(str(path))
    assert outcome
