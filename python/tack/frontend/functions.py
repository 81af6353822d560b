"""Calls of @tack.func: arguments to parameters, and the body inferred in the place of the call."""

from __future__ import annotations

from ..errors import CompileNotImplementedError
from ..ir.nodes import Block, Loc, Node, Scope
from ..ir.walk import Walk, run
from .builder import Frame
from .hir import RESULT, Function, Parameter
from .meaning import FuncMeaning
from .parse import parse
from .statements import Statements
from .values import NONE, Binding, Reduced, Thing, Unusable

__all__ = ["Functions"]


class Functions(Statements):
    def call_function(self, callee: FuncMeaning, args: list[Thing], names: tuple[str, ...], loc: Loc) -> Walk[Thing]:
        fn = parse(callee.source, kernel=self.kernel)
        self.refuse_recursion(callee, fn, loc)
        frame = Frame(fn, callee.environment, self.frame, callee.identity, loc)
        bound = self.bind_arguments(callee, fn, args, names, loc, frame)
        caller, outer = self.frame, self.block
        self.frame = frame
        env: dict[str, Binding] = {}
        for param in fn.params:
            thing = self.bindable(self.convert(bound[param.name], param.annotation, loc), loc)
            env[param.name] = Binding(thing, param.loc)
        frame.env = env
        result: Thing = yield self.body_with_returns(fn, loc) if fn.early_returns else self.plain_body(fn)
        self.frame = caller
        self.block = outer
        if self.never_returns(frame):
            caller.env = None  # it never returns: an endless loop
            return NONE
        if isinstance(result, Unusable):
            self.fail(f"the result of '{fn.name}' {result.text}", loc, "Return the same kind of value on every path.")
        return result

    @staticmethod
    def never_returns(frame: Frame) -> bool:
        return frame.env is None

    def plain_body(self, fn: Function) -> Walk[Thing]:
        """Every return is the last thing that happens: the body needs no scope."""
        frame = self.frame
        yield self.run(fn.body)
        if frame.env is None:
            return NONE
        binding = frame.env.get(RESULT)
        return NONE if binding is None else binding.thing

    def body_with_returns(self, fn: Function, loc: Loc) -> Walk[Thing]:
        frame = self.frame
        outer = self.block
        body: list[Node] = []
        frame.scope = Scope(Block(body), fn.name, loc)
        self.block = body
        fork = yield self.run(fn.body, join=False)
        self.block = body
        if fork is not None and not frame.returns:
            self.join_fork(fork, {})
            fork = None
        exits = [*frame.returns, *self.end_of(body, fork)]
        self.block = outer
        if not frame.returns and exits:  # the other returns are in branches that are never taken
            outer += body
            binding = exits[0].env.get(RESULT)
            return NONE if binding is None else binding.thing
        merged, pending = self.merge(exits, [RESULT], {}, loc)
        outer.append(frame.scope)
        frame.env = merged
        if merged is None:
            return NONE
        self.read_all(merged, pending)
        return merged[RESULT].thing

    def refuse_recursion(self, callee: FuncMeaning, fn: Function, loc: Loc) -> None:
        chain = [fn.name]
        frame: Frame | None = self.frame
        while frame is not None:
            chain.insert(0, frame.fn.name)
            if frame.identity is not None and frame.identity == callee.identity:
                self.fail(
                    f"recursion is not part of the kernel language ({' -> '.join(chain)}).",
                    loc,
                    "Write a loop, with a tack.local_array as the stack where one is needed.",
                    CompileNotImplementedError,
                )
            frame = frame.caller

    def bind_arguments(
        self, callee: FuncMeaning, fn: Function, args: list[Thing], names: tuple[str, ...], loc: Loc, frame: Frame
    ) -> dict[str, Thing]:
        bound: dict[str, Thing] = {}
        positional = len(args) - len(names)
        takes = [p for p in fn.params if not p.keyword_only]
        signature = _signature(fn)
        if positional > len(takes):
            self.fail(f"'{fn.name}' takes {len(takes)} positional arguments, not {positional}.", loc, f"Its signature is {signature}.")
        for param, thing in zip(takes, args, strict=False):
            if len(bound) == positional:
                break
            bound[param.name] = thing
        known = {p.name: p for p in fn.params}
        for name, thing in zip(names, args[positional:], strict=True):
            if name in known and known[name].positional_only:
                self.fail(f"'{fn.name}' takes its parameter '{name}' by position only.", loc, f"Its signature is {signature}.")
            if name not in known:
                self.fail(f"'{fn.name}' has no parameter '{name}'.", loc, f"Its signature is {signature}.")
            if name in bound:
                self.fail(f"'{fn.name}' gets its parameter '{name}' twice.", loc, f"Its signature is {signature}.")
            bound[name] = thing
        for param in fn.params:
            if param.name not in bound:
                bound[param.name] = self.default_of(callee, fn, param, loc, signature, frame)
        return {name: self.read_reduced(thing) if isinstance(thing, Reduced) else thing for name, thing in bound.items()}

    def default_of(self, callee: FuncMeaning, fn: Function, param: Parameter, loc: Loc, signature: str, frame: Frame) -> Thing:
        if param.default is None:
            self.fail(f"'{fn.name}' is called without its parameter '{param.name}'.", loc, f"Its signature is {signature}.")
        if param.default_value < 0:  # not a literal: what it was when the def ran
            meaning = dict(callee.defaults).get(param.name)
            if meaning is None:
                self.fail(f"the default of '{param.name}' in '{fn.name}' is not known.", loc, f"Pass {param.name}.")
            return self.from_meaning(meaning, param.name, loc)
        caller = self.frame
        self.frame = frame
        run(self.run(param.default))
        thing = frame.regs[param.default_value]
        self.frame = caller
        assert thing is not None
        return thing


def _signature(fn: Function) -> str:
    """The parameters as they are declared, without annotations and defaults."""
    names: list[str] = []
    for position, param in enumerate(fn.params):
        if param.keyword_only and not (position and fn.params[position - 1].keyword_only):
            names.append("*")
        names.append(param.name)
        if param.positional_only and not (position + 1 < len(fn.params) and fn.params[position + 1].positional_only):
            names.append("/")
    return f"{fn.name}({', '.join(names)})"
