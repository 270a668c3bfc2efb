"""Mutations of Python, by its own parser."""

import ast
import re
from collections.abc import Iterator
from itertools import accumulate, pairwise

from tests.mutants.mutation import SWAPPED, Mutation, make_mutation

SYMBOLS: dict[type[ast.AST], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.And: "and",
    ast.Or: "or",
}
_NEVER_CHANGED = (ast.JoinedStr, ast.Assert, ast.Raise, ast.Import, ast.ImportFrom)
_NOT_FIELDS = ("annotation", "returns", "decorator_list")


def python_mutations(path: str, source: bytes) -> list[Mutation]:
    """Return the mutations of a file, in its order."""
    starts = [0, *accumulate(len(line) for line in source.splitlines(keepends=True))]
    finder = _Finder(path, source, starts)
    return sorted(finder.of(ast.parse(source)), key=lambda mutation: (mutation.start, mutation.new))


class _Finder:
    def __init__(self, path: str, source: bytes, starts: list[int]) -> None:
        self._path, self._source, self._starts = path, source, starts

    def of(self, node: ast.AST) -> Iterator[Mutation]:
        if isinstance(node, _NEVER_CHANGED) or self._is_for_types_only(node) or _is_strict(node):
            return
        yield from self._own(node)
        for name, value in ast.iter_fields(node):
            if name in _NOT_FIELDS:
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from self.of(child)

    def _own(self, node: ast.AST) -> Iterator[Mutation]:
        if isinstance(node, ast.Compare):
            for (left, right), operator in zip(pairwise([node.left, *node.comparators]), node.ops, strict=True):
                yield from self._between(left, right, operator)
        elif isinstance(node, ast.BinOp):
            yield from self._between(node.left, node.right, node.op)
        elif isinstance(node, ast.BoolOp):
            for left, right in pairwise(node.values):
                yield from self._between(left, right, node.op)
        elif isinstance(node, ast.AugAssign):
            yield from self._between(node.target, node.value, node.op, "=")
        elif isinstance(node, ast.UnaryOp):
            yield from self._unary(node)
        elif isinstance(node, ast.Constant):
            yield from self._constant(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            yield self._replace(node.func, SWAPPED[node.func.id])
        elif isinstance(node, ast.Continue | ast.Break) or _is_call(node):
            yield self._replace(node, "pass")

    def _between(self, left: ast.AST, right: ast.AST, operator: ast.AST, suffix: str = "") -> Iterator[Mutation]:
        symbol = SYMBOLS.get(type(operator), "") + suffix
        if symbol not in SWAPPED:
            return
        first = self._end(left)
        pattern = re.escape(symbol.encode()).replace(rb"\ ", rb"\s+")
        match = re.search(pattern, self._source[first : self._start(right)])
        assert match is not None, "an operator is between its operands"
        yield self._span(first + match.start(), first + match.end(), SWAPPED[symbol])

    def _unary(self, node: ast.UnaryOp) -> Iterator[Mutation]:
        is_minus = isinstance(node.op, ast.USub) and not isinstance(node.operand, ast.Constant)
        if is_minus or isinstance(node.op, ast.Not):
            yield self._span(self._start(node), self._start(node) + (1 if is_minus else 4), "")

    def _constant(self, node: ast.Constant) -> Iterator[Mutation]:
        if isinstance(node.value, bool):
            yield self._replace(node, str(not node.value))
        elif isinstance(node.value, int | float):
            yield self._replace(node, repr(node.value + 1))

    def _is_for_types_only(self, node: ast.AST) -> bool:
        return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"

    def _replace(self, node: ast.AST, new: str) -> Mutation:
        return self._span(self._start(node), self._end(node), new)

    def _span(self, start: int, end: int, new: str) -> Mutation:
        return make_mutation(self._path, self._source, start, end, new)

    def _start(self, node: ast.AST) -> int:
        assert isinstance(node, ast.expr | ast.stmt), "these have a place"
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.AST) -> int:
        assert isinstance(node, ast.expr | ast.stmt), "these have a place"
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._starts[node.end_lineno - 1] + node.end_col_offset


def _is_strict(node: ast.AST) -> bool:
    """Return whether this is the word with which `zip` asserts that its arguments are of one length."""
    return isinstance(node, ast.keyword) and node.arg == "strict"


def _is_call(node: ast.AST) -> bool:
    """Return whether a statement only calls."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
