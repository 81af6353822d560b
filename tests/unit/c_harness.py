"""Runs printed CUDA C on the host: a shim in front of the text, g++, and one thread of the host for each thread of a group."""

from __future__ import annotations

import ctypes
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from codegen_harness import ALL, Program, no_math

from tack import types as T
from tack.codegen import build_source
from tack.ir import nodes as ir
from tack.ir.source import KernelSource
from tack.ir.target import Target

ATOMICS = frozenset({T.i32, T.u32, T.i64, T.u64, T.f32, T.f64})

SHIM = r"""
#include <barrier>
#include <bit>
#include <cmath>
#include <thread>
#include <vector>
#define __global__
#define __device__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(n)
#define __shared__ static
struct Place { unsigned x; };
static thread_local Place threadIdx, blockIdx, blockDim;
static std::barrier<>* group_barrier;
static void __syncthreads() { group_barrier->arrive_and_wait(); }
static int __float_as_int(float x) { return std::bit_cast<int>(x); }
static unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
static float __int_as_float(int x) { return std::bit_cast<float>(x); }
static float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
static long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
static double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
static int __popc(unsigned x) { return __builtin_popcount(x); }
static int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static int __clz(int x) { return x == 0 ? 32 : __builtin_clz(x); }
static int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
static long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
static unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned __int128)a * b >> 64; }
template <class T, class F> static T update(T* at, F f) {
  T old = *at, now;
  do now = f(old);
  while (!__atomic_compare_exchange(at, &old, &now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
template <class T> static T atomicAdd(T* p, T v) { return update(p, [v](T o) { return (T)(o + v); }); }
static int atomicAdd(int* p, int v) { return update(p, [v](int o) { return (int)((unsigned)o + (unsigned)v); }); }
template <class T> static T atomicMin(T* p, T v) { return update(p, [v](T o) { return v < o ? v : o; }); }
template <class T> static T atomicMax(T* p, T v) { return update(p, [v](T o) { return v > o ? v : o; }); }
template <class T> static T atomicAnd(T* p, T v) { return update(p, [v](T o) { return o & v; }); }
template <class T> static T atomicOr(T* p, T v) { return update(p, [v](T o) { return o | v; }); }
template <class T> static T atomicXor(T* p, T v) { return update(p, [v](T o) { return o ^ v; }); }
template <class T> static T atomicExch(T* p, T v) { return update(p, [v](T) { return v; }); }
template <class T> static T atomicCAS(T* p, T c, T v) { return update(p, [c, v](T o) { return o == c ? v : o; }); }
"""

DRIVER = r"""
typedef unsigned long long word;
extern "C" void launch(void (*entry)(const word*), const word* words, unsigned groups, unsigned threads, int together) {
  if (!together) {
    blockDim.x = threads;
    for (unsigned g = 0; g < groups; ++g)
      for (unsigned t = 0; t < threads; ++t) { blockIdx.x = g; threadIdx.x = t; entry(words); }
    return;
  }
  std::barrier<> barrier(threads);
  group_barrier = &barrier;
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t)
    all.emplace_back([=, &barrier] {
      blockDim.x = threads; threadIdx.x = t;
      for (unsigned g = 0; g < groups; ++g) { blockIdx.x = g; entry(words); barrier.arrive_and_wait(); }
    });
  for (auto& thread : all) thread.join();
}
"""


def cuda(debug: bool = False, **changes: Any) -> Target:
    fields: dict[str, Any] = {"backend": "cuda", "title": "CUDA", "arch": "sm_90", "array_dtypes": ALL, "atomic_dtypes": ATOMICS}
    fields |= {"supports_f64": True, "supports_workgroups": True, "supports_images": True, "debug": debug}
    return Target(**(fields | changes))


def signatures(text: str) -> dict[str, list[str]]:
    """The types of each entry's parameters."""
    found = re.findall(r"__launch_bounds__\(\d+\) (\w+)\((.*)\) \{", text)
    return {symbol: [p.rpartition(" ")[0] for p in params.split(", ") if p] for symbol, params in found}


def host_text(sources: Sequence[KernelSource]) -> str:
    """One text for several kernels of different names."""
    parts = [SHIM]
    for k, source in enumerate(sources):
        calls = []
        for symbol, types in signatures(source.text).items():
            words = ", ".join(
                f"*(const {t.removeprefix('const ') if '*' not in t else 'word'}*)&w[{n}]" if "*" not in t else f"({t})w[{n}]"
                for n, t in enumerate(types)
            )
            calls.append(f'extern "C" void call_{symbol}(const u64_* w) {{ {symbol}({words}); }}')
        body = source.text + "\ntypedef unsigned long long u64_;\ntypedef unsigned long long word;\n" + "\n".join(calls)
        parts.append(f"namespace k{k} {{\n{body}\n}}\n")
    return "\n".join([*parts, '#line 1 "driver.cpp"', DRIVER])


def compile_host(sources: Sequence[KernelSource], *flags: str) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels.cpp"
        path.write_text(host_text(sources))
        library = path.with_suffix(".so")
        command = ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-pthread", *flags]
        done = subprocess.run([*command, str(path), "-o", str(library)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[:4000]
        return ctypes.CDLL(str(library))


class CProgram(Program):
    """A kernel printed as CUDA C, run on the host as a launch over groups of threads would run it."""

    def __init__(
        self, kernel: ir.Kernel | KernelSource, math: Any = no_math, library: ctypes.CDLL | None = None, debug: bool = False
    ) -> None:
        self.source = kernel if isinstance(kernel, KernelSource) else build_source(kernel, cuda(debug), math)
        self.library = library or compile_host([self.source])
        self.functions = [self.caller(k) for k in range(len(self.source.entries))]

    def caller(self, k: int) -> Any:
        entry = self.source.entries[k]
        function = getattr(self.library, f"call_{entry.symbol}")

        def call(words: int, low: int, high: int) -> None:
            assert low == 0, "launches are not cut"
            threads = entry.group or 256
            groups = high if entry.whole_groups else -(-high // threads)
            self.library.launch(function, ctypes.c_void_p(words), groups, threads, int(entry.whole_groups))

        return call


def programs(kernels: Sequence[ir.Kernel], math: Any = no_math, debug: bool = False) -> list[CProgram]:
    """Several kernels in one library."""
    sources = [build_source(kernel, cuda(debug), math) for kernel in kernels]
    library = compile_host(sources)
    return [CProgram(source, library=library) for source in sources]


__all__ = ["ATOMICS", "CProgram", "cuda", "programs"]
