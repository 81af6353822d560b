"""Makes a failing program small: takes out statements, functions and parts of expressions for as long as it fails in the same way."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from host import STRONG
from tree import Body, Expr, Program, expression_places, statement_lists

Fails = Callable[[Program], bool]


def shrink(program: Program, fails: Fails) -> Program:
    """``program`` is changed in place; ``fails`` answers whether it still does what is looked for."""
    while True:
        before = program.text(False) + "".join(f.text(False) for f in program.functions)
        _statements(program, fails)
        _functions(program, fails)
        _expressions(program, fails)
        after = program.text(False) + "".join(f.text(False) for f in program.functions)
        if after == before:
            return program


def _functions(program: Program, fails: Fails) -> None:
    for f in list(program.functions):
        kept = list(program.functions)
        program.functions.remove(f)
        if not fails(program):
            program.functions = kept


def _statements(program: Program, fails: Fails) -> None:
    for block in statement_lists(program):
        size = max(len(block) // 2, 1)
        while size:
            start = 0
            while start < len(block):
                kept = list(block)
                if any(s.fixed for s in block[start : start + size]):
                    start += 1
                    continue
                del block[start : start + size]
                if not fails(program):
                    block[:] = kept
                    start += size
            size //= 2
        for position in range(len(block) - 1, -1, -1):
            _flatten(program, block, position, fails)


def _flatten(program: Program, block: list, position: int, fails: Fails) -> None:
    """A statement's inner statements in its place, or none of them, or fewer of its branches."""
    statement = block[position]
    bodies = [part for part in statement.parts if isinstance(part, Body)]
    if not statement.fixed:
        for inner in bodies:
            kept = list(block)
            block[position : position + 1] = inner.statements
            if fails(program):
                return
            block[:] = kept
    for inner in bodies:
        kept = list(inner.statements)
        if kept:
            inner.statements.clear()
            if not fails(program):
                inner.statements.extend(kept)
    parts = statement.parts
    if len(parts) >= 2 and isinstance(parts[-1], Body) and not isinstance(parts[-2], Body) and parts[-2].kernel == "else:":
        statement.parts = parts[:-2]
        if not fails(program):
            statement.parts = parts


def _expressions(program: Program, fails: Fails) -> None:
    for kids, k in list(expression_places(program)):
        old = kids[k] if k < len(kids) else None
        if old is None or old.fixed or old.t.startswith("array"):
            continue
        for candidate in _simpler(old):
            kids[k] = candidate
            if fails(program):
                break
            kids[k] = old


def _simpler(e: Expr) -> Iterator[Expr]:
    if not e.kids:
        return
    work = list(e.kids)
    seen = 0
    while work and seen < 12:
        kid = work.pop(0)
        seen += 1
        if kid.t == e.t and not kid.fixed:
            yield kid
        work += kid.kids
    if e.t in STRONG:
        if len(e.kids) > 1 or e.kids[0].t == e.t:
            for kid in e.kids:
                if not kid.t.startswith("array"):
                    yield Expr(e.t, f"tack.{e.t}({{0}})", [kid], const=kid.const)
        if not e.const:
            for position in ("i % 64", "1"):
                if e.kernel != f"a_{e.t}[{position}]":
                    yield Expr(e.t, f"a_{e.t}[{position}]")
        if len(e.kids) == 1 and e.kids[0].fixed and e.kernel.startswith("a_"):
            return
        yield Expr(e.t, f"tack.{e.t}(1)", const=True)
    elif e.t == "bool":
        yield Expr("bool", "(a_i8[i % 64] > 0)")
    elif e.t == "int":
        yield Expr("int", "p", host="C_int(p)")
    elif e.t == "float":
        yield Expr("float", "q", host="C_float(q)")
