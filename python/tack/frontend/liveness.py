"""Which local names are read after a construct: a backward walk over HIR with bit masks, once per text."""

from __future__ import annotations

from ..ir.walk import Walk, run
from .hir import RESULT, BreakNode, ContinueNode, ForNode, IfNode, Item, Op, ReturnNode, WhileNode

__all__ = ["live_into", "mark_live"]


def mark_live(body: list[Item], bits: dict[str, int]) -> None:
    """Fills ``live_out`` and ``live_head`` of all nodes in a function's body."""
    run(_Liveness(bits).block(body, bits.get(RESULT, 0), 0, 0))


def live_into(body: list[Item], bits: dict[str, int]) -> int:
    """The names that one round of a loop's body may read before it binds them, when nothing is read after it."""
    return run(_Liveness(bits).block(body, 0, 0, 0))


class _Liveness:
    def __init__(self, bits: dict[str, int]) -> None:
        self.bits = bits

    def block(self, items: list[Item], live: int, on_break: int, on_continue: int) -> Walk[int]:
        """The names that are live before ``items``, when ``live`` are after them."""
        bits = self.bits
        for item in reversed(items):
            if item.__class__ is Op:
                kind = item.kind
                if kind == "path" or kind == "augread":
                    live |= bits.get(item.attr[0], 0)
                elif kind == "bind":
                    live &= ~bits[item.attr]
                elif kind == "augbind":
                    live &= ~bits[item.attr[0]]
            elif isinstance(item, IfNode):
                item.live_out |= live
                then = yield self.block(item.then, live, on_break, on_continue)
                orelse = yield self.block(item.orelse, live, on_break, on_continue)
                live = then | orelse
            elif isinstance(item, (ForNode, WhileNode)):
                live = yield self.loop(item, live, on_break, on_continue)
            elif isinstance(item, BreakNode):
                live = on_break
            elif isinstance(item, ContinueNode):
                live = on_continue
            elif isinstance(item, ReturnNode):
                live = bits.get(RESULT, 0)
        return live

    def loop(self, item: ForNode | WhileNode, live: int, on_break: int, on_continue: int) -> Walk[int]:
        item.live_out |= live
        after = yield self.block(item.orelse, live, on_break, on_continue)
        # What a round reads is live at the head, which is where a round ends. A loop around this one comes here again: what was found
        # then still holds, so that nested loops take few rounds together, and not two each.
        head: int = after | item.live_head
        while True:
            start = yield self.block(item.body, head, live, head)
            if isinstance(item, WhileNode):
                start = yield self.block(item.test, start | after, 0, 0)
            if start | head == head:
                break
            head |= start
        item.live_head = head
        return head
