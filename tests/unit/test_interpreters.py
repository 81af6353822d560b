"""Other ways to run Python: under the thread sanitizer, and without the GIL. Both build the module anew, and run with --long."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="Linux only")]

# Kernels, arrays, waits and frees on eight threads, on devices with one thread and with two; a first call and a changed global under way.
THREADS = """
    import asyncio, gc, sys, threading
    import numpy as np
    import tack

    FACTOR = 2

    @tack.kernel
    def scale(out, x, n):
        for i in range(x.shape[0]):
            out[i] = x[i] * FACTOR + n

    @tack.kernel
    def total(x):
        s = tack.i64(0)
        for i in range(x.shape[0]):
            s += x[i]
        return s

    devices = [tack.device("cpu"), tack.device("cpu", num_threads=2), tack.device("cpu", num_threads=1)]
    common = tack.arange(1000, dtype=tack.i64)
    failures = []

    def work(n):
        try:
            for step in range(40):
                with devices[(n + step) % 3] as device:
                    x = tack.full(100 + 40_000 * (step % 2), n, dtype=tack.i64)
                    out = tack.empty_like(x)
                    scale(out, x, step)
                    assert out[x.size - 1] in (2 * n + step, 3 * n + step), (out[0], n, step)
                    assert total(common) == 499500
                    host = np.zeros(x.shape, np.int64)
                    scale(host, out, 0)
                    tack.copyto(out, host)
                    tack.from_dlpack(out)[0] = 5
                    assert out[0] == 5
                    if step % 8 == n:
                        device.trim()
                    if step % 10 == 0:
                        tack.sync()
                    if step == 20 and n == 3:
                        globals()["FACTOR"] = 3
        except BaseException as failure:
            failures.append(repr(failure))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()

    async def waits():
        await asyncio.gather(*(tack.sync_async() for _ in range(20)), *(common.numpy_async() for _ in range(20)))

    asyncio.run(waits())
    for thread in threads:
        thread.join()
    gc.collect()
    print(failures or "right", sys._is_gil_enabled() if hasattr(sys, "_is_gil_enabled") else True)
"""


def build_of(python: str, folder: Path, *options: str) -> Path:
    """The package in ``folder``, with a module built for ``python``."""
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")])
    for program in ("cmake", "ninja"):
        if shutil.which(program, path=path) is None:
            pytest.skip(f"needs {program}")
    launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    nanobind = subprocess.run([sys.executable, "-m", "nanobind", "--cmake_dir"], capture_output=True, text=True)
    if nanobind.returncode != 0:
        pytest.skip("needs nanobind")
    build = folder / "build"
    cmake = str(shutil.which("cmake", path=path))
    configure = [cmake, "-S", str(ROOT), "-B", str(build), "-G", "Ninja", "-DTACK_PYTHON=ON", "-DTACK_BUILD_TESTS=OFF", *launcher]
    configure += [f"-DPython_EXECUTABLE={python}", f"-Dnanobind_DIR={nanobind.stdout.strip()}", *options]
    for command in (configure, [cmake, "--build", str(build), "--target", "_runtime", "-j", "2"]):
        done = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True)
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    package = folder / "package" / "tack"
    shutil.copytree(ROOT / "python/tack", package, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.pyi"))
    for library in [*build.rglob("_runtime*.so"), *build.rglob("libtack.so*")]:
        shutil.copy2(library, package)
    (package / "lib").mkdir()
    for library in build.rglob("libtack.so*"):
        shutil.copy2(library, package / "lib")
    return package.parent


def test_threads_under_the_thread_sanitizer(tmp_path: Path) -> None:
    """The runtime and the module are instrumented; the interpreter is the ordinary one, whose GIL the sanitizer sees as a lock."""
    found = subprocess.run(["g++", "-print-file-name=libtsan.so"], capture_output=True, text=True) if shutil.which("g++") else None
    if found is None or not Path(found.stdout.strip()).is_file():
        pytest.skip("needs g++ with libtsan")
    package = build_of(sys.executable, tmp_path, "-DTACK_SANITIZE=thread", "-DCMAKE_BUILD_TYPE=RelWithDebInfo")
    program = tmp_path / "threads.py"
    program.write_text(textwrap.dedent(THREADS))
    ignored = tmp_path / "ignored.txt"
    # LLVM is not instrumented; and the memory of a thread's locals is the loader's, which hands it to the next thread.
    ignored.write_text("called_from_lib:libllvmlite.so\nrace:_dl_deallocate_tls\n")
    python = os.path.realpath(sys.executable)  # not a launcher that starts another
    environment = {
        **os.environ,
        "LD_PRELOAD": found.stdout.strip(),
        "PYTHONPATH": os.pathsep.join([str(package), *(p for p in sys.path if p.endswith("site-packages"))]),
        "TACK_CACHE_DIR": str(tmp_path / "cache"),
        "TSAN_OPTIONS": f"suppressions={ignored} exitcode=66 halt_on_error=0",
        "OPENBLAS_NUM_THREADS": "1",
    }
    run = subprocess.run([python, "-S", str(program)], env=environment, capture_output=True, text=True, timeout=1200)
    assert "WARNING: ThreadSanitizer" not in run.stderr, run.stderr[:6000]
    assert run.returncode == 0 and run.stdout.startswith("right"), (run.returncode, run.stdout, run.stderr[-3000:])


def free_threaded() -> str:
    """A CPython without the GIL, with NumPy; or a skip that says what is missing."""
    for name in ("python3.14t", "python3.13t"):
        python = shutil.which(name)
        if python is None:
            continue
        probe = "import sysconfig, numpy; assert sysconfig.get_config_var('Py_GIL_DISABLED') == 1"
        done = subprocess.run([python, "-c", probe], capture_output=True, text=True)
        if done.returncode == 0:
            return python
        pytest.skip(f"{python} cannot be used: {done.stderr.strip().splitlines()[-1]}")
    pytest.skip("no free-threaded CPython on PATH (python3.14t or python3.13t with numpy and llvmlite)")


def test_threads_without_the_gil(tmp_path: Path) -> None:
    python = free_threaded()
    package = build_of(python, tmp_path)
    program = tmp_path / "threads.py"
    program.write_text(textwrap.dedent(THREADS))
    environment = {**os.environ, "PYTHONPATH": str(package), "TACK_CACHE_DIR": str(tmp_path / "cache")}
    run = subprocess.run([python, str(program)], env=environment, capture_output=True, text=True, timeout=600)
    assert run.stdout == "right False\n", run.stderr
