"""Forms fused multiply-adds, by the one rule that decides it for every backend.

An ``add`` or ``sub`` of floats takes in a ``mul`` that is one of its operands, if the mul stands in the same block and nothing else
uses it. Where both operands are such products, the left one is taken in. Instructions are visited in program order:

    a*b + c -> fma(a, b, c)      a*b - c -> fma(a, b, -c)      a*b + c*d -> fma(a, b, c*d)
    c + a*b -> fma(a, b, c)      c - a*b -> fma(-a, b, c)      a*b - c*d -> fma(a, b, -(c*d))

So the answer depends on the kernel's text and types alone, never on a target or a SIMD width. ``@kernel(exact=True)`` forms none.
"""

from __future__ import annotations

from collections.abc import Iterator

from .nodes import Block, For, Function, If, Instr, Kernel, Node, Parallel, Scope, Segment, Sequence, While

__all__ = ["form_fma"]


def form_fma(code: Kernel | Function) -> None:
    """Rewrites ``code`` in place. A kernel whose option ``exact`` is set stays as it is."""
    if isinstance(code, Kernel) and code.options.get("exact"):
        return
    roots = [code.body] if isinstance(code, Function) else list(_roots(code))
    blocks = [block for root in roots for block in _blocks(root)]
    uses = _uses(blocks)
    for block in blocks:
        _rewrite(block, uses)


def _roots(kernel: Kernel) -> Iterator[Block]:
    work = list(kernel.items)
    while work:
        item = work.pop()
        if isinstance(item, Sequence):
            work += item.items
        else:
            assert isinstance(item, (Segment, Parallel))
            yield item.body


def _blocks(root: Block) -> Iterator[Block]:
    work = [root]
    while work:
        block = work.pop()
        yield block
        for node in block.body:
            if isinstance(node, If):
                work += (node.then, node.orelse)
            elif isinstance(node, For):
                work += (node.body, node.orelse)
            elif isinstance(node, While):
                work += (node.test, node.body, node.orelse)
            elif isinstance(node, Scope):
                work.append(node.body)


def _uses(blocks: list[Block]) -> dict[Instr, int]:
    """How often each instruction is used, anywhere."""
    uses: dict[Instr, int] = {}
    for block in blocks:
        for node in block.body:
            if isinstance(node, Instr):
                operands = node.args
            elif isinstance(node, For):
                operands = (node.start, node.stop, node.step)
            elif isinstance(node, (If, While)):
                operands = (node.cond,)
            else:
                continue
            for operand in operands:
                uses[operand] = uses.get(operand, 0) + 1
    return uses


def _rewrite(block: Block, uses: dict[Instr, int]) -> None:
    products: set[Instr] = set()  # of this block, with one use
    gone: set[Instr] = set()
    negated: dict[Instr, Instr] = {}  # fma -> the neg that must stand before it
    for node in block.body:
        if not isinstance(node, Instr) or node.type is None or not node.type.is_float:
            continue
        if node.op == "mul":
            if uses.get(node) == 1:
                products.add(node)
        elif node.op == "add" or node.op == "sub":
            left, right = node.args
            if left in products:
                product, other = left, right
            elif right in products:
                product, other = right, left
            else:
                continue
            a, b = product.args
            if node.op == "sub":
                if product is left:
                    other = negated[node] = Instr("neg", node.type, (right,), None, node.loc)
                else:
                    a = negated[node] = Instr("neg", node.type, (a,), None, node.loc)
            node.op, node.args = "fma", (a, b, other)
            products.discard(product)
            gone.add(product)
    if gone:
        body: list[Node] = []
        for entry in block.body:
            if isinstance(entry, Instr):
                if entry in gone:
                    continue
                if entry in negated:
                    body.append(negated[entry])
            body.append(entry)
        block.body[:] = body
