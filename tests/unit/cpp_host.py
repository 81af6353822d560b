"""Writes what tack.compile answers as C++ and runs it in a program without Python, over the installed libtack."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tack
from tack.ir.source import ArgumentSpec, EntryPoint, HostStep, RecordSite

PROGRAM = """
#include <fstream>
#include <iostream>
#include <iterator>
#include <tack/array.hpp>
#include <tack/kernel.hpp>
#include <tack/runtime.hpp>

using namespace tack;
#include "kernel.inc"

int main(int, char** arguments) {
  Config config;
  config.cache = false;
  const auto runtime = Runtime::create(config);
  std::ifstream file(arguments[1], std::ios::binary);
  const std::string binary((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  runtime->set_cpu_compiler([&](const CompileRequest&) {
    const auto* bytes = reinterpret_cast<const std::byte*>(binary.data());
    return std::vector<std::byte>(bytes, bytes + binary.size());
  });
  const auto cpu = runtime->device("cpu");
  try {
    run(cpu, cpu->build(kernel_source(), {}));
  } catch (const Error& error) {
    std::cout << error.what() << std::endl;
  }
}
"""


def run(made: tack.CompiledKernel, body: str, folder: Path) -> str:
    """What a program prints that calls ``run(device, kernel)`` with this body. Skips where there is no compiler, or no library to link."""
    package = Path(tack.__file__).parent
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    library = package / "lib" / "libtack.so"
    if compiler is None or sys.platform != "linux" or not library.exists():
        pytest.skip("needs Linux, a C++ compiler and the wheel's lib/libtack.so")
    (folder / "kernel.o").write_bytes(made.binary)
    (folder / "kernel.inc").write_text(
        f"{as_source(made)}\nvoid run(const std::shared_ptr<Device>& device, const std::shared_ptr<Kernel>& kernel) {{\n{body}\n}}\n"
    )
    (folder / "host.cpp").write_text(PROGRAM)
    command = [compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{package / 'include'}", "-o", str(folder / "host")]
    subprocess.run([*command, str(folder / "host.cpp"), str(library), f"-Wl,-rpath,{library.parent}"], check=True)
    done = subprocess.run([str(folder / "host"), str(folder / "kernel.o")], check=True, capture_output=True, text=True)
    return done.stdout


def as_source(made: tack.CompiledKernel) -> str:
    kind, _, arch = made.target.partition(":")
    lines = [
        "KernelSource kernel_source() {",
        "  KernelSource source;",
        f"  source.name = {text(made.name)};",
        f"  source.target = {text(kind)};",
        f"  source.arch = {text(arch)};",
        f"  source.text = {text(made.source)};",
        f"  source.options = {text(made.options)};",
        f"  source.arguments = {braces(map(argument, made.arguments))};",
        f"  source.entries = {braces(map(entry, made.entries))};",
        f"  source.steps = {braces(map(step, made.steps))};",
        f"  source.scratch_bytes = {made.scratch_bytes};",
        f"  source.result_offset = {made.result_offset};",
        f"  source.sites = {braces(map(site, made.sites))};",
        "  return source;",
        "}",
    ]
    if made.result_type is not None:
        lines.insert(-2, f"  source.result_type = {dtype(made.result_type.name)};")
    return "\n".join(lines)


def text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def braces(items: object) -> str:
    return "{" + ", ".join(map(str, items)) + "}"  # type: ignore[call-overload]


def word(enum: str, name: str) -> str:
    """An enumerator; C++ has keywords where Python's tables have words."""
    return f"{enum}::{ {'unsigned': 'unsigned_', 'and': 'bit_and', 'or': 'bit_or', 'xor': 'bit_xor'}.get(name, name) }"


def dtype(name: str) -> str:
    return "bool8" if name == "bool" else name


def number(value: int) -> str:
    return "std::numeric_limits<std::int64_t>::min()" if value == -(1 << 63) else f"{value}LL"


def argument(a: ArgumentSpec) -> str:
    flags = (str(a.read_only).lower(), str(a.written).lower(), a.texture, number(a.min), number(min(a.max, (1 << 63) - 1)))
    kind = word("ArgumentSpec::Kind", a.kind)
    return braces((text(a.name), kind, dtype(a.dtype.name), a.rank, f"static_cast<Layout>({int(a.layout)})", *flags))


def entry(e: EntryPoint) -> str:
    slots = braces(braces((word("ParamKind", p.kind), p.dim, p.arg, dtype(p.dtype))) for p in e.params)
    alone = (text(e.alone), e.locked_cost)
    return braces((text(e.symbol), slots, e.rank, e.cost_hint, *alone, e.group, str(e.whole_groups).lower()))


def step(s: HostStep) -> str:
    ranges = (
        braces(braces(braces((word("ExtentOp", t[0]), t[1], t[2], number(t[3]))) for t in extent) for extent in extents)
        for extents in (s.start, s.stop, s.step)
    )
    return braces((word("Step::Kind", s.kind), s.entry, *ranges, s.match))


def site(r: RecordSite) -> str:
    return braces((word("RecordSite::Kind", r.kind), r.line, text(r.file), text(r.text), braces(dtype(v.name) for v in r.values)))
