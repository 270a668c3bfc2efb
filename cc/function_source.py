"""Source of a law's functions: the syntax tree of a function's definition, and code made of a changed one.

A function is found in its file by line and name, and must be what the file has there now.
"""

import ast
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType

from fabrictune.cc.diagnosis import differs_from_file


class SourceFiles:
    """Syntax trees of files, each parsed once."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[ast.Module, frozenset[tuple[str, int, bytes]]]] = {}  # by path

    def definition(self, function: FunctionType) -> ast.FunctionDef:
        """Return the syntax tree of a function, as a definition even if it is a lambda.

        Raises LawError where its file has another function now.
        """
        return _definition(function, self._tree_of(function))

    def _tree_of(self, function: FunctionType) -> ast.Module:
        """Return the syntax tree of a function's file; raises LawError where that has another function now."""
        code = function.__code__
        path = code.co_filename
        if path not in self._files:
            try:
                tree = ast.parse("".join(inspect.findsource(function)[0]))
                compiled = compile(tree, path, "exec", dont_inherit=True)
            except (OSError, SyntaxError, ValueError):
                raise differs_from_file(function) from None
            self._files[path] = tree, frozenset(_identity(code) for code in _all_code(compiled))
        tree, in_file = self._files[path]
        if _identity(code) not in in_file:
            raise differs_from_file(function)
        return tree


def compiled(node: ast.FunctionDef, function: FunctionType) -> CodeType:
    """Return the code of a definition, made where the function was: names of its closure stay free."""
    arguments = ast.arguments(
        posonlyargs=[],
        args=[ast.arg(arg=name) for name in function.__code__.co_freevars],
        kwonlyargs=[],
        kw_defaults=[],
        defaults=[],
    )
    around = ast.copy_location(ast.FunctionDef("around", arguments, [node], []), node)
    module = ast.fix_missing_locations(ast.Module([around], []))
    code = compile(module, function.__code__.co_filename, "exec", dont_inherit=True)
    inner = _named_code(_named_code(code, around.name), node.name)
    original = function.__code__
    return inner.replace(co_name=original.co_name, co_qualname=original.co_qualname)


def _definition(function: FunctionType, tree: ast.Module) -> ast.FunctionDef:
    """Return the syntax tree of a function, as a definition even if it is a lambda; raises LawError."""
    code = function.__code__
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda) and _begins(node, code)]
    if len(found) != 1:
        raise differs_from_file(function)
    node = found[0]
    if isinstance(node, ast.FunctionDef):
        return node
    result = ast.copy_location(ast.Return(node.body), node.body)
    return ast.copy_location(ast.FunctionDef("lambda_", node.args, [result], []), node)


def _begins(node: ast.FunctionDef | ast.Lambda, code: CodeType) -> bool:
    """Return whether the definition is in the line of the code, and has its name."""
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    return node.name == code.co_name and first == code.co_firstlineno


def _identity(code: CodeType) -> tuple[str, int, bytes]:
    return code.co_qualname, code.co_firstlineno, code.co_code


def _all_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all_code(constant)


def _named_code(code: CodeType, name: str) -> CodeType:
    """Return the function of this name that the code defines; its defaults may define others."""
    return [inner for inner in code.co_consts if isinstance(inner, CodeType) and inner.co_name == name][-1]
