"""The real PyTorch: its tensors in kernels and as arrays, arrays as its tensors, and kernels as its operators."""

from __future__ import annotations

import gc
from typing import Any

import heavy
import numpy as np
import pytest

import tack

heavy.require("torch")

import torch  # noqa: E402

from tack.interop.torch import operator  # noqa: E402

DTYPES = {
    tack.i8: torch.int8, tack.u8: torch.uint8, tack.i16: torch.int16, tack.u16: torch.uint16, tack.i32: torch.int32,
    tack.u32: torch.uint32, tack.i64: torch.int64, tack.u64: torch.uint64, tack.f32: torch.float32, tack.f64: torch.float64,
}  # fmt: skip


@tack.kernel
def scale(out, x, factor):
    for i in range(x.shape[0]):
        out[i] = x[i] * factor


@tack.kernel
def add_one_everywhere(x):
    for i, j in tack.ndrange(x.shape[0], x.shape[1]):
        x[i, j] = x[i, j] + 1


@pytest.mark.parametrize(("ours", "theirs"), DTYPES.items(), ids=str)
def test_dlpack_both_ways(ours: tack.DType, theirs: Any) -> None:
    tensor = torch.arange(6).to(theirs).reshape(2, 3)
    a = tack.from_dlpack(tensor)
    assert a.dtype == ours and a.shape == (2, 3) and a.pointer == tensor.data_ptr()
    add_one_everywhere(a)
    assert tensor.tolist() == [[1, 2, 3], [4, 5, 6]]
    back = torch.from_dlpack(tack.asarray(tensor.T))
    assert back.data_ptr() == tensor.data_ptr() and back.stride() == (1, 3) and back.dtype == theirs
    del tensor, a
    gc.collect()
    assert back.tolist() == [[1, 4], [2, 5], [3, 6]]
    with tack.device("cpu"):
        mine = torch.from_dlpack(tack.full((2, 2), 7, ours))
    gc.collect()
    assert mine.tolist() == [[7, 7], [7, 7]]


@pytest.mark.parametrize("theirs", [*DTYPES.values(), torch.bool], ids=str)
def test_tensors_go_straight_into_kernels(theirs: Any) -> None:
    x = torch.zeros(4, 6, dtype=theirs)
    add_one_everywhere(x[::2, 1:5])
    want = np.zeros((4, 6), int)
    want[::2, 1:5] = 1
    assert x.int().tolist() == want.tolist()
    add_one_everywhere(x.T[:0])
    add_one_everywhere(torch.zeros(0, 3, dtype=theirs))


def test_tensors_arrays_and_numpy_mix() -> None:
    out, x = torch.zeros(4), np.arange(4, dtype=np.float32)
    scale(out, x, 2.0)
    scale(x, tack.asarray(out), 2.0)
    assert x.tolist() == [0.0, 4.0, 8.0, 12.0]


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (lambda: torch.ones(3, requires_grad=True), r"x\.detach\(\)"),
        (lambda: torch.nn.Parameter(torch.ones(3)), r"x\.detach\(\)"),
        (lambda: torch.ones(3, dtype=torch.float16), "16 bits"),
        (lambda: torch.ones(3, dtype=torch.bfloat16), "code 4"),
        (lambda: torch.ones(3, dtype=torch.complex64), "code 5"),
        (lambda: torch.ones(3).to_sparse(), "torch.Tensor"),
        (lambda: torch.ones(3, device="meta"), "torch.Tensor"),
    ],
)
def test_tensors_that_a_kernel_cannot_use_are_refused(tensor: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError, BufferError), match=f"(?s)Kernel 'scale': parameter 'x'.*{message}"):
        scale(torch.zeros(3), tensor(), 1.0)


def test_the_memory_of_a_lazily_negated_view_is_not_its_elements() -> None:
    view = torch.tensor([1.0 + 2.0j]).conj().imag
    assert view.tolist() == [-2.0]
    with pytest.raises(TypeError, match=r"Kernel 'scale': parameter 'x'.*x\.resolve_neg\(\)"):
        scale(torch.zeros(1), view, 1.0)
    with pytest.raises(BufferError, match=r"x\.resolve_neg\(\)"):
        tack.from_dlpack(view)
    assert tack.from_dlpack(view.resolve_neg()).tolist() == [-2.0]


def test_arrays_with_another_default_device(device: tack.Device) -> None:
    x, out = torch.ones(5), torch.zeros(5)
    scale(out, x, 3.0)  # on the CPU, whose memory it is
    assert out.tolist() == [3.0] * 5
    copied = tack.array(x)
    assert copied.device is device and copied.tolist() == [1.0] * 5
    assert torch.from_dlpack(tack.full(3, 2.0).to_device("cpu")).tolist() == [2.0] * 3


# -- operators


def test_an_operator_makes_its_results_and_knows_shapes() -> None:
    op = operator(scale, "(Tensor x, float factor) -> Tensor", name="tack_test::scale")
    x = torch.arange(4.0)
    assert op(x, 2.0).tolist() == [0.0, 2.0, 4.0, 6.0] and x.tolist() == [0.0, 1.0, 2.0, 3.0]
    assert op(x[::2], 1.0).is_contiguous() and op(torch.zeros(3, device="meta"), 1.0).shape == (3,)
    torch.library.opcheck(op, (x, 2.0), test_utils=("test_schema", "test_faketensor"))


def test_an_operator_has_the_gradient_that_it_is_given() -> None:
    op = operator(scale, "(Tensor x, float factor) -> Tensor", name="tack_test::scale_with_gradient")

    def backward(context: Any, grad: Any) -> Any:
        return op(grad, context.factor), None

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.factor = inputs[1]

    op.register_autograd(backward, setup_context=keep)
    x = torch.arange(4.0, dtype=torch.float64, requires_grad=True)
    (op(x, 3.0) * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [3.0, 6.0, 9.0, 12.0]
    assert torch.autograd.gradcheck(lambda t: op(t, 3.0), (x,))


def test_operators_that_write_and_that_make_several_results() -> None:
    increment = operator(add_one_everywhere, "(Tensor(a!) x) -> ()", name="tack_test::increment")
    x = torch.zeros(2, 3)
    assert increment(x) is None and x.tolist() == [[1.0] * 3] * 2

    @tack.kernel
    def parts(low, high, x):
        for i in range(high.shape[0]):
            low[i] = x[i]
            high[i] = x[i + high.shape[0]]

    def half(x: Any) -> Any:
        return x.new_empty(x.shape[0] // 2)

    split = operator(parts, "(Tensor x) -> (Tensor, Tensor)", name="tack_test::parts", outputs={"low": half, "high": half})
    low, high = split(torch.arange(6.0))
    assert low.tolist() == [0.0, 1.0, 2.0] and high.tolist() == [3.0, 4.0, 5.0]


@pytest.mark.parametrize(
    ("schema", "outputs", "message"),
    [
        ("Tensor x", {}, "write for example"),
        ("(Tensor[] x, float factor) -> Tensor", {}, "is no argument that kernels take"),
        ("(Tensor x, float f) -> Tensor", {}, "no parameter 'f'"),
        ("(Tensor x) -> Tensor", {}, "1 results, but the parameters"),
        ("(Tensor x, float factor) -> Tensor", {"out": "factor"}, "names one of the tensors"),
        ("(Tensor x, float factor) -> Tensor", {"y": "x"}, "'y', which is no result"),
    ],
)
def test_schemas_that_do_not_fit_are_refused(schema: str, outputs: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as info:
        operator(scale, schema, outputs=outputs)
    assert "scale" in str(info.value)
