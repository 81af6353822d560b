"""Builds the driver stand-ins for tests and answers the environment that puts a process on them.

``environment("cuda")`` builds what is not yet built, once for all sessions on this machine that have the same sources, and returns the
variables to set. `python tests/simulators/standins.py cuda COMMAND ...` runs a command with them. docs/testing.md tells the settings.
"""

from __future__ import annotations

import ctypes
import getpass
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FLAGS = "-std=c++20 -O2 -g1 -fPIC -fvisibility=hidden -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror".split()
# The stand-in libraries: their file's name, and the sources of the front. Each has the whole engine in it.
LIBRARIES = {
    "level_zero": {
        "libze_loader.so.1": [
            "level_zero/driver.cpp",
            "level_zero/commands.cpp",
            "level_zero/module.cpp",
            "level_zero/image.cpp",
            "level_zero/faults.cpp",
            "level_zero/opencl.cpp",
        ],
        "libocloc-counted.so": ["level_zero/ocloc.cpp"],
    },
    "cuda": {
        "libcuda.so.1": [
            "cuda/context.cpp",
            "cuda/memory.cpp",
            "cuda/stream.cpp",
            "cuda/module.cpp",
            "cuda/image.cpp",
            "cuda/texture.cpp",
            "cuda/entry.cpp",
        ],
        "libnvrtc.so.13": ["cuda/nvrtc.cpp", "cuda/image.cpp"],
    },
    # HIP's over CUDA's, as HIP itself where the GPU is NVIDIA's.
    "hip": {
        "libamdhip64.so.7": [
            "cuda/context.cpp",
            "cuda/memory.cpp",
            "cuda/stream.cpp",
            "cuda/module.cpp",
            "cuda/image.cpp",
            "cuda/texture.cpp",
            "hip/runtime.cpp",
        ],
        "libhiprtc.so.7": ["hip/hiprtc.cpp", "cuda/image.cpp"],
    },
    "metal": {"libtackmetal.so": ["metal/api.cpp", "metal/commands.cpp", "metal/msl.cpp"]},
}
VARIABLES = {
    "libcuda.so.1": "TACK_LIBCUDA",
    "libnvrtc.so.13": "TACK_LIBNVRTC",
    "libamdhip64.so.7": "TACK_LIBHIP",
    "libhiprtc.so.7": "TACK_LIBHIPRTC",
    "libtackmetal.so": "TACK_LIBMETAL",
}
# Metal has no C interface: its stand-in has the functions that tack's own Objective-C++ file has.
METAL_API = ROOT / "cpp/src/backends/metal"
VARIABLES |= {"libze_loader.so.1": "TACK_LIBZE", "libocloc-counted.so": "TACK_LIBOCLOC"}


class Unavailable(Exception):
    """This machine cannot build the stand-ins; says why."""


def folder() -> Path:
    """Where everything built lies: one folder for each state of the sources and each compiler."""
    base = Path(os.environ.get("TACK_TEST_BUILD", tempfile.gettempdir())) / f"tack-simulators-{getpass.getuser()}"
    digest = hashlib.sha256(json.dumps([FLAGS, compiler(), sys.platform, LIBRARIES]).encode())
    used = [*HERE.rglob("*"), *(ROOT / "third_party").rglob("*.h"), METAL_API / "metal_api.h", METAL_API / "metal.def"]
    for path in sorted(p for p in used if p.suffix in {".cpp", ".h", ".def"}):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return base / digest.hexdigest()[:16]


def compiler() -> str:
    found = shutil.which(os.environ.get("CXX", "g++"))
    if sys.platform != "linux" or found is None:
        raise Unavailable("needs Linux and a C++ compiler (g++)")
    return found


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def _compile(source: Path, output: Path, flags: list[str]) -> None:
    ccache = [found] if (found := shutil.which("ccache")) else []
    _run([*ccache, compiler(), *flags, "-I", str(ROOT / "third_party"), "-I", str(ROOT / "cpp/src"), "-c", str(source), "-o", str(output)])


def build(kind: str) -> Path:
    """The folder with the built libraries of a kind ("cuda"). Another process that builds the same at the same time does no harm."""
    target = folder() / kind
    if (target / "done").exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    (folder() / "objects").mkdir(exist_ok=True)
    for old in folder().parent.iterdir():  # of sources that have changed since
        if old != folder() and time.time() - old.stat().st_mtime > 86400:
            shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as temporary:
        work = Path(temporary) / kind
        work.mkdir()
        engine = sorted((HERE / "engine").glob("*.cpp"))
        fronts = sorted({HERE / source for sources in LIBRARIES[kind].values() for source in sources})
        jobs = [(source, work / f"{source.parent.name}-{source.stem}.o", FLAGS) for source in [*engine, *fronts]]
        jobs.append(
            (
                HERE / "device/hooks.cpp",
                work / "hooks.o",
                ["-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"],
            )
        )
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for made in [pool.submit(_compile, *job) for job in jobs]:
                made.result()
        for name, sources in LIBRARIES[kind].items():
            objects = [str(work / f"{p.parent.name}-{p.stem}.o") for p in [*engine, *(HERE / source for source in sources)]]
            _run(
                [
                    compiler(),
                    "-shared",
                    "-Wl,-Bsymbolic",
                    "-Wl,-z,defs",
                    f"-Wl,-soname,{name}",
                    "-o",
                    str(work / name),
                    *objects,
                    "-ldl",
                    "-lpthread",
                ]
            )
        for header in (HERE / "device").glob("*.h"):
            shutil.copy(header, work)
        runtime = subprocess.run([compiler(), "-print-libgcc-file-name"], capture_output=True, text=True, check=True)
        (work / "libgcc.a").symlink_to(runtime.stdout.strip())
        (work / "done").touch()
        try:
            work.rename(target)
        except OSError:
            if not (target / "done").exists():
                raise
    return target


def environment(kind: str, **settings: object) -> dict[str, str]:
    """The variables that make tack use the stand-ins; keyword settings become TACK_SIM_* variables: order="delayed", devices=2."""
    libraries = build(kind)
    variables = {VARIABLES[name]: str(libraries / name) for name in LIBRARIES[kind]}
    variables |= {"TACK_SIM_SUPPORT": str(libraries), "TACK_SIM_CACHE": str(folder() / "objects"), "TACK_SIM_CXX": compiler()}
    if kind == "level_zero":
        variables["TACK_SIM_OPENCL"] = opencl()
    return variables | {f"TACK_SIM_{name.upper()}": str(value) for name, value in settings.items()}


def opencl() -> str:
    """Intel's OpenCL runtime for CPUs, which runs the kernels of Level Zero's stand-in: what ocloc makes of them."""
    try:
        files = metadata.files("intel-opencl-rt") or []
        metadata.version("intel-cmplr-lib-rt")
    except metadata.PackageNotFoundError:
        raise Unavailable("needs Intel's OpenCL runtime for CPUs (pip install intel-opencl-rt intel-cmplr-lib-rt: 900 MB)") from None
    for name in ("libocloc.so", "libocloc.so.1"):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return next(str(path.locate().resolve()) for path in files if path.name == "libintelocl.so")
    raise Unavailable("needs libocloc, whose SPIR-V that runtime gets (Debian: intel-opencl-icd; newer: libocloc1 or intel-ocloc)")


def reports(where: Path) -> dict[str, dict[str, object]]:
    """What the libraries of ended processes wrote to the folder of the ``report`` setting: {"libcuda-PID": counters}."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(where.glob("*.json"))}


if __name__ == "__main__":
    if sys.argv[1] == "--check":  # whether a kind's tests can run here
        try:
            print(compiler(), opencl() if sys.argv[2] == "level_zero" else "")
        except Unavailable as error:
            sys.exit(str(error))
        sys.exit()
    os.execvpe(sys.argv[2], sys.argv[2:], {**os.environ, **environment(sys.argv[1])})
