"""Inference of what the threads of a group do together: shared memory, barriers, block reductions; and where that is refused."""

from __future__ import annotations

import math
from typing import Final, NoReturn

from ..errors import CompileNotImplementedError, CompileValueError
from ..ir.nodes import ArrayParam, Block, Instr, Item, Loc, Parallel, ScratchArray, Segment, Sequence, SharedArray, Var
from ..ir.target import Target
from ..ir.uniformity import GROUP_OPERATIONS, Split, analyse, shared_arrays
from ..ir.walk import instructions
from ..types import BOOL, DType, i64
from .builder import Frame, weak_constant
from .textures import Textures
from .values import NONE, W_INT, ArrayRef, Num, Thing

__all__ = ["Workgroups"]

_REDUCTIONS: Final = {"block_sum": "add", "block_min": "min", "block_max": "max"}
_SHOWN: Final = {"add": "block_sum", "min": "block_min", "max": "block_max"}
_ALIGNMENT: Final = 16  # of each shared array, as devices place them


class Workgroups(Textures):
    def __init__(self, kernel: str, target: Target, frame: Frame, weak_float: DType) -> None:
        super().__init__(kernel, target, frame, weak_float)
        self.group = target.block  # threads of a group
        self.group_frames: dict[Instr | SharedArray, Frame] = {}  # where each was written, for messages

    def set_group(self, block: object, loc: Loc) -> None:
        """Takes the kernel's option ``block``. A device without groups ignores it."""
        most = self.target.max_group
        if block is None or not self.target.supports_workgroups:
            return
        assert isinstance(block, int)
        if most and block > most:
            self.fail(
                f"block={block}: a group has 1 to {most} threads on {self.target.title}.",
                loc,
                f"Write @tack.kernel(block=N) with N of at most {most}.",
                CompileValueError,
            )
        self.group = block

    def workgroup(self, name: str, args: list[Thing], loc: Loc) -> Thing:
        """A call of one of names.WORKGROUP, on a device that has groups."""
        if name in ("shared", "shared_like"):
            dtype, shape = self.scratch(name, args, loc)
            array = SharedArray("shared", dtype, shape, loc)
            self.group_frames[array] = self.frame
            return ArrayRef(array, array.name)
        if name in _REDUCTIONS:
            return self.block_reduction(name, args, loc)
        self.counted(f"tack.{name}", args, 0, 0, loc)
        if name == "block_dim":
            return weak_constant(self.group)
        instr = self.emit(name, None if name == "barrier" else i64, (), None, loc)
        self.group_frames[instr] = self.frame
        return NONE if name == "barrier" else Num(i64, instr, index=True)

    def block_reduction(self, name: str, args: list[Thing], loc: Loc) -> Num:
        self.counted(f"tack.{name}", args, 1, 1, loc)
        (x,) = self.numbers(f"tack.{name}", args, loc)
        t = W_INT if x.type is BOOL else x.type
        result = self.value("block_reduce", t, (self.coerce(x, self.dtype_of(t), loc),), loc, _REDUCTIONS[name])
        assert result.instr is not None
        self.group_frames[result.instr] = self.frame
        return result

    # -- what is refused when all is inferred

    def check_groups(self, items: list[Item]) -> None:
        """Refuses what is not in a parallel loop, together with a reduction, in flow that is not uniform, or too large."""
        has_loops = any(not isinstance(item, Segment) for item in items)
        work = list(reversed(items))
        while work:
            item = work.pop()
            if isinstance(item, Sequence):
                work.extend(reversed(item.items))
                continue
            used = next((i for i in instructions(item.body) if i.op in GROUP_OPERATIONS), None)
            arrays = shared_arrays(item.body)
            if used is None and not arrays:
                continue
            frame, loc, text = self.first_use(used, arrays)
            if isinstance(item, Segment) and has_loops:
                self.fail(
                    f"{text} outside the parallel loops is refused.",
                    loc,
                    "Statements outside loops run once, in no group: call it inside a loop.",
                    CompileNotImplementedError,
                    frame,
                )
            if isinstance(item, Parallel) and item.reductions:
                self.fail(
                    f"{text} in a loop that reduces into '{item.reductions[0].var.name}' is refused.",
                    loc,
                    "Reduce within the group with tack.block_sum, block_min or block_max, and combine the groups with an atomic.",
                    CompileNotImplementedError,
                    frame,
                )
            self.check_flow(item.indices if isinstance(item, Parallel) else [], item.body)
            self.check_size(arrays, item.body)

    def first_use(self, used: Instr | None, arrays: list[SharedArray]) -> tuple[Frame, Loc | None, str]:
        if used is not None:
            return self.group_frames[used], used.loc, _name(used)
        return self.group_frames[arrays[0]], arrays[0].loc, "tack.shared"

    def check_flow(self, indices: list[Var], body: Block) -> None:
        refused = analyse(indices, body).refused
        if refused:
            self.not_uniform(*refused[0])

    def not_uniform(self, collective: Instr, split: Split) -> NoReturn:
        where = f"line {split.loc.line}" if split.loc is not None else "an unknown line"
        if split.loc is not None and collective.loc is not None and split.loc.file != collective.loc.file:
            where += f" of {split.loc.file}"
        what = {
            "branch": f"the condition at {where} depends on",
            "loop": f"how often the loop at {where} runs depends on",
            "jump": f"whether control leaves at {where} depends on",
        }[split.kind]
        self.fail(
            f"{_name(collective)} in flow that is not uniform: {what} {_described(split.root)}, so some threads may not come.",
            collective.loc,
            "Let all threads reach it: move it out, and leave under the condition only what differs. Arguments, shapes, "
            "tack.block_id() and results of block reductions are the same for all.",
            CompileNotImplementedError,
            self.group_frames[collective],
        )

    def check_size(self, arrays: list[SharedArray], body: Block) -> None:
        """What the arrays and the block reductions of a loop need together, against what a group has."""
        most, total = self.target.shared_bytes, 0
        needs: list[tuple[str, int, Instr | SharedArray]] = [(f"'{a.name}'", a.dtype.itemsize * math.prod(a.shape), a) for a in arrays]
        reductions = {i.type: i for i in instructions(body) if i.op == "block_reduce"}  # those of one type use the same memory
        needs += [(_name(i), t.itemsize * self.group, i) for t, i in reductions.items() if t is not None]
        for what, size, where in needs:
            total = -(-total // _ALIGNMENT) * _ALIGNMENT + size
            if total > most:
                sum_of = "" if total == size else f", {total} with what else the loop shares"
                self.fail(
                    f"shared memory of {size} bytes for {what}{sum_of}; a group has {most} on {self.target.title}.",
                    where.loc,
                    "Share fewer elements, or a smaller dtype, and go over the data in pieces.",
                    CompileValueError,
                    self.group_frames[where],
                )


def _name(instr: Instr) -> str:
    return f"tack.{_SHOWN[str(instr.attr)] if instr.op == 'block_reduce' else instr.op}"


def _described(root: Instr | Var) -> str:
    """What differs between threads, for messages."""
    if isinstance(root, Var):
        return f"the loop's index '{root.name}'"
    if root.op == "thread_id":
        return "tack.thread_id()"
    array = root.attr[-1] if isinstance(root.attr, tuple) else root.attr
    assert isinstance(array, (ArrayParam, ScratchArray))
    return f"an element of '{array.name}'" if root.op != "atomic" else f"what an atomic on '{array.name}' answers"
