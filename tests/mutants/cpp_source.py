"""Mutations of C++, and one program that holds them all.

Building the engine once a mutant would take a day, so every mutant is compiled in and one is chosen at run time:
`a < b` becomes `(MUTANT(17) ? (a <= b) : (a < b))`. The place also notes that it was reached. What is known at compile
time cannot be chosen later and stays: template arguments, `if constexpr`, cases, sizes.
"""

from collections.abc import Iterator, Sequence

import tree_sitter_cpp
from tree_sitter import Language, Node, Parser

from tests.mutants.mutation import SWAPPED, Mutation, make_mutation

MAX_MUTANTS = 65_536
HEADER = f"""#pragma once
#define MUTANT(number) (__builtin_is_constant_evaluated() ? false : fabrictune_is(number))
extern "C" {{
__attribute__((visibility("default"))) inline int fabrictune_mutant = 0;  // 0: none
__attribute__((visibility("default"))) inline unsigned char fabrictune_reached[{MAX_MUTANTS}] = {{}};
}}
inline bool fabrictune_is(int number) {{
    fabrictune_reached[number] = 1;
    return fabrictune_mutant == number;
}}
"""
_BODIES = ("compound_statement", "field_initializer_list")
_FIXED = (
    *("template_argument_list", "static_assert_declaration", "attribute_declaration", "enumerator", "bitfield_clause"),
    *("lambda_capture_specifier", "array_declarator", "requires_clause", "string_literal", "char_literal"),
)
_PREFETCH = b"prefetch"  # what a function's name ends with that only fetches ahead


def cpp_mutations(path: str, source: bytes) -> list[Mutation]:
    """Return the mutations of a file's functions, in its order."""
    root = Parser(Language(tree_sitter_cpp.language())).parse(source).root_node
    found = (mutation for body in _bodies(root) for mutation in _Finder(path, source).of(body))
    return sorted(found, key=lambda mutation: (mutation.start, mutation.new))


def with_mutants(source: bytes, mutations: Sequence[tuple[int, Mutation]]) -> bytes:
    """Return a file in which all mutations are compiled in, under numbers from 1; lines keep their numbers."""
    return _Writer(source).written(0, len(source), list(mutations))


def _bodies(node: Node) -> Iterator[Node]:
    if node.type in _BODIES and node.parent is not None and node.parent.type == "function_definition":
        yield node
        return
    for child in node.children:
        yield from _bodies(child)


class _Finder:
    def __init__(self, path: str, source: bytes) -> None:
        self._path, self._source = path, source

    def of(self, node: Node) -> Iterator[Mutation]:
        if node.type in _FIXED or self._is_fixed_declaration(node):
            return
        if self._only_prefetches(node):
            return
        yield from self._own(node)
        for index, child in enumerate(node.children):
            field = node.field_name_for_child(index)
            if node.type == "case_statement" and field == "value":
                continue
            if node.type.startswith("preproc_") and field == "condition":
                continue
            if node.type == "if_statement" and field == "condition" and self._is_constexpr(node):
                continue
            if node.type == "for_statement" and field == "update":
                continue  # the loop would never end
            yield from self.of(child)

    def _own(self, node: Node) -> Iterator[Mutation]:
        match node.type:
            case "binary_expression" | "assignment_expression":
                operator = node.child_by_field_name("operator")
                if operator is not None and self._text(operator).decode() in SWAPPED:
                    yield self._swap(operator, node)
            case "unary_expression":
                if self._text(node).startswith(b"!"):
                    yield self._replace(node.children[0], "", node)
            case "true" | "false":
                yield self._swap(node, node)
            case "number_literal":
                if (new := _one_more(self._text(node).decode())) is not None:
                    yield self._replace(node, new, node)
            case "call_expression":
                function = node.child_by_field_name("function")
                name = self._text(function).partition(b"<")[0].decode() if function else ""
                if function and name in ("std::min", "std::max"):
                    end = function.start_byte + len(name)
                    yield self._span(function.start_byte, end, SWAPPED[name], node)
            case "expression_statement":
                yield from self._left_out(node)
            case "continue_statement" | "break_statement":
                yield self._replace(node, ";", node, is_statement=True)

    def _left_out(self, node: Node) -> Iterator[Mutation]:
        if node.children and not self._only_prefetches(node.children[0]):
            yield self._replace(node, ";", node, is_statement=True)

    def _only_prefetches(self, node: Node) -> bool:
        function = node.child_by_field_name("function") if node.type == "call_expression" else None
        return function is not None and self._text(function).endswith(_PREFETCH)

    def _is_fixed_declaration(self, node: Node) -> bool:
        return node.type == "declaration" and any(
            self._text(child) == b"constexpr" for child in node.children if child.type == "type_qualifier"
        )

    def _is_constexpr(self, node: Node) -> bool:
        return any(child.type == "constexpr" for child in node.children)

    def _text(self, node: Node) -> bytes:
        return self._source[node.start_byte : node.end_byte]

    def _swap(self, node: Node, scope: Node) -> Mutation:
        return self._replace(node, SWAPPED[self._text(node).decode()], scope)

    def _replace(self, node: Node, new: str, scope: Node, *, is_statement: bool = False) -> Mutation:
        return self._span(node.start_byte, node.end_byte, new, scope, is_statement=is_statement)

    def _span(self, start: int, end: int, new: str, scope: Node, *, is_statement: bool = False) -> Mutation:
        around = (scope.start_byte, scope.end_byte)
        return make_mutation(self._path, self._source, start, end, new, scope=around, is_statement=is_statement)


def _one_more(text: str) -> str | None:
    """Return the literal of the next number; None for hexadecimal ones, which are masks and keys."""
    number = text.replace("'", "").rstrip("uUlLfF")
    suffix = text[len(text.rstrip("uUlLfF")) :]
    if number.lower().startswith("0x"):
        return None
    return f"{int(number) + 1}{suffix}" if number.isdigit() else f"{float(number) + 1!r}{suffix}"


class _Writer:
    def __init__(self, source: bytes) -> None:
        self._source = source

    def written(self, start: int, end: int, mutations: list[tuple[int, Mutation]]) -> bytes:
        """Return bytes `start` to `end` with these mutations, whose scopes are in between."""
        pieces, place = [], start
        while mutations:
            scope = min((mutation.scope for _, mutation in mutations), key=lambda scope: (scope[0], -scope[1]))
            inside = [pair for pair in mutations if pair[1].scope[1] <= scope[1]]
            mutations = [pair for pair in mutations if pair[1].scope[1] > scope[1]]
            pieces += [self._source[place : scope[0]], self._scope(scope, inside)]
            place = scope[1]
        return b"".join([*pieces, self._source[place:end]])

    def _scope(self, scope: tuple[int, int], mutations: list[tuple[int, Mutation]]) -> bytes:
        own = [pair for pair in mutations if pair[1].scope == scope]
        text = self.written(*scope, [pair for pair in mutations if pair[1].scope != scope])
        for number, mutation in own:
            if mutation.is_statement:
                text = b"{ if (!MUTANT(%d)) %s }" % (number, text)
            else:
                text = b"(MUTANT(%d) ? (%s) : (%s))" % (number, self._mutated(scope, mutation), text)
        return text

    def _mutated(self, scope: tuple[int, int], mutation: Mutation) -> bytes:
        """Return the mutated expression on one line."""
        first, last = self._source[scope[0] : mutation.start], self._source[mutation.end : scope[1]]
        return b" ".join((first + mutation.new.encode() + last).split())
