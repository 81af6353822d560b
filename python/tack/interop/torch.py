"""tack.interop.torch: a kernel as an operator of PyTorch's, with its dispatcher, shapes for torch.compile, and gradients where given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from ..kernels import kernel_function

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .._runtime import Dispatcher

__all__ = ["operator"]

_ARGUMENT = re.compile(r"(?P<type>Tensor|int|float|bool)(?P<written>\([a-z]+!\))?\s+(?P<name>\w+)(?:\s*=.*)?$")


def operator(
    kernel: Dispatcher, schema: str, *, name: str | None = None, outputs: Mapping[str, str | Callable[..., Any]] | None = None
) -> Any:
    """A kernel as an operator on tensors: ``scale = operator(scale_kernel, "(Tensor x, float factor) -> Tensor")``, ``y = scale(x, 2.0)``.

    ``schema``: PyTorch's text for arguments and results. The arguments are parameters of the kernel, by name: ``Tensor``, ``Tensor(a!)``
    for one that the kernel writes, ``int``, ``float`` or ``bool``. The other parameters of the kernel are its results, in the kernel's
    order: tensors that the operator makes and returns.
    ``outputs``: how these are made: by the name of the tensor that they are like, or by a function of the operator's arguments that
    answers an uninitialised tensor. Without a word, like the first tensor argument.
    ``name``: of the operator, "library::name"; "tack::" and the kernel's name if not given. Each name is used once in a process.

    Answers a ``torch.library`` operator: torch.compile knows its shapes, and ``register_autograd`` gives it a derivative. A call waits for
    the stream that PyTorch works in, launches, and returns when the kernel is done. Tensors lie on a device that tack has, all on the same.

    Raises ValueError for a schema that does not fit the kernel.
    """
    function = kernel_function(kernel)
    arguments, results = _parse(schema, function.name)
    made = [parameter for parameter in function.names if parameter not in arguments]
    unknown = [argument for argument in arguments if argument not in function.names]
    if unknown or len(made) != results:
        raise ValueError(
            f"the schema {schema!r} does not fit kernel '{function.name}': "
            + (
                f"it has no parameter {unknown[0]!r}"
                if unknown
                else f"{results} results, but the parameters {made} are not among its arguments"
            )
        )
    tensors = [argument for argument, (kind, _) in arguments.items() if kind == "Tensor"]
    makers = _makers(function.name, made, tensors, outputs or {})

    def make(given: dict[str, Any]) -> list[Any]:
        return [_like(given[maker]) if isinstance(maker, str) else maker(*given.values()) for maker in makers.values()]

    def run(*values: Any) -> Any:
        given = {n: v.detach() if isinstance(v, torch.Tensor) else v for n, v in zip(arguments, values, strict=True)}
        new = make(given)
        kernel(**given, **dict(zip(makers, new, strict=True)))
        return _packed(new)

    def shapes(*values: Any) -> Any:
        return _packed(make(dict(zip(arguments, values, strict=True))))

    written = [argument for argument, (_, writes) in arguments.items() if writes]
    op = torch.library.custom_op(name or f"tack::{function.name}", run, mutates_args=written, schema=schema)
    op.register_fake(shapes)
    return op


def _like(tensor: Any) -> Any:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format)


def _packed(tensors: list[Any]) -> Any:
    return None if not tensors else tensors[0] if len(tensors) == 1 else tuple(tensors)


def _parse(schema: str, kernel: str) -> tuple[dict[str, tuple[str, bool]], int]:
    """The arguments of a schema, (type, whether it is written) by name, and the number of its results."""
    match = re.fullmatch(r"\s*\((.*)\)\s*->\s*(.+?)\s*", schema)
    if match is None:
        raise ValueError(f"kernel '{kernel}': the schema {schema!r} is none: write for example '(Tensor x, float factor) -> Tensor'")
    arguments = {}
    for text in filter(None, (part.strip() for part in match.group(1).split(","))):
        found = _ARGUMENT.match(text)
        if found is None:
            raise ValueError(
                f"kernel '{kernel}': {text!r} in the schema is no argument that kernels take: Tensor, int, float or bool and a name"
            )
        arguments[found["name"]] = (found["type"], found["written"] is not None)
    results = [part for part in match.group(2).strip("()").split(",") if part.strip()]
    return arguments, len(results)


def _makers(
    kernel: str, made: list[str], tensors: list[str], outputs: Mapping[str, str | Callable[..., Any]]
) -> dict[str, str | Callable[..., Any]]:
    makers: dict[str, str | Callable[..., Any]] = {}
    for output in made:
        maker = outputs.get(output, tensors[0] if tensors else "")
        if isinstance(maker, str) and maker not in tensors:
            raise ValueError(f"kernel '{kernel}': outputs={{{output!r}: ...}} names one of the tensors {tensors}, or is a function")
        makers[output] = maker
    stray = [output for output in outputs if output not in made]
    if stray:
        raise ValueError(f"kernel '{kernel}': outputs= has {stray[0]!r}, which is no result; those are {made}")
    return makers
