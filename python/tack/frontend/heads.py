"""The head of a loop: which names a round hands to the next, and the types that all ways to the head have together."""

from __future__ import annotations

from typing import Final

from ..ir.nodes import Loc
from .forks import Forks
from .hir import ForNode, WhileNode
from .joins import Slots, same_type
from .values import Binding, Num, Reduced, Refused, Thing, Tuple, Unusable

__all__ = ["Heads"]

_FREE_PASSES: Final = 4  # over a loop, whose types may be others from pass to pass; those of later ones only add to what was found


class Heads(Forks):
    def loop_heads(self, node: ForNode | WhileNode) -> dict[str, list[Binding]]:
        """What was found to lead to the loop's head, by name: in the latest pass, or when the same loop was met before.

        The types at the head are those that all of it has together.
        """
        return self.loop_types.setdefault((*self.frame.key, *self.frame.rounds, id(node)), {})

    def carry_in(
        self, node: ForNode | WhileNode, entry: dict[str, Binding], heads: dict[str, list[Binding]], passes: int
    ) -> tuple[list[tuple[str, Binding, Slots]], list[str]]:
        """Variables for what a round hands to the next, set in the current block; and the names that are unbound at first.

        ``passes``: how many there were over this loop, since it was met.
        """
        carried: list[tuple[str, Binding, Slots]] = []
        unbound: list[str] = []
        for name in self.names_of(node.bound & node.live_head):
            binding = entry.get(name)
            if binding is None or isinstance(binding.thing, Unusable):  # unusable before, e.g. at the head of a loop around this one
                unbound.append(name)
                continue
            if isinstance(binding.thing, Reduced):
                continue
            joined = self.gather(heads.setdefault(name, []), [binding])
            if passes == 0 and isinstance(joined, Unusable):  # types of an earlier pass over a loop around this one may be none now
                heads[name] = []
                joined = self.gather(heads[name], [binding])
            slots = self.slots_for(name, joined)
            self.fill(slots, binding.thing, binding.loc)
            carried.append((name, Binding(joined, binding.loc), slots))
        return carried, unbound

    def gather(self, parts: list[Binding], bindings: list[Binding]) -> Thing:
        """What ``parts`` and ``bindings`` are together. Those of the bindings that are numbers or tuples become parts."""
        met = [*parts, *bindings]
        joined = self.join_things(met)
        for b in bindings:  # arrays made in this pass are not those of the next
            if isinstance(b.thing, (Num, Tuple)) and not any(same_type(b.thing, part.thing) for part in parts):
                parts.append(Binding(self.type_only(b.thing), b.loc))
        if isinstance(joined, Unusable) and not all(isinstance(b.thing, (Num, Tuple, Refused)) for b in met):
            parts.append(Binding(joined, joined.loc))
        return joined

    def settled(
        self,
        carried: list[tuple[str, Binding, Slots]],
        entry: dict[str, Binding],
        ends: list[dict[str, Binding]],
        heads: dict[str, list[Binding]],
        passes: int,
    ) -> bool:
        """Whether the types that lead to the loop's head are those that it had.

        What earlier passes found does not count, as it may come from types that are none in the end (an index that meets what turns out
        to be u64). But after a few passes everything does: then types only grow, and the passes come to an end.
        """
        stable = True
        for name, binding, _ in carried:
            if passes < _FREE_PASSES:
                heads[name] = []
            joined = self.gather(heads[name], [entry[name], *(end[name] for end in ends)])
            stable &= same_type(joined, binding.thing)
        return stable

    def head_env(
        self, entry: dict[str, Binding], carried: list[tuple[str, Binding, Slots]], unbound: list[str], loc: Loc
    ) -> dict[str, Binding]:
        env = dict(entry)
        self.read_all(env, carried)
        for name in unbound:
            env.setdefault(name, Binding(self.not_in_first_round(name, loc), loc))  # what made it unusable before is the better reason
        return env

    def not_in_first_round(self, name: str, loc: Loc) -> Unusable:
        return Unusable(
            "unbound", loc, "it is assigned in the loop, but not before its first round reads it.", "Assign it before the loop."
        )
