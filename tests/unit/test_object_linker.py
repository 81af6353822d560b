"""Machine code that is not ELF: compiled and linked by LLVM, run and freed by the runtime. Each test is a process of its own, for LLVM's
linkers are not made for damage and mistakes."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FORMATS = ["mach-o", "coff"]

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64") or sys.platform == "win32",
    reason="the test's Mach-O and COFF code is for x86-64 with the calling convention of Linux and macOS",
)


def python(code: str, **env: str) -> str:
    """Runs a program that knows foreign_objects and the conformance suite's programs, and answers what it prints."""
    path = os.pathsep.join([str(HERE), str(HERE.parent / "conformance"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": path, "TACK_CACHE": "0", **env},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


RUN_PROGRAMS = """
import foreign_objects
import tack
from programs import PROGRAMS, variant
from test_programs import compare, made
import numpy as np

foreign_objects.install(FORMAT)
for program in PROGRAMS:
    for dtype in program.dtypes:
        kernel = variant(program.kernel, exact=program.name == "mandelbrot")
        args, expected = made(program, dtype, 20_000)
        arrays = [tack.array(a) if isinstance(a, np.ndarray) else a for a in args]
        kernel(*arrays)
        for position, want in expected.items():
            compare(program, arrays[position].numpy(), want)
cpu = tack.device("cpu")
print(len(foreign_objects.linked) > 20, cpu.compiled, cpu.loaded)
"""


@pytest.mark.parametrize("form", FORMATS)
def test_the_eleven_programs(form: str) -> None:
    good, compiled, loaded = python(f"FORMAT = {form!r}\n{RUN_PROGRAMS}").split()
    assert good == "True"
    assert int(compiled) > 20
    assert loaded == "0"


@pytest.mark.parametrize("form", FORMATS)
def test_a_later_process_links_what_the_first_has_compiled(form: str, tmp_path: Path) -> None:
    program = tmp_path / "kernel_of_two_processes.py"
    program.write_text(
        textwrap.dedent(f"""
            import foreign_objects, tack
            foreign_objects.install({form!r})
            @tack.kernel
            def double(x):
                for i in range(x.shape[0]):
                    x[i] = x[i] * 2.0
            x = tack.ones(100)
            double(x)
            assert x.tolist() == [2.0] * 100
            print(foreign_objects.compiled, foreign_objects.linked)
        """),
        "utf-8",
    )
    run = f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')"
    cache = {"TACK_CACHE": "1", "TACK_CACHE_DIR": str(tmp_path / "cache")}
    assert python(run, **cache) == "['double'] ['double']\n"
    assert python(run, **cache) == "[] ['double']\n"


HAND = """
import gc, threading
import foreign_objects, hand_kernels, tack
from tack import _runtime
from tack.errors import CompileError
cpu = _runtime.device("cpu")
out = tack.zeros(4)
foreign_objects.install(FORMAT)
"""


@pytest.mark.parametrize("form", FORMATS)
def test_code_is_freed_with_its_kernel(form: str) -> None:
    code = """
    kernels = [hand_kernels.fill(cpu, float(value)) for value in range(50)]
    for value, kernel in enumerate(kernels):
        kernel.launch([out])
        assert out.tolist() == [float(value)] * 4
    del kernel
    assert all(owner() is not None for owner in foreign_objects.owners)
    kept = kernels[7]
    kernels.clear()
    gc.collect()
    print([i for i, owner in enumerate(foreign_objects.owners) if owner() is not None])
    kept.launch([out])
    assert out.tolist() == [7.0] * 4
    # The last reference goes on a thread that Python did not start a kernel on.
    box = [kept]
    del kept
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gc.collect()
    print([owner() for owner in foreign_objects.owners if owner() is not None])
    """
    assert python(f"FORMAT = {form!r}\n{HAND}{textwrap.dedent(code)}") == "[7]\n[]\n"


def test_what_the_linker_raises_is_raised_by_build_and_all_stays_usable() -> None:
    code = """
    working = foreign_objects.link_object
    class Mine(Exception): pass
    def fails(*args): raise Mine("text")
    _runtime.set_object_linker(fails)
    try:
        hand_kernels.fill(cpu, 1.0)
    except Mine as e:
        print("Mine:", e)
    _runtime.set_object_linker(lambda *args: 3)
    try:
        hand_kernels.fill(cpu, 1.0)
    except TypeError as e:
        print(e)
    _runtime.set_object_linker(lambda *args: ([0], None))
    try:
        hand_kernels.fill(cpu, 1.0)
    except RuntimeError as e:
        print(e)
    foreign_objects.install(FORMAT)
    hand_kernels.fill(cpu, 5.0).launch([out])
    assert out.tolist() == [5.0] * 4
    """
    lines = python(f"FORMAT = 'mach-o'\n{HAND}{textwrap.dedent(code)}").splitlines()
    assert lines[:2] == ["Mine: text", "the linker must answer (addresses, owner): a list of ints, and an object that keeps the code"]
    assert "'fill'" in lines[2]
    assert "has no function" in lines[2]


@pytest.mark.parametrize("form", FORMATS)
def test_outside_symbols_are_the_runtimes_and_no_others(form: str) -> None:
    # At a distance that no near call spans: the code must reach it all the same.
    code = """
    import ctypes, mmap
    from tack.runtime.llvm_compiler import compile_ir, link_object
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    far = libc.mmap(0x100000000000, 4096, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    ctypes.memmove(far, bytes.fromhex("f20f58c0c3"), 5)  # addsd xmm0, xmm0; ret
    triple = foreign_objects.TRIPLES[FORMAT]
    call = "x86_64_sysvcc" if FORMAT == "coff" else ""
    text = f'''
    declare {call} double @NAME(double)
    define {call} double @f(double %x) nounwind {{
      %r = call {call} double @NAME(double %x)
      %s = fadd double %r, 0.125
      ret double %s
    }}
    '''
    given = []
    def link(name, code, functions, imports):
        given.append(imports)
        return link_object(name, code, functions, imports, triple)
    _runtime.set_object_linker(link)
    hand_kernels.fill(cpu, 1.0)
    (imports,) = given
    assert {"memcpy", "fmod", "exp10f", "erf"} <= imports.keys() and all(imports.values())
    object_code = compile_ir("k", text.replace("NAME", "erf"), "x86-64-v2", 2, "object", triple)
    (address,), owner = link_object("k", object_code, ["f"], {**imports, "erf": far}, triple)
    print(ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(21.0))
    del owner
    object_code = compile_ir("k", text.replace("NAME", "system"), "x86-64-v2", 2, "object", triple)
    for functions, code in ((["f"], object_code), (["g"], object_code), (["f"], object_code[:200]), (["f"], b"")):
        try:
            link_object("k", code, functions, imports, triple)
        except CompileError as e:
            assert "'k'" in str(e)
            print("refused")
    """
    assert python(f"FORMAT = {form!r}\n{HAND}{textwrap.dedent(code)}") == "42.125\n" + 4 * "refused\n"
