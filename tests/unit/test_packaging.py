"""The distribution: what it needs, what it installs, and that what it installs works from wherever it lies, for Python and for C++."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tack
from tack import _runtime

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(_runtime.__file__).parent  # an editable install has its Python files elsewhere
LIBRARY = PACKAGE / "lib" / {"win32": "tack.dll", "darwin": "libtack.dylib"}.get(sys.platform, "libtack.so")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="module")
def installed() -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution("tack-core")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("tack-core is not installed: tack was found on PYTHONPATH")


def test_what_it_is_and_needs(installed: importlib.metadata.Distribution) -> None:
    meta = installed.metadata
    assert meta["Name"] == "tack-core"
    assert installed.version == tack.__version__ == _runtime.VERSION
    assert meta["License-Expression"] == "BSD-3-Clause"
    assert meta["Requires-Python"] == ">=3.11"
    plain = [r for r in installed.requires or [] if "extra ==" not in r]
    assert sorted(re.split(r"[^a-z]", r)[0] for r in plain) == ["llvmlite", "numpy"]


def test_the_extras_of_the_documentation(installed: importlib.metadata.Distribution) -> None:
    extras = set(installed.metadata.get_all("Provides-Extra") or [])
    assert extras >= {"cpu", "cuda", "hip", "metal", "demo", "test", "bench"}
    needs = {e: [r for r in installed.requires or [] if re.search(rf"extra == ['\"]{e}['\"]", r)] for e in extras}
    assert needs["cpu"] == needs["hip"] == needs["metal"] == []
    assert [r.split(";")[0].strip() for r in needs["cuda"]] == ["nvidia-cuda-nvrtc>=13"]


def test_the_build_is_the_one_that_was_asked_for(project: dict[str, Any]) -> None:
    assert project["build-system"]["build-backend"] == "scikit_build_core.build"
    build = project["tool"]["scikit-build"]
    assert build["wheel"]["py-api"] == "cp312"
    (override,) = build["overrides"]
    assert override["if"]["state"] == "editable"
    assert override["editable"]["rebuild"] is True
    assert build["build-dir"]  # without one nothing can be rebuilt


def test_the_module_has_the_stable_abi_from_python_312_on(installed: importlib.metadata.Distribution) -> None:
    name = Path(_runtime.__file__).name
    stable = sys.version_info >= (3, 12) and sysconfig.get_config_var("Py_GIL_DISABLED") != 1
    if sys.platform == "win32":
        assert name == "_runtime.pyd" if stable else name.startswith("_runtime.cp")
    else:
        assert (".abi3." in name) == stable
    wheel = installed.read_text("WHEEL") or ""
    assert ("cp312-abi3" if stable else f"cp{sys.version_info[0]}{sys.version_info[1]}") in wheel


def test_everything_is_in_the_package(installed: importlib.metadata.Distribution) -> None:
    assert LIBRARY.is_file()
    assert (Path(tack.__file__).parent / "py.typed").is_file()
    assert (PACKAGE / "lib/cmake/tack/tackConfig.cmake").is_file()
    headers = {p.name for p in (ROOT / "cpp/include/tack").iterdir()}
    assert {p.name for p in (PACKAGE / "include/tack").iterdir()} == headers
    assert len(list((PACKAGE / "lib").glob("*tack*"))) == 1  # one library, not one for each of its names
    assert any(p.name == "LICENSE" for p in installed.files or [])


def test_libtack_has_no_python_in_it(installed: importlib.metadata.Distribution) -> None:
    symbols = LIBRARY.read_bytes()
    for name in (b"PyObject_", b"PyErr_", b"PyGILState_", b"_Py_"):
        assert name not in symbols
        assert name in Path(_runtime.__file__).read_bytes() or name == b"PyGILState_"  # the search does find such names


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc and ELF files")
def test_it_runs_from_wherever_it_lies(installed: importlib.metadata.Distribution, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "tack"
    shutil.copytree(Path(tack.__file__).parent, moved, ignore=shutil.ignore_patterns("__pycache__"))
    if PACKAGE != Path(tack.__file__).parent:
        shutil.copytree(PACKAGE, moved, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    program = [
        "import sys",
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in type(f).__module__]",
        f"sys.path.insert(0, {str(moved.parent)!r})",
        "import tack",
        "print(tack.__file__)",
        "print(*{line.split()[-1] for line in open('/proc/self/maps') if 'libtack' in line})",
    ]
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    done = subprocess.run([sys.executable, "-c", "\n".join(program)], env=env, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == [str(moved / "__init__.py"), str(moved / "lib/libtack.so")]
    assert b"$ORIGIN/lib" in (moved / Path(_runtime.__file__).name).read_bytes()


def declared(body: list[ast.stmt]) -> set[str]:
    """The names that a stub's module or class declares."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def test_the_stub_has_everything_and_keeps_the_docs() -> None:
    stub = next((p for p in (PACKAGE / "_runtime.pyi", Path(tack.__file__).parent / "_runtime.pyi") if p.exists()), None)
    assert stub is not None
    tree = ast.parse(stub.read_text("utf-8"))
    public = {n for n in dir(_runtime) if not n.startswith("_")}
    assert public <= declared(tree.body)
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert {"Array", "Device", "Dispatcher", "Kernel"} <= classes.keys()
    for name in ("Array", "Device", "Dispatcher", "Kernel"):
        members = {m for m in vars(getattr(_runtime, name)) if not m.startswith("_")}
        assert members <= declared(classes[name].body), name
        assert ast.get_docstring(classes[name])
    for name, function in inspect.getmembers(_runtime, callable):
        if not name.startswith("_") and not isinstance(function, type):
            assert function.__doc__, name


HOST = """
#include <cstdio>
#include "tack/runtime.hpp"
#include "tack/tack.h"
int main() {
  const auto runtime = tack::Runtime::create(tack::Config{});
  std::printf("%s %s\\n", TACK_VERSION, runtime->device("cpu")->name().c_str());
}
"""


def test_a_cpp_program_finds_the_installed_library(installed: importlib.metadata.Distribution, tmp_path: Path) -> None:
    cmake, compiler = shutil.which("cmake"), shutil.which(os.environ.get("CXX") or "c++")
    if cmake is None or compiler is None:
        pytest.skip("needs cmake and a C++ compiler on PATH")
    if shutil.which("ninja") is None and shutil.which("make") is None:
        pytest.skip("needs ninja or make on PATH")
    (tmp_path / "host.cpp").write_text(HOST, "utf-8")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(host LANGUAGES CXX)\nfind_package(tack REQUIRED)\n"
        "add_executable(host host.cpp)\ntarget_link_libraries(host PRIVATE tack::tack)\n",
        "utf-8",
    )
    build = tmp_path / "build"
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    for command in (
        ["-S", str(tmp_path), "-B", str(build), *generator, f"-Dtack_DIR={PACKAGE / 'lib/cmake/tack'}"],
        ["--build", str(build)],
    ):
        done = subprocess.run([cmake, *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    printed = subprocess.run([str(build / "host")], capture_output=True, text=True, check=True).stdout
    assert printed.split() == [_runtime.VERSION, "cpu"]
