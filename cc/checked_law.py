"""Checks in a law's functions: loops that end, divisors that are not zero, indexes within arrays, numbers that fit.

Machine code checks none of them: a loop without an end hangs the run, a whole number divided by zero is 0, an index
beyond an array writes over other state, and a float too large for a whole-number field becomes any number. Each such
place in a handler, and in the functions it calls, gets a check and a number. A check that fails ends the run, and the
number leads to file, line and function. Both forms of a law are made of the functions rewritten here, so that they fail
alike.

All loops of one call of a handler share one counter. Functions with loops take it as a further argument; others have
neither counter nor argument.
"""

import ast
import builtins
import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from fabrictune.cc.diagnosis import calls_itself, counts_as_value
from fabrictune.cc.flow_state import flow_dtype
from fabrictune.cc.function_source import SourceFiles, compiled
from fabrictune.cc.law_rules import handlers
from fabrictune.cc.places import Check, Place

STEPS = "_fabrictune_steps"  # argument of functions with loops
_MODULE_PREFIX = "function."
_TO_WHOLE = (int, round, math.floor, math.ceil, math.trunc)


@dataclass(frozen=True, kw_only=True)
class CheckedFunction:
    """A function with its checks."""

    original: FunctionType
    code: CodeType
    calls: Mapping[str, "CheckedFunction"]  # by the name in `code`
    counts_steps: bool  # takes the counter of loop steps before its other arguments

    def bind(self, names: Mapping[str, Any]) -> FunctionType:
        """Return the function with these globals beside its own."""
        cells = dict(zip(self.original.__code__.co_freevars, self.original.__closure__ or (), strict=True))
        bound = FunctionType(
            self.code,
            {**self.original.__globals__, **names},
            self.original.__name__,
            self.original.__defaults__,
            tuple(cells[name] for name in self.code.co_freevars),
        )
        bound.__kwdefaults__ = self.original.__kwdefaults__
        return bound


@dataclass(frozen=True, kw_only=True)
class CheckedLaw:
    """Handlers of a law with their checks, and the place of each check by its number."""

    handlers: Mapping[str, CheckedFunction]  # by event
    places: tuple[Place, ...]

    def bind(self, checks: Mapping[str, Any], wrap: Callable[[FunctionType], Any] = lambda f: f) -> dict[str, Any]:
        """Return the handlers by event, each function wrapped once, its checks those given by name."""
        bound: dict[FunctionType, Any] = {}

        def bind(function: CheckedFunction) -> Any:
            if function.original not in bound:
                called = {name: bind(called) for name, called in function.calls.items()}
                bound[function.original] = wrap(function.bind({**checks, **called}))
            return bound[function.original]

        return {event: bind(handler) for event, handler in self.handlers.items()}


def checked_law(module: ModuleType) -> CheckedLaw:
    """Return the handlers of a law with their checks.

    Raises LawError for functions that call one another in a circle, for one with a loop that is used other than by a
    call, and for one whose text is not in its file.
    """
    rewriting = _Rewriting(module)
    checked = {event: rewriting.of(handler) for event, handler in handlers(module).items()}
    return CheckedLaw(handlers=checked, places=tuple(rewriting.places))


class _Rewriting:
    """Rewrites functions, each once, and numbers the places of their checks."""

    def __init__(self, module: ModuleType) -> None:
        self.places: list[Place] = []
        dtype = flow_dtype(module)
        bases = {name: dtype[name].base for name in dtype.names or ()}
        self.whole_bits = {name: 8 * base.itemsize for name, base in bases.items() if base.kind == "i"}
        self._source = SourceFiles()
        self._done: dict[FunctionType, CheckedFunction] = {}
        self._under_way: set[FunctionType] = set()

    def of(self, function: FunctionType) -> CheckedFunction:
        if function in self._under_way:
            raise calls_itself(function)
        if function not in self._done:
            self._under_way.add(function)
            self._done[function] = self._rewrite(function)
            self._under_way.remove(function)
        return self._done[function]

    def _rewrite(self, function: FunctionType) -> CheckedFunction:
        node = self._source.definition(function)
        rewriter = _Rewriter(function, self)
        body = [rewriter.visit(statement) for statement in node.body]
        node.body = [line for lines in body for line in (lines if isinstance(lines, list) else [lines])]
        if rewriter.counts_steps:
            node.args.posonlyargs.insert(0, ast.arg(arg=STEPS))
        code = compiled(ast.fix_missing_locations(node), function)
        return CheckedFunction(original=function, code=code, calls=rewriter.calls, counts_steps=rewriter.counts_steps)

    def add_place(self, check: Check, node: ast.AST, function: FunctionType) -> int:
        code = function.__code__
        line = getattr(node, "lineno", code.co_firstlineno)
        self.places.append(Place(check=check, path=code.co_filename, line=line, function=code.co_name))
        return len(self.places) - 1


class _Rewriter(ast.NodeTransformer):
    """Puts checks into the body of one function."""

    def __init__(self, function: FunctionType, rewriting: _Rewriting) -> None:
        self.calls: dict[str, CheckedFunction] = {}
        self.counts_steps = False
        self._function = function
        self._rewriting = rewriting
        self._num_names = 0
        code = function.__code__
        self._local = {*code.co_varnames, *code.co_cellvars}
        self._closure = {
            name: cell.cell_contents for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True)
        }

    # Loops, divisors, exceptions

    def visit_While(self, node: ast.While) -> ast.AST:
        return self._counted(node)

    def visit_For(self, node: ast.For) -> ast.AST:
        return self._counted(node)

    def _counted(self, node: ast.While | ast.For) -> ast.AST:
        self.generic_visit(node)
        self.counts_steps = True
        node.body.insert(0, ast.Expr(self._check(Check.STEP, node, _name(STEPS))))
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            node.right = self._divisor(node.right)
        return node

    def _divisor(self, value: ast.expr) -> ast.expr:
        if isinstance(value, ast.Constant) and value.value:
            return value
        return self._check(Check.DIVISOR, value, value)

    def visit_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        self.generic_visit(node)
        return [ast.Expr(self._check(Check.RAISE, node)), node]

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        failed = ast.copy_location(ast.Assert(ast.Constant(value=False), node.msg), node)
        body: list[ast.stmt] = [ast.Expr(self._check(Check.RAISE, node)), failed]
        return ast.copy_location(ast.If(ast.UnaryOp(ast.Not(), node.test), body, []), node) if __debug__ else node

    # Indexes, and numbers that become whole ones

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if self._is_array(node):
            node.slice = self._check(Check.INDEX, node, _loaded(node.value), node.slice)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        later: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Tuple | ast.List):
                target.elts = [self._by_name(element, later) for element in target.elts]
            else:
                node.value = self._fitting(target, node.value)
        return [node, *later]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None:
            node.value = self._fitting(node.target, node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        before: list[ast.stmt] = []
        if isinstance(node.target, ast.Subscript) and self._is_array(node.target):
            index = node.target.slice
            if not isinstance(index, ast.Name | ast.Constant):
                name = self._new_name()
                before = [ast.copy_location(ast.Assign([_name(name, ast.Store())], self.visit(index)), node)]
                node.target.slice = _name(name)
        self.generic_visit(node)
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            node.value = self._divisor(node.value)
        loaded = _loaded(node.target)
        result = self._fitting(node.target, ast.copy_location(ast.BinOp(loaded, node.op, node.value), node))
        if isinstance(result, ast.BinOp):
            return [*before, node]
        return [*before, ast.copy_location(ast.Assign([node.target], result), node)]

    def _fitting(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """Return the value to be stored, checked where the target may hold whole numbers."""
        if isinstance(target, ast.Attribute) and target.attr in self._rewriting.whole_bits:
            bits = ast.Constant(self._rewriting.whole_bits[target.attr])
            return value if _is_small(value) else self._check(Check.FITS, target, value, bits)
        if isinstance(target, ast.Subscript) and self._is_array(target):
            return self._check(Check.ITEM, target, _loaded(target.value), value)
        return value

    def _by_name(self, target: ast.expr, later: list[ast.stmt]) -> ast.expr:
        """Return what is assigned instead of a field within a tuple, and add the field's own assignment."""
        name = self._new_name()
        value = self._fitting(target, _name(name))
        if isinstance(value, ast.Name):
            return target
        later.append(ast.copy_location(ast.Assign([target], value), target))
        return _name(name, ast.Store())

    def _is_array(self, node: ast.Subscript) -> bool:
        """Return whether a field, an argument or a local value is indexed by a number."""
        base: ast.expr = node.value
        while isinstance(base, ast.Attribute):
            base = base.value
        is_local = isinstance(base, ast.Name) and base.id in self._local
        return is_local and not isinstance(node.slice, ast.Slice | ast.Tuple)

    # Calls

    def visit_Call(self, node: ast.Call) -> ast.AST:
        value = self._value(node.func)
        function = _plain_function(value)
        if function is None:
            self.generic_visit(node)
        else:
            node.args = [self.visit(argument) for argument in node.args]
            node.keywords = [self.visit(keyword) for keyword in node.keywords]
            self._call(node, function)
        if value is divmod and len(node.args) == 2:
            node.args[1] = self._divisor(node.args[1])
        if any(value is conversion for conversion in _TO_WHOLE) and len(node.args) == 1:
            node.args[0] = self._check(Check.FITS, node, node.args[0], ast.Constant(64))
        return node

    def _call(self, node: ast.Call, function: FunctionType) -> None:
        checked = self._rewriting.of(function)
        node.func = self._named(node.func, checked)
        if checked.counts_steps:
            self.counts_steps = True
            node.args.insert(0, _name(STEPS))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._as_value(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        return self._as_value(node)

    def _as_value(self, node: ast.Name | ast.Attribute) -> ast.AST:
        function = _plain_function(self._value(node)) if isinstance(node.ctx, ast.Load) else None
        if function is None:
            return node
        checked = self._rewriting.of(function)
        if checked.counts_steps:
            raise counts_as_value(self._function, node.lineno, function)
        return self._named(node, checked)

    def _named(self, node: ast.expr, checked: CheckedFunction) -> ast.expr:
        """Return the name of a function that is called, which its caller is given as a global."""
        name = f"{_MODULE_PREFIX}{ast.unparse(node)}"
        self.calls[name] = checked
        return ast.copy_location(_name(name), node)

    def _value(self, node: ast.expr) -> Any:
        """Return what a name stands for, or a module's attribute; None for what a call may change."""
        if isinstance(node, ast.Attribute):
            base = self._value(node.value)
            return getattr(base, node.attr, None) if isinstance(base, ModuleType) else None
        if not isinstance(node, ast.Name) or node.id in self._local:
            return None
        names = {**vars(builtins), **self._function.__globals__, **self._closure}
        return names.get(node.id)

    def _check(self, check: Check, node: ast.AST, *arguments: ast.expr) -> ast.Call:
        place = self._rewriting.add_place(check, node, self._function)
        call = ast.Call(_name(check.value), [*arguments, ast.Constant(place)], [])
        located = ast.copy_location(call, node)
        ast.fix_missing_locations(located)
        return located

    def _new_name(self) -> str:
        self._num_names += 1
        return f"checked.{self._num_names}"


def _plain_function(value: Any) -> FunctionType | None:
    """Return a function of Python, also where a compiler's decorator is on it."""
    value = getattr(value, "py_func", value)
    return value if isinstance(value, FunctionType) else None


def _name(name: str, context: ast.expr_context | None = None) -> ast.Name:
    return ast.Name(name, context or ast.Load())


def _loaded(node: ast.expr) -> ast.expr:
    """Return the same place, read instead of written."""
    copy = deepcopy(node)
    if isinstance(copy, ast.Name | ast.Attribute | ast.Subscript):
        copy.ctx = ast.Load()
    return copy


def _is_small(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and isinstance(value.value, int) and abs(value.value) < 2**31
