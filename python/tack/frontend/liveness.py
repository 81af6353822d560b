"""Which local names are read after a construct: a backward walk over HIR with bit masks, once per text."""

from __future__ import annotations

from .hir import RESULT, BreakNode, ContinueNode, ForNode, IfNode, Item, Op, ReturnNode, WhileNode

__all__ = ["live_into", "mark_live"]


def mark_live(body: list[Item], bits: dict[str, int]) -> None:
    """Fills ``live_out`` and ``live_head`` of all nodes in a function's body."""
    _Liveness(bits).block(body, bits.get(RESULT, 0), 0, 0)


def live_into(body: list[Item], bits: dict[str, int]) -> int:
    """The names that one round of a loop's body may read before it binds them, when nothing is read after it."""
    return _Liveness(bits).block(body, 0, 0, 0)


class _Liveness:
    def __init__(self, bits: dict[str, int]) -> None:
        self.bits = bits

    def block(self, items: list[Item], live: int, on_break: int, on_continue: int) -> int:
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
            else:
                live = self.node(item, live, on_break, on_continue)
        return live

    def node(self, item: Item, live: int, on_break: int, on_continue: int) -> int:
        if isinstance(item, IfNode):
            item.live_out |= live
            return self.block(item.then, live, on_break, on_continue) | self.block(item.orelse, live, on_break, on_continue)
        if isinstance(item, (ForNode, WhileNode)):
            item.live_out |= live
            after = self.block(item.orelse, live, on_break, on_continue)
            head = after
            while True:  # what a round reads is live at the head, which is where a round ends
                start = self.block(item.body, head, live, head)
                if isinstance(item, WhileNode):
                    start = self.block(item.test, start | after, 0, 0)
                if start | head == head:
                    break
                head |= start
            item.live_head |= head
            return head
        if isinstance(item, BreakNode):
            return on_break
        if isinstance(item, ContinueNode):
            return on_continue
        if isinstance(item, ReturnNode):
            return self.bits.get(RESULT, 0)
        return live
