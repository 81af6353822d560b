"""Every kind of mistake: the class of its exception, and what its message says. Refused calls change no array."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tack
from tack.devices import title_of

pytestmark = pytest.mark.usefixtures("device")  # the arrays are made on it


@tack.kernel
def copy(out, data):
    for i in range(out.shape[0]):
        out[i] = data[i]


@tack.kernel
def add(x, n):
    for i in range(x.shape[0]):
        x[i] = x[i] + n


@tack.kernel
def scale(out, x, a=2.0, b=None):
    for i in range(out.shape[0]):
        out[i] = a * x[i]


# -- the call


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: scale(), "scale() missing 2 required positional arguments: 'out' and 'x'"),
        (lambda x: scale(x), "scale() missing 1 required positional argument: 'x'"),
        (lambda x: scale(x, x, 1.0, None, 5), "scale() takes from 2 to 4 positional arguments but 5 were given"),
        (lambda x: copy(x, x, x), "copy() takes 2 positional arguments but 3 were given"),
        (lambda x: scale(x, out=x), "scale() got multiple values for argument 'out'"),
        (lambda x: scale(x, x, c=1), "scale() got an unexpected keyword argument 'c'"),
        (lambda x: copy(x, [1.0]), "Kernel 'copy': parameter 'data' is a list: pass an array, tack.array(...)"),
        (lambda x: copy(x, "text"), "Kernel 'copy': parameter 'data' is a str"),
        (lambda x: copy(x, np.zeros(4, np.float16)), "Kernel 'copy': parameter 'data' is a NumPy array of dtype float16"),
        (lambda x: copy(x, 1j), "Kernel 'copy': parameter 'data' is complex"),
    ],
)
@pytest.mark.parametrize("how", ["call", "inspect"])
def test_wrong_arguments_are_type_errors(call: Callable[[Any], Any], message: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tack.full(4, 3.0)
    if how == "inspect":  # the same checks and words
        for name in ("copy", "scale"):
            kernel = globals()[name]
            monkeypatch.setitem(globals(), name, lambda *args, kernel=kernel, **kwargs: tack.inspect(kernel, *args, **kwargs))
    with pytest.raises(TypeError, match="^" + re.escape(message)):
        call(x)
    assert x.tolist() == [3.0] * 4


def test_keywords_and_defaults() -> None:
    x, out = tack.ones(3), tack.zeros(3)
    scale(x=x, out=out)
    assert out.tolist() == [2.0] * 3
    scale(out, a=5, x=x)
    assert out.tolist() == [5.0] * 3


@pytest.mark.parametrize(
    ("value", "words"),
    [(200, "tack.i8"), (-129, "tack.i8"), (2**63, ""), (2**64, "64 bits"), (-(2**63) - 1, "64 bits")],
    ids=["i8", "i8 below", "u64", "above", "below"],
)
def test_integers_that_do_not_fit_are_overflow_errors(value: int, words: str) -> None:
    x = tack.ones(3, tack.i8)
    with pytest.raises(OverflowError) as info:
        add(x, value)
    assert "Kernel 'add'" in str(info.value) and "'n'" in str(info.value) and str(value) in str(info.value) and words in str(info.value)
    assert x.tolist() == [1, 1, 1]
    add(x, -1)
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "bad",
    [np.zeros(4, ">f4"), np.zeros(17, np.uint8)[1:].view(np.float32), np.zeros(4, [("a", "f4"), ("b", "i2")])["a"]],
    ids=["swapped", "misaligned", "odd strides"],
)
def test_numpy_arrays_that_cannot_be_used_in_place(bad: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"Kernel 'copy': parameter 'data'.*np\.ascontiguousarray"):
        copy(tack.zeros(4), bad)


def test_read_only_arrays_are_refused_where_the_kernel_writes() -> None:
    frozen = np.ones(4, np.float32)
    frozen.flags.writeable = False
    out = np.zeros(4, np.float32)
    copy(out, frozen)
    assert out.tolist() == [1.0] * 4
    for array in (frozen, tack.asarray(frozen)):
        with pytest.raises(ValueError, match="Kernel 'copy'.*read-only"):
            copy(array, out)


# -- the text


def text_error(kernel: Any, *args: Any) -> tack.CompileError:
    """The error of a call, which inspect gives as well; it shows the place."""
    with pytest.raises(tack.CompileError) as info:
        kernel(*args)
    with pytest.raises(type(info.value), match=re.escape(str(info.value))):
        tack.inspect(kernel, *args)
    error = info.value
    assert error.kernel == kernel.__name__ and f"Kernel '{kernel.__name__}'" in str(error)
    assert error.file == __file__ and error.line is not None and error.column is not None
    shown = str(error).split("\n")
    place = shown.index(f'  File "{__file__}", line {error.line}')
    line = Path(__file__).read_text().split("\n")[error.line - 1]
    assert shown[place + 1].strip() == line.strip() and "^" in shown[place + 2]
    return error


def test_a_construct_outside_the_language() -> None:
    @tack.kernel
    def k(x):
        y = [i for i in range(3)]

    error = text_error(k, tack.zeros(3))
    assert isinstance(error, NotImplementedError) and "local_array" in str(error)


def test_an_unknown_name() -> None:
    @tack.kernel
    def k(x):
        for i in range(x.shape[0]):
            x[i] = sqrt(x[i])  # noqa: F821

    error = text_error(k, tack.zeros(3))
    assert isinstance(error, NameError) and "tack.sqrt" in str(error)


def test_a_name_that_may_be_unbound() -> None:
    @tack.kernel
    def k(x):
        for i in range(x.shape[0]):
            if x[i] > 0.0:
                y = 1.0
            x[i] = y

    error = text_error(k, tack.zeros(3))
    assert isinstance(error, NameError) and "'y'" in str(error)


def test_types_that_do_not_join() -> None:
    @tack.kernel
    def k(x, a, b):
        for i in range(x.shape[0]):
            x[i] = a[i] + b[i]

    error = text_error(k, tack.zeros(3), tack.zeros(3, tack.u64), tack.zeros(3, tack.i32))
    assert isinstance(error, TypeError) and "u64" in str(error)


def test_a_float_in_an_integer_array() -> None:
    @tack.kernel
    def k(x):
        for i in range(x.shape[0]):
            x[i] = 0.5

    error = text_error(k, tack.zeros(3, tack.i32))
    assert isinstance(error, TypeError) and "int(" in str(error)


def test_a_wrong_number_of_indices() -> None:
    error = text_error(copy, tack.zeros((3, 3)), tack.zeros(3))
    assert isinstance(error, TypeError) and "x[i, j]".replace("x", "out") in str(error) and ".flat[i]" in str(error)


def test_an_error_in_a_func_shows_the_call() -> None:
    @tack.func
    def helper(v):
        return v + unknown  # noqa: F821

    @tack.kernel
    def k(x):
        for i in range(x.shape[0]):
            x[i] = helper(x[i])

    error = text_error(k, tack.zeros(3))
    assert isinstance(error, NameError) and "'helper'" in str(error) and "called at" in str(error)


def test_loop_bounds_of_an_arrays_content() -> None:
    @tack.kernel
    def k(x, n):
        for i in range(n[0]):
            x[i] = 1.0

    assert "n = int(a[0])" in str(text_error(k, tack.zeros(3), tack.ones(1, tack.i32)))


def test_a_failed_compile_leaves_everything_usable() -> None:
    x = tack.ones(3)
    for _ in range(2):
        with pytest.raises(tack.CompileError):
            copy(tack.zeros((3, 3)), x)
        copy(x, x)


# -- no source


def test_no_source_says_what_to_do() -> None:
    namespace: dict[str, Any] = {}
    exec("import tack\n@tack.kernel\ndef k(x):\n    x[0] = 1\n", namespace)
    for call in (namespace["k"], lambda x: tack.inspect(namespace["k"], x)):
        with pytest.raises(tack.CompileError, match=r"Kernel 'k': its source text is not available.*\.py file or a notebook cell"):
            call(tack.zeros(1))


def test_a_func_without_source_is_named() -> None:
    namespace: dict[str, Any] = {}
    exec("import tack\n@tack.func\ndef hidden(v):\n    return v\n", namespace)
    hidden = namespace["hidden"]

    @tack.kernel
    def k(x):
        x[0] = hidden(x[0])

    with pytest.raises(tack.CompileError, match="Kernel 'k': the function 'hidden' that it calls: its source"):
        k(tack.zeros(1))


# -- workgroups on the CPU

WORKGROUP = ["shared", "shared_like", "barrier", "thread_id", "block_id", "block_dim", "block_sum", "block_min", "block_max"]


def workgroup_kernels() -> dict[str, Any]:
    @tack.kernel
    def dead(x):
        for i in range(x.shape[0]):
            x[i] = 1.0
            if False:
                tack.barrier()

    @tack.func
    def helper():
        tack.barrier()
        return 1.0

    @tack.kernel
    def through_a_func(x):
        for i in range(x.shape[0]):
            x[i] = helper()

    wait = tack.barrier

    @tack.kernel
    def through_an_alias(x):
        for i in range(x.shape[0]):
            wait()

    @tack.kernel
    def shared(x):
        for i in range(x.shape[0]):
            s = tack.shared(tack.f32, 256)

    @tack.kernel
    def shared_like(x):
        for i in range(x.shape[0]):
            s = tack.shared_like(x, 256)

    @tack.kernel
    def thread_id(x):
        for i in range(x.shape[0]):
            x[i] = tack.thread_id()

    @tack.kernel
    def block_sum(x):
        for i in range(x.shape[0]):
            x[i] = tack.block_sum(x[i])

    return {name: value for name, value in locals().items() if name not in ("helper", "wait")}


@pytest.mark.needs("no workgroups")
@pytest.mark.parametrize("name", workgroup_kernels())
def test_workgroup_functions_are_refused_before_anything_is_compiled_or_run(name: str) -> None:
    kernel = workgroup_kernels()[name]
    x = tack.full(4, 7.0)
    d = x.device
    before = d.compiled, d.loaded
    with pytest.raises(RuntimeError, match=f"Kernel '{name}' uses tack\\..*not supported on {title_of(d.type)}.*tack.local_array") as info:
        kernel(x)
    assert not isinstance(info.value, NotImplementedError)
    with pytest.raises(NotImplementedError, match=f"Kernel '{name}' uses tack\\..*not supported on {title_of(d.type)}"):
        tack.inspect(kernel, x)
    assert (d.compiled, d.loaded) == before and x.tolist() == [7.0] * 4


def test_all_workgroup_functions_are_known() -> None:
    from tack.intrinsics import WORKGROUP as KNOWN

    assert set(WORKGROUP) == KNOWN


# -- launches


def test_a_launch_past_the_limit_is_a_value_error() -> None:
    @tack.kernel
    def k(x, n):
        for i, j in tack.ndrange(n, n):
            x[0] = 1.0

    x = tack.zeros(1)
    title = title_of(x.device.type)
    with pytest.raises(ValueError, match=rf"Kernel 'k': .*iterations; the limit on {title} is .*Split the work across several calls\."):
        k(x, 2**33)
    assert x[0] == 0.0
    k(x, -3)
    assert x[0] == 0.0, "an empty launch does nothing"
    k(x, 2)
    assert x[0] == 1.0


# -- decorators and inspect


def test_unknown_options_and_modes_list_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"'blok'.*block=, fast_math=, exact=, simd="):
        tack.kernel(blok=3)
    with pytest.raises(ValueError, match=r"'ptx'.*'ir', 'source', 'optimized', 'asm', 'schedule'"):
        tack.inspect(copy, tack.zeros(1), tack.zeros(1), mode="ptx")
    with pytest.raises(TypeError, match=r"@tack\.kernel"):
        tack.inspect(len)


@pytest.mark.parametrize("options", [{"block": 0}, {"block": 2000}, {"simd": 3}, {"simd": 0}, {"fast_math": True, "exact": True}], ids=str)
def test_option_values_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="@tack.kernel"):
        tack.kernel(**options)


@pytest.mark.parametrize("options", [{"block": "2"}, {"fast_math": 1}, {"exact": None}, {"simd": True}], ids=str)
def test_option_types_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="@tack.kernel"):
        tack.kernel(**options)


def test_signatures_that_kernels_cannot_have() -> None:
    def star(*xs):
        pass

    def stars(**xs):
        pass

    def generator(x):
        yield x

    async def coroutine(x):
        pass

    for function in (star, stars, generator, coroutine):
        with pytest.raises(tack.CompileError, match=f"Kernel '{function.__name__}'") as info:
            tack.kernel(function)
        assert isinstance(info.value, NotImplementedError)


@pytest.mark.parametrize("mode", ["ir", "source", "optimized", "asm", "schedule"])
def test_inspect_answers_text_and_launches_nothing(mode: str) -> None:
    x = tack.zeros(4)
    if mode in ("optimized", "asm") and x.device.type not in ("cpu", "cuda"):
        with pytest.raises(ValueError, match=f"has no mode '{mode}' on .*: its compiler writes no text"):
            tack.inspect(copy, x, tack.ones(4), mode=mode)
        assert x.tolist() == [0.0] * 4
        return
    text = tack.inspect(copy, x, tack.ones(4), mode=mode)
    assert isinstance(text, str) and x.tolist() == [0.0] * 4
    assert "copy" in text or (mode in ("optimized", "asm") and text.startswith("// simulated PTX"))
    assert isinstance(tack.inspect(copy, tack.f32[:], data=tack.i16[:], mode=mode), str)


def test_inspect_shows_the_source_by_default() -> None:
    assert tack.inspect(copy, tack.f32[:], tack.f32[:]) == tack.inspect(copy, tack.f32[:], tack.f32[:], mode="source")
    word = "define" if tack.get_default_device().type == "cpu" else "copy"
    assert word in tack.inspect(copy, tack.f32[:], tack.f32[:])
