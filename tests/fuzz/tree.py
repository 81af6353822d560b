"""Programs as trees that can be written as a kernel's text or a host text, and that can be shrunk without changing a type."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(eq=False, slots=True)
class Expr:
    """An expression of static type ``t``. ``host`` is its template in the host text where that differs; ``const``: of constants alone."""

    t: str
    kernel: str
    kids: list[Expr] = field(default_factory=list)
    host: str | None = None
    const: bool = False
    fixed: bool = False  # is not to be replaced by something simpler

    def text(self, host: bool) -> str:
        template = self.host if host and self.host is not None else self.kernel
        return template.format(*(kid.text(host) for kid in self.kids)) if self.kids else template


@dataclass(eq=False, slots=True)
class Line:
    """One line of a statement. ``only``: "host" lines are left out of the kernel."""

    kernel: str
    kids: list[Expr] = field(default_factory=list)
    indent: int = 0
    only: str = ""
    host: str | None = None


@dataclass(eq=False, slots=True)
class Body:
    """Statements inside a statement; any of them may be taken out."""

    statements: list[Stmt]
    indent: int = 1


@dataclass(eq=False, slots=True)
class Stmt:
    parts: list[Line | Body]
    fixed: bool = False  # is not to be taken out

    def lines(self, host: bool, lead: int) -> Iterator[str]:
        for part in self.parts:
            space = "    " * (lead + part.indent)
            if isinstance(part, Body):
                inner = list(itertools.chain.from_iterable(s.lines(host, lead + part.indent) for s in part.statements))
                yield from inner or [space + "pass"]
            elif host or part.only != "host":
                template = part.host if host and part.host is not None else part.kernel
                yield space + (template.format(*(kid.text(host) for kid in part.kids)) if part.kids else template)


@dataclass(eq=False, slots=True)
class Function:
    """A device function."""

    name: str
    params: list[str]
    body: list[Stmt]

    def text(self, host: bool) -> str:
        lines = itertools.chain.from_iterable(s.lines(host, 1) for s in self.body)
        return "\n".join(["@tack.func", f"def {self.name}({', '.join(self.params)}):", *lines]) + "\n"


@dataclass(eq=False, slots=True)
class Program:
    """One parallel loop and what surrounds it. Its rows in the output arrays start at ``row``. ``result``: a name that may be returned."""

    seed: int
    row: int
    functions: list[Function]
    body: list[Stmt]
    result: str = ""

    def text(self, host: bool) -> str:
        return "\n".join(itertools.chain.from_iterable(s.lines(host, 1) for s in self.body))


def statement_lists(program: Program) -> Iterator[list[Stmt]]:
    """Every list of statements, outer ones first."""
    work = [program.body, *(f.body for f in program.functions)]
    while work:
        block = work.pop(0)
        yield block
        work += [part.statements for s in block for part in s.parts if isinstance(part, Body)]


def expression_places(program: Program) -> Iterator[tuple[list[Expr], int]]:
    """Every place of an expression: the list that holds it, and its position. Outer ones first."""
    work: list[list[Expr]] = [part.kids for block in statement_lists(program) for s in block for part in s.parts if isinstance(part, Line)]
    while work:
        kids = work.pop(0)
        for k, kid in enumerate(kids):
            yield kids, k
            work.append(kid.kids)
