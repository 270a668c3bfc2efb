"""Bounded reader of XML files from others, with line numbers and without entity expansion.

`load_xml(path)` returns an `XmlDocument`, whose `root` is an `Element` with its tag, attributes, text, children and
line; `document.where(element)` is the text `file.xml:7: <DeviceLinkBase>` for a Mistake. Namespaces are dropped:
`a:IPPrefix` is `IPPrefix`, and `i:type="Server"` the attribute `type`.

Refused, each with one message: what `foundation/documents.py` refuses of any text (size, empty, no UTF-8); a document
type declaration, and with it every entity and every reference to another file; nesting deeper than MAX_DEPTH; more than
MAX_NODES elements and attributes. The parser refuses them while it reads, so a bomb of ten lines costs ten lines.

Source: XML 1.0 (fifth edition) and Namespaces in XML 1.0; defusedxml for what is unsafe in them.
Left out: comments, processing instructions, and text between the children of an element.
"""

import io
import xml.sax.handler
import xml.sax.xmlreader
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.sax import SAXParseException

import defusedxml.sax
from defusedxml.common import DefusedXmlException

from fabrictune.foundation.documents import MAX_BYTES, MAX_DEPTH, MAX_NODES, read_text
from fabrictune.foundation.errors import InputError, Mistake
from fabrictune.foundation.foreign_files import SPLIT


@dataclass(frozen=True, kw_only=True, slots=True)
class Element:
    """One element of a file."""

    tag: str
    attributes: Mapping[str, str]
    text: str  # before the first child, without the space around it
    children: tuple["Element", ...]
    line: int

    def each(self, *path: str) -> Iterator["Element"]:
        """Yield the descendants at the end of a path of tags, in the file's order."""
        if not path:
            yield self
            return
        for child in self.children:
            if child.tag == path[0]:
                yield from child.each(*path[1:])

    def text_of(self, tag: str) -> str:
        """Return the text of the first child of this tag, "" where there is none."""
        return next((child.text for child in self.children if child.tag == tag), "")


@dataclass(frozen=True, kw_only=True)
class XmlDocument:
    """A file as a tree of elements."""

    path: Path
    root: Element

    def where(self, element: Element) -> str:
        """Return `file:line: <tag>`, the place a Mistake names."""
        return f"{self.path}:{element.line}: <{element.tag}>"


def load_xml(path: Path, *, max_bytes: int = MAX_BYTES) -> XmlDocument:
    """Read an XML file; raises InputError."""
    return parse_xml(read_text(path, max_bytes=max_bytes), path)


def parse_xml(text: str, path: Path) -> XmlDocument:
    """Read XML text; `path` is what mistakes name. Raises InputError."""
    builder = _TreeBuilder(path)
    parser = defusedxml.sax.make_parser()
    parser.forbid_dtd = True
    parser.setFeature(xml.sax.handler.feature_namespaces, True)
    parser.setContentHandler(builder)
    try:
        parser.parse(io.StringIO(text))
    except SAXParseException as error:
        _refuse(path, error.getLineNumber() or 1, f"no XML: {error.getMessage()}")
    except DefusedXmlException:
        allowed = "elements and attributes, without <!DOCTYPE> and <!ENTITY>"
        _refuse(path, parser.getLineNumber() or 1, "a document type declaration", allowed)
    assert builder.root is not None, "the parser refuses a file without an element"
    return XmlDocument(path=path, root=builder.root)


@dataclass
class _OpenElement:
    """An element whose end has not been read."""

    tag: str
    attributes: Mapping[str, str]
    line: int
    pieces: list[str] = field(default_factory=list)
    children: list[Element] = field(default_factory=list)

    def finish(self) -> Element:
        return Element(
            tag=self.tag,
            attributes=self.attributes,
            text="".join(self.pieces).strip(),
            children=tuple(self.children),
            line=self.line,
        )


class _TreeBuilder(xml.sax.handler.ContentHandler):
    """Builds elements from the parser's events, without recursion."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.locator = xml.sax.xmlreader.Locator()  # replaced by the parser's own before the first element
        self.open: list[_OpenElement] = []
        self.root: Element | None = None
        self.num_nodes = 0

    def setDocumentLocator(self, locator: xml.sax.xmlreader.Locator) -> None:
        self.locator = locator

    def startElementNS(
        self, name: tuple[str | None, str], qname: str | None, attrs: xml.sax.xmlreader.AttributesNSImpl
    ) -> None:
        line = self.locator.getLineNumber() or 1
        attributes = {local: value for (_, local), value in attrs.items()}
        self.num_nodes += 1 + len(attributes)
        if self.num_nodes > MAX_NODES:
            found = "more elements and attributes than can be used"
            _refuse(self.path, line, found, f"{MAX_NODES} of both", next_step=SPLIT)
        if len(self.open) == MAX_DEPTH:
            _refuse(self.path, line, "elements nested too deeply", f"{MAX_DEPTH} levels")
        self.open.append(_OpenElement(tag=name[1], attributes=attributes, line=line))

    def characters(self, content: str) -> None:
        if not self.open[-1].children:
            self.open[-1].pieces.append(content)

    def endElementNS(self, name: tuple[str | None, str], qname: str | None) -> None:
        element = self.open.pop().finish()
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element


def _refuse(path: Path, line: int, found: str, allowed: str = "", *, next_step: str = "") -> NoReturn:
    raise InputError(Mistake(where=f"{path}:{line}", found=found, allowed=allowed, next_step=next_step)) from None
