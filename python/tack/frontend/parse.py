"""Text of a kernel or device function to HIR, once per text: no types, no captured values."""

from __future__ import annotations

import ast
import re
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final

from ..errors import CompileError
from ..ir.walk import Walk, run
from .diagnostics import error
from .flatten import BINARY, Flattener
from .hir import (
    RESULT,
    BreakNode,
    ContinueNode,
    ForNode,
    Function,
    IfNode,
    Item,
    Op,
    Parameter,
    Path,
    ReturnNode,
    WhileNode,
)
from .liveness import mark_live
from .meaning import FunctionSource
from .recursion import deep_recursion

__all__ = ["captured_names", "parse"]

_ONLY_AST: Final = 0x400  # ast.PyCF_ONLY_AST
_DOTTED: Final = re.compile(r"[^\W\d]\w*(\s*\.\s*[^\W\d]\w*)*\Z")
_CACHE_SIZE: Final = 1024
_parsed: OrderedDict[FunctionSource, Function] = OrderedDict()  # texts are immutable: an entry never goes stale


def captured_names(fn: Function) -> tuple[str, ...]:
    """The names that the text takes from outside, with the attributes asked of them ("G", "math.sqrt", "cfg.RATE"), sorted.

    Annotations count (a parameter's as ":n:tack:u8"), defaults of parameters don't. Purely syntactic: a name in a branch that is never
    taken counts too.
    """
    return tuple(".".join(path) for path in fn.captured)


def parse(source: FunctionSource, *, kernel: str = "") -> Function:
    """The HIR of a function's text; the same object for the same source.

    ``kernel`` is the name that messages begin with; a device function's own by default.
    Raises CompileNotImplementedError for a construct outside the language, CompileError where there is no function in the text.
    """
    known = _parsed.get(source)
    if known is not None:
        return known
    function = _parsed[source] = _Parser(source, kernel or source.name).parse()
    while len(_parsed) > _CACHE_SIZE:
        _parsed.popitem(last=False)
    return function


def _definition(source: FunctionSource, kernel: str) -> tuple[Any, int]:
    """The AST of the function, and what to add to its line numbers."""
    text = source.text
    indented = text[:1] in (" ", "\t")
    # An indented text becomes the body of an if, so that columns stay as they are.
    wrapped, offset = ("if 1:\n" + text, source.line - 2) if indented else (text, source.line - 1)
    is_lambda = source.name == "<lambda>"
    try:
        with deep_recursion():
            tree = compile(wrapped, source.file, "exec", _ONLY_AST, dont_inherit=True)
    except (RecursionError, MemoryError):  # some Python versions have a fixed limit, of about 1,000 to 6,000 operators
        raise error(
            CompileError,
            "an expression of it nests too deeply for Python's own parser.",
            kernel=kernel,
            hint="Split it into several statements.",
        ) from None
    except SyntaxError as failure:
        if is_lambda:
            return _cut_lambda(source, kernel)
        raise error(
            CompileError, f"its source cannot be parsed ({failure.msg}).", kernel=kernel, hint="Has the file changed since it was imported?"
        ) from None
    if is_lambda:
        found = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda)]
        if len(found) == 1:
            return found[0], offset
        raise _lambda_error(kernel, len(found))
    body: list[Any] = tree.body[0].body if indented else tree.body  # type: ignore[attr-defined]
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == source.name:
            return node, offset
    raise error(
        CompileError,
        f"its source text holds no 'def {source.name}'.",
        kernel=kernel,
        hint="Put the function in a .py file or a notebook cell.",
    )


def _lambda_error(kernel: str, count: int) -> CompileError:
    return error(
        CompileError,
        f"{count} lambdas stand on the line of this one, so that its text cannot be told from the others.",
        kernel=kernel,
        hint="Give it a line of its own: f = tack.func(lambda x: ...).",
    )


def _cut_lambda(source: FunctionSource, kernel: str) -> tuple[Any, int]:
    """A lambda on a line that is no statement by itself, as in an argument list: the longest text from 'lambda' that is an expression."""
    text = source.text
    if text.count("lambda") != 1:
        raise _lambda_error(kernel, text.count("lambda"))
    start = text.index("lambda")
    line = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1)
    for end in range(len(text), start, -1):
        if text[end - 1].isspace():
            continue
        try:  # the parenthesis allows line breaks, and the white space keeps columns
            tree = compile(f"({' ' * (column - 1)}{text[start:end]}\n)", source.file, "eval", _ONLY_AST, dont_inherit=True)
        except SyntaxError:
            continue
        body = tree.body  # type: ignore[attr-defined]
        if isinstance(body, ast.Lambda):
            return body, source.line - 1 + line
    raise _lambda_error(kernel, 1)


def _instead_of_nothing(value: ast.expr) -> str:
    """What to write instead of an expression whose value nobody gets."""
    if isinstance(value, ast.Compare) and isinstance(value.ops[0], ast.Eq) and isinstance(value.left, (ast.Name, ast.Subscript)):
        return "One = assigns: " + ast.unparse(ast.Assign([value.left], value.comparators[0], lineno=0)) + "."
    return "Assign its value to a name or an element of an array, or leave it out."


class _Parser(Flattener):
    def __init__(self, source: FunctionSource, kernel: str) -> None:
        node, offset = _definition(source, kernel)
        super().__init__(source, kernel, offset)
        self.node = node
        self.early = False
        self.valued = False
        self.returning: set[ast.stmt] = set()  # statements with a return somewhere inside
        self.ending: set[ast.stmt] = set()  # ifs of which every path ends with a return (loops are not looked into)

    def parse(self) -> Function:
        node = self.node
        if isinstance(node, ast.AsyncFunctionDef):
            self.refuse_construct(node)
        params = self.parameters(node.args)
        body: list[Item] = []
        self.block = body
        self.bound = 0
        if isinstance(node, ast.Lambda):
            self.valued = True
            self.bind(RESULT, self.expression(node.body), self.loc(node.body))
            loc = self.loc(node)
        else:
            statements = node.body
            self.returning, self.ending = _find_returns(node.body)
            run(self.statements(statements, True))
            loc = self.loc(node)
        mark_live(body, self.bits)
        bits = self.bits
        return Function(
            source=self.source,
            name=self.source.name,
            loc=loc,
            params=params,
            body=body,
            registers=self.registers,
            names=tuple(bits),
            bits=bits,
            captured=tuple(sorted(p for p in self.paths if p[0] not in bits)),
            used=frozenset(self.used),
            early_returns=self.early,
            returns_value=self.valued,
        )

    # -- the signature

    def parameters(self, args: ast.arguments) -> list[Parameter]:
        if args.vararg is not None or args.kwarg is not None:
            star = args.vararg or args.kwarg
            self.refuse(star, "* and ** parameters are not part of the kernel language.", "Name every parameter.")
        positional = [*args.posonlyargs, *args.args]
        params = [Parameter(a.arg, self.loc(a), self.parameter_annotation(a)) for a in positional]
        for param in params[: len(args.posonlyargs)]:
            param.positional_only = True
        for param, default in zip(reversed(params), reversed(args.defaults), strict=False):
            self.default(param, default)
        for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
            param = Parameter(arg.arg, self.loc(arg), self.parameter_annotation(arg), keyword_only=True)
            if value is not None:
                self.default(param, value)
            params.append(param)
        for param in params:
            self.bit(param.name)
        return params

    def default(self, param: Parameter, value: ast.expr) -> None:
        """A default is part of the function's text only where it is a literal; any other value was computed when the def ran."""
        literal: Any = value
        if isinstance(literal, ast.UnaryOp) and isinstance(literal.op, (ast.USub, ast.UAdd)):
            literal = literal.operand
        param.default = self.block = []
        if isinstance(literal, ast.Constant) and isinstance(literal.value, (bool, int, float, type(None))):
            param.default_value = self.expression(value)

    def parameter_annotation(self, arg: ast.arg) -> Path | None:
        """A parameter's annotation was evaluated when the def ran, and Python keeps the value: ":n:tack:u8" asks for it, or for what the
        text means where the value is that text."""
        if arg.annotation is None:
            return None
        path = (":".join(("", arg.arg, *(self.dotted(arg.annotation) or ()))),)
        self.paths.add(path)
        return path

    def annotation(self, node: ast.expr) -> Path | None:
        """The dotted name of a local's annotation, which Python never evaluates."""
        path = self.dotted(node)
        if path is not None:
            self.paths.add(path)
            self.used.add(path)
        return path

    @staticmethod
    def dotted(node: ast.expr) -> Path | None:
        """An annotation's dotted name, quoted or not; None where it is anything else."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value.strip()
            return tuple(part.strip() for part in text.split(".")) if _DOTTED.match(text) else None
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        return (node.id, *reversed(names)) if isinstance(node, ast.Name) else None

    # -- statements

    def statements(self, body: Sequence[ast.stmt], tail: bool) -> Walk[None]:
        """``tail``: after these statements the function ends. An if that returns takes what follows it into its other arm."""
        for position, node in enumerate(body):
            if tail:
                rest = body[position + 1 :]
                if isinstance(node, ast.Return):
                    self.tail_return(node)
                    yield self.unreachable(rest)
                    return
                if isinstance(node, ast.If) and (not rest or node in self.returning):
                    if not rest or self.always_returns(node.body):
                        yield self.if_statement(node, node.body, [*node.orelse, *rest], True)
                        return
                    if self.always_returns(node.orelse):
                        yield self.if_statement(node, [*node.body, *rest], node.orelse, True)
                        return
            visit = _STATEMENTS.get(node.__class__)
            if visit is None:
                self.refuse_construct(node)
            inner = visit(self, node)
            if inner is not None:
                yield inner
            if isinstance(node, (ast.Break, ast.Continue, ast.Return)):
                yield self.unreachable(body[position + 1 :])
                return

    def always_returns(self, body: Sequence[ast.stmt]) -> bool:
        return bool(body) and (isinstance(body[-1], ast.Return) or body[-1] in self.ending)

    def unreachable(self, body: Sequence[ast.stmt]) -> Walk[None]:
        """Statements that are never reached are parsed for what they refuse and capture, and dropped."""
        kept, self.block = self.block, []
        bound = self.bound
        yield self.statements(body, False)
        self.block, self.bound = kept, bound

    def tail_return(self, node: ast.Return) -> None:
        if node.value is None:
            value = self.op("const", (), None, self.loc(node))
        else:
            value = self.expression(node.value)
            self.valued = True
        self.bind(RESULT, value, self.loc(node))

    def return_statement(self, node: ast.Return) -> None:
        self.early = True
        value = -1
        if node.value is not None:
            self.valued = True
            value = self.expression(node.value)
        self.block.append(ReturnNode(value, self.loc(node)))

    def expression_statement(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant) and (isinstance(node.value.value, str) or node.value.value is ...):
            return  # a comment, or the place of one
        value = self.expression(node.value)
        if not any(isinstance(part, (ast.Call, ast.NamedExpr)) for part in ast.walk(node.value)):
            self.refuse(node, "this statement has no effect.", _instead_of_nothing(node.value))
        self.effect("expression", (value,), None, self.loc(node))

    def pass_statement(self, node: ast.Pass) -> None:
        pass

    def assert_statement(self, node: ast.Assert) -> None:
        loc = self.loc(node)
        cond = self.test(node.test)
        default = f"{self.text_of(node)} is not true"
        message: Any = node.msg
        if message is None or (isinstance(message, ast.Constant) and isinstance(message.value, str)):
            self.effect("assert", (cond,), default if message is None else message.value, loc)
            return
        # As in Python, the message is computed only where the condition is false.
        self.mark_printed(message)
        state = self.open_if(cond, "if", loc)
        self.block = state[0].orelse
        text = self.expression(message)
        never = self.op("const", (), False, loc)
        self.effect("assert", (never, text), default, loc)
        self.close_if(state)

    def text_of(self, node: ast.Assert) -> str:
        """The condition of an assert as it is written, if that is one line."""
        loc = self.loc(node.test)
        lines = self.source.text.split("\n")
        position = loc.line - self.source.line
        if loc.end_line != loc.line or not 0 <= position < len(lines):
            return "the condition of this assert"
        return lines[position][loc.column : loc.end_column]

    def assign(self, node: ast.Assign) -> None:
        value = node.value
        update: Path | None = None
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and isinstance(value, ast.Call):
            update = self.mark_update(node.targets[0].id, value)
        register = self.expression(value)
        if update is not None:
            name = node.targets[0].id  # type: ignore[attr-defined]
            self.bound |= self.bit(name)
            self.effect("augbind", (register,), (name, update), self.loc(node))
            return
        for target in node.targets:
            self.assign_to(target, register, node)

    def mark_update(self, name: str, call: ast.Call) -> Path | None:
        """``s = f(s, e)`` with a plain f: the read of s is marked, and f's path answered, so that min and max reductions can be told."""
        path = self.dotted(call.func)
        if path is None or call.keywords or path[0] == name:
            return None
        own = [arg for arg in call.args if isinstance(arg, ast.Name) and arg.id == name]
        if len(own) != 1 or len(call.args) < 2:
            return None
        own[0].update = True  # type: ignore[attr-defined]
        return path

    def assign_to(self, target: ast.expr, value: int, statement: ast.stmt) -> None:
        if isinstance(target, ast.Name):
            self.bind(target.id, value, self.loc(statement))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for item in target.elts:
                if isinstance(item, ast.Starred):
                    self.refuse_construct(item)
            first = self.registers
            self.registers += len(target.elts)
            self.block.append(Op("unpack", first, (value,), len(target.elts), self.loc(target)))
            for position, item in enumerate(target.elts):
                self.assign_to(item, first + position, statement)
        elif isinstance(target, ast.Subscript):
            base, *indices = self.place(target)
            self.effect("store", (base, value, *indices), (self.loc(_value_of(statement)), ""), self.loc(target))
        elif isinstance(target, ast.Attribute):
            self.refuse(target, "assignment to an attribute is not part of the kernel language.", "Store into an array: a[i] = value.")
        else:
            self.refuse_construct(target)

    def place(self, target: ast.Subscript) -> tuple[int, ...]:
        """The registers of the base and the indices of a subscript that is stored to."""
        registers = [self.expression(target.value)]
        items = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        registers += [self.expression(item) for item in items]
        return tuple(registers)

    def aug_assign(self, node: ast.AugAssign) -> None:
        loc = self.loc(node)
        target = node.target
        operation = BINARY[type(node.op)]
        if isinstance(target, ast.Name):
            name = target.id
            self.paths.add((name,))
            old = self.op("augread", (), (name,), self.loc(target))
            value = self.op("binary", (old, self.expression(node.value)), operation, loc)
            self.bound |= self.bit(name)
            self.effect("augbind", (value,), (name, operation), loc)
        elif isinstance(target, ast.Subscript):
            base, *indices = self.place(target)
            old = self.op("index", (base, *indices), None, self.loc(target))
            value = self.op("binary", (old, self.expression(node.value)), operation, loc)
            self.effect("store", (base, value, *indices), (loc, operation), self.loc(target))
        else:
            self.refuse(target, "assignment to an attribute is not part of the kernel language.", "Store into an array: a[i] = value.")

    def ann_assign(self, node: ast.AnnAssign) -> None:
        path = self.annotation(node.annotation)
        if node.value is None:
            if isinstance(node.target, ast.Name):
                self.bit(node.target.id)  # a declaration alone makes the name local, and binds nothing
            return
        value = self.expression(node.value)
        if path is not None and isinstance(node.target, ast.Name):
            value = self.op("convert", (value,), path, self.loc(node))
        self.assign_to(node.target, value, node)

    def plain_if(self, node: ast.If) -> Walk[None]:
        return self.if_statement(node, node.body, node.orelse, False)

    def if_statement(self, node: ast.If, then: Sequence[ast.stmt], orelse: Sequence[ast.stmt], tail: bool) -> Walk[None]:
        test: Any = node.test
        state = self.open_if(self.test(test), "if", self.loc(test))
        item: IfNode = state[0]
        item.returns = tail and node in self.returning
        yield self.statements(then, tail)
        item.bound = self.bound
        self.block, self.bound = item.orelse, 0
        yield self.statements(orelse, tail)
        self.close_if(state)

    def for_statement(self, node: ast.For) -> Walk[None]:
        iterable = self.expression(node.iter)
        item = self.registers
        self.registers += 1
        loop = ForNode(iterable, item, [], [], self.loc(node.iter), bool(node.orelse), tuple(_target_names(node.target)))
        block, bound = self.block, self.bound
        block.append(loop)
        self.block, self.bound = loop.body, 0
        for name in ast.walk(node.target):
            if isinstance(name, (ast.Subscript, ast.Attribute, ast.Starred)):
                self.refuse(name, "a loop variable must be a name or a tuple of names.", "Assign in the body: for k in ...: a[i] = k.")
        self.assign_to(node.target, item, node.target)  # type: ignore[arg-type]
        yield self.statements(node.body, False)
        loop.bound = self.bound
        self.block, self.bound = loop.orelse, 0
        yield self.statements(node.orelse, False)
        loop.bound_else = self.bound
        self.block, self.bound = block, bound | loop.bound | loop.bound_else

    def while_statement(self, node: ast.While) -> Walk[None]:
        loop = WhileNode([], -1, [], [], self.loc(node.test), bool(node.orelse))
        block, bound = self.block, self.bound
        block.append(loop)
        self.block, self.bound = loop.test, 0
        loop.cond = self.test(node.test)
        loop.bound_test, self.bound = self.bound, 0
        self.block = loop.body
        yield self.statements(node.body, False)
        loop.bound = self.bound | loop.bound_test
        self.block, self.bound = loop.orelse, 0
        yield self.statements(node.orelse, False)
        loop.bound_else = self.bound
        self.block, self.bound = block, bound | loop.bound | loop.bound_else

    def break_statement(self, node: ast.Break) -> None:
        self.block.append(BreakNode(self.loc(node)))

    def continue_statement(self, node: ast.Continue) -> None:
        self.block.append(ContinueNode(self.loc(node)))


def _value_of(statement: Any) -> Any:
    """The expression that an assignment stores; a loop's target stands for itself."""
    return getattr(statement, "value", statement)


def _target_names(node: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]


def _find_returns(body: Sequence[ast.stmt]) -> tuple[set[ast.stmt], set[ast.stmt]]:
    """The statements that hold a return, and the ifs that end with one on every path."""
    order: list[ast.stmt] = []
    work = list(body)
    while work:
        node = work.pop()
        order.append(node)
        if isinstance(node, (ast.If, ast.For, ast.While)):
            work += node.body
            work += node.orelse
    returning: set[ast.stmt] = set()
    ending: set[ast.stmt] = set()
    for node in reversed(order):  # what is inside first
        if isinstance(node, ast.Return):
            returning.add(node)
        elif isinstance(node, (ast.If, ast.For, ast.While)):
            if any(inner in returning for inner in (*node.body, *node.orelse)):
                returning.add(node)
            last = [block[-1] for block in (node.body, node.orelse) if block]
            if isinstance(node, ast.If) and len(last) == 2 and all(isinstance(s, ast.Return) or s in ending for s in last):
                ending.add(node)
    return returning, ending


_STATEMENTS: Final[dict[type[ast.AST], Any]] = {
    ast.Assign: _Parser.assign,
    ast.AugAssign: _Parser.aug_assign,
    ast.AnnAssign: _Parser.ann_assign,
    ast.Expr: _Parser.expression_statement,
    ast.If: _Parser.plain_if,
    ast.For: _Parser.for_statement,
    ast.While: _Parser.while_statement,
    ast.Break: _Parser.break_statement,
    ast.Continue: _Parser.continue_statement,
    ast.Return: _Parser.return_statement,
    ast.Pass: _Parser.pass_statement,
    ast.Assert: _Parser.assert_statement,
}
