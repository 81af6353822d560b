"""Walks over structured code without Python recursion: a visitor is a generator that yields the visits it needs."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, TypeAlias, TypeVar

from .nodes import Block, Break, Continue, For, If, Instr, Leave, Node, Scope, While

__all__ = ["Walk", "blocks_of", "instructions", "nodes", "run"]

T = TypeVar("T")
Walk: TypeAlias = Generator["Walk[Any]", Any, T]


def run(walk: Walk[T]) -> T:
    """Drives ``walk``: each generator that it yields is run to its end, whose result is the yield's value, or whose error it raises."""
    stack: list[Walk[Any]] = [walk]
    value: Any = None
    failure: BaseException | None = None
    while stack:
        try:
            child = stack[-1].send(value) if failure is None else stack[-1].throw(failure)
        except StopIteration as stop:
            stack.pop()
            value, failure = stop.value, None
        except BaseException as error:
            stack.pop()
            value, failure = None, error
        else:
            stack.append(child)
            value = failure = None
    if failure is not None:
        raise failure
    result: T = value
    return result


def blocks_of(node: Node) -> tuple[Block, ...]:
    """The blocks directly inside a structured node."""
    if isinstance(node, If):
        return node.then, node.orelse
    if isinstance(node, For):
        return node.body, node.orelse
    if isinstance(node, While):
        return node.test, node.body, node.orelse
    if isinstance(node, Scope):
        return (node.body,)
    return ()


def nodes(*blocks: Block) -> Iterator[Node]:
    """Every node of the blocks and of what they nest, each before its children; in source order."""
    stack: list[Iterator[Node]] = [iter(b.body) for b in reversed(blocks)]
    while stack:
        for node in stack[-1]:
            yield node
            if not isinstance(node, Instr | Break | Continue | Leave):
                stack.extend(iter(b.body) for b in reversed(blocks_of(node)))
                break
        else:
            stack.pop()


def instructions(*blocks: Block) -> Iterator[Instr]:
    """Every instruction, nested ones included."""
    return (n for n in nodes(*blocks) if isinstance(n, Instr))
