"""make_objects.py -- makes the object files that test_object_loader.cpp loads: python make_objects.py FOLDER

Writes FOLDER/<machine>/<name>.o for both machines that the loader knows, with the LLVM that llvmlite brings, set up as tack sets it up
(position-independent, small code model). What each function answers is checked in test_object_loader.cpp.
"""

from __future__ import annotations

import sys
from pathlib import Path

import llvmlite.binding as llvm

# A switch whose arms do different things becomes a jump table in .rodata.
SWITCH = """
define i64 @pick(i64 %which, i64 %x) {
  switch i64 %which, label %otherwise [CASES]
ARMS
otherwise:
  ret i64 -1
}
"""

# Functions of a table in constant data (relocated addresses), called by index.
TABLE = """
@functions = internal constant [3 x ptr] [ptr @same, ptr @triple, ptr @plus3]
define internal i64 @same(i64 %x) noinline { ret i64 %x }
define internal i64 @triple(i64 %x) noinline { %y = mul i64 %x, 3
  ret i64 %y }
define internal i64 @plus3(i64 %x) noinline { %y = add i64 %x, 3
  ret i64 %y }
define i64 @by_index(i64 %i, i64 %x) {
  %p = getelementptr [3 x ptr], ptr @functions, i64 0, i64 %i
  %f = load ptr, ptr %p
  %r = call i64 %f(i64 %x)
  ret i64 %r
}
define ptr @address_of_table() { ret ptr @functions }
"""

# Data that is written, zeroed data, a pointer to data inside data, and data reached through the slot table.
DATA = """
@counter = internal global i64 40
@zeroed = internal global [2000 x i32] zeroinitializer
@pointer = internal global ptr getelementptr ([2000 x i32], ptr @zeroed, i64 0, i64 7)
@shared = global i32 7
@aligned = internal global [64 x i8] zeroinitializer, align 1024
@bytes = internal constant [5 x i8] c"tack\\00"
define i64 @count() {
  %v = load i64, ptr @counter
  %w = add i64 %v, 1
  store i64 %w, ptr @counter
  ret i64 %w
}
define i64 @touch_zeroed(i64 %i) {
  %p = getelementptr [2000 x i32], ptr @zeroed, i64 0, i64 %i
  %v = load i32, ptr %p
  %w = add i32 %v, 5
  store i32 %w, ptr %p
  %r = sext i32 %w to i64
  ret i64 %r
}
define i64 @through_pointer() {
  %p = load ptr, ptr @pointer
  %v = load i32, ptr %p
  %r = sext i32 %v to i64
  ret i64 %r
}
define i64 @load_shared() {
  %v = load i32, ptr @shared
  %r = sext i32 %v to i64
  ret i64 %r
}
define i64 @byte_at(i64 %i) {
  %p = getelementptr [5 x i8], ptr @bytes, i64 0, i64 %i
  %v = load i8, ptr %p
  %r = zext i8 %v to i64
  ret i64 %r
}
define ptr @address_of_aligned() { ret ptr @aligned }
define ptr @address_of_counter() { ret ptr @counter }
"""

# Calls and data outside the object.
CALLS = """
@outside_data = external global i64
declare float @expf(float)
declare double @fmod(double, double)
declare void @sincos(double, ptr, ptr)
declare extern_weak i64 @weak_and_absent(i64)
declare extern_weak i64 @weak_and_present(i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define float @half_exp(float %x) { %y = call float @expf(float %x)
  %z = fmul float %y, 0.5
  ret float %z }
define double @remainder_of(double %x, double %y) { %r = call double @fmod(double %x, double %y)
  ret double %r }
define double @sine_plus_cosine(double %x) {
  %s = alloca double
  %c = alloca double
  call void @sincos(double %x, ptr %s, ptr %c)
  %a = load double, ptr %s
  %b = load double, ptr %c
  %r = fadd double %a, %b
  ret double %r
}
define void @clear_and_copy(ptr %to, ptr %from, i64 %bytes) {
  call void @llvm.memset.p0.i64(ptr %to, i8 170, i64 %bytes, i1 false)
  %half = lshr i64 %bytes, 1
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %half, i1 false)
  ret void
}
define i64 @load_outside() { %v = load i64, ptr @outside_data
  ret i64 %v }
define ptr @address_of_expf() { ret ptr @expf }
define float @tail_call(float %x) { %y = tail call float @expf(float %x)
  ret float %y }
define i64 @call_weak_absent(i64 %x) {
  %absent = icmp eq ptr @weak_and_absent, null
  br i1 %absent, label %no, label %yes
no:
  ret i64 -1
yes:
  %r = call i64 @weak_and_absent(i64 %x)
  ret i64 %r
}
define i64 @call_weak_present(i64 %x) {
  %absent = icmp eq ptr @weak_and_present, null
  br i1 %absent, label %no, label %yes
no:
  ret i64 -1
yes:
  %r = call i64 @weak_and_present(i64 %x)
  ret i64 %r
}
"""

# A kernel as tack prints them: words, begin, end. y[i] = a * x[i] + y[i], eight at a time, then one by one.
KERNEL = """
define void @saxpy(ptr %words, i64 %begin, i64 %end) {
entry:
  %x = load ptr, ptr %words
  %py = getelementptr i64, ptr %words, i64 1
  %y = load ptr, ptr %py
  %pa = getelementptr i64, ptr %words, i64 2
  %a = load float, ptr %pa
  %a0 = insertelement <8 x float> poison, float %a, i64 0
  %va = shufflevector <8 x float> %a0, <8 x float> poison, <8 x i32> zeroinitializer
  br label %wide
wide:
  %i = phi i64 [%begin, %entry], [%next, %wide_body]
  %next = add i64 %i, 8
  %fits = icmp sle i64 %next, %end
  br i1 %fits, label %wide_body, label %single
wide_body:
  %px = getelementptr float, ptr %x, i64 %i
  %qy = getelementptr float, ptr %y, i64 %i
  %vx = load <8 x float>, ptr %px, align 4
  %vy = load <8 x float>, ptr %qy, align 4
  %m = fmul <8 x float> %va, %vx
  %s = fadd <8 x float> %m, %vy
  store <8 x float> %s, ptr %qy, align 4
  br label %wide
single:
  %j = phi i64 [%i, %wide], [%j1, %single_body]
  %more = icmp slt i64 %j, %end
  br i1 %more, label %single_body, label %done
single_body:
  %sx = getelementptr float, ptr %x, i64 %j
  %sy = getelementptr float, ptr %y, i64 %j
  %ux = load float, ptr %sx
  %uy = load float, ptr %sy
  %n = fmul float %a, %ux
  %t = fadd float %n, %uy
  store float %t, ptr %sy
  %j1 = add i64 %j, 1
  br label %single
done:
  ret void
}
"""

# What a kernel must not have.
THREAD_LOCAL = """
@mine = thread_local global i64 3
define i64 @f() { %v = load i64, ptr @mine
  ret i64 %v }
"""
CONSTRUCTOR = """
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr @start, ptr null }]
define internal void @start() { ret void }
define i64 @f() { ret i64 1 }
"""
UNKNOWN = """
declare i64 @function_that_nobody_offers(i64)
define i64 @f(i64 %x) { %r = call i64 @function_that_nobody_offers(i64 %x)
  ret i64 %r }
"""
COMMON = """
@shared = common global i64 0
define i64 @f() { %v = load i64, ptr @shared
  ret i64 %v }
"""
ABSOLUTE = """
@table = internal constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]
define i64 @f(i64 %i) { %p = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %v = load i64, ptr %p
  ret i64 %v }
"""

MACHINES = {"x86_64": ("x86_64-unknown-linux-gnu", "x86-64-v2"), "aarch64": ("aarch64-unknown-linux-gnu", "generic")}


def switch_text() -> str:
    """Arm k answers x * (k + 2) ^ k for 40 values of k, 17 apart from the last."""
    numbers = [*range(39), 55]
    cases = " ".join(f"i64 {k}, label %arm{k}" for k in numbers)
    arms = "\n".join(f"arm{k}:\n  %m{k} = mul i64 %x, {k + 2}\n  %r{k} = xor i64 %m{k}, {k}\n  ret i64 %r{k}" for k in numbers)
    return SWITCH.replace("CASES", cases).replace("ARMS", arms)


def constants_text() -> str:
    """Horner's rule with 60 coefficients 1/(k+3) in f32, f64 and as vectors: each one a constant in .rodata.cst*."""
    lines: list[str] = []
    for name, kind in (("horner32", "float"), ("horner64", "double")):
        lines.append(f"define {kind} @{name}({kind} %x) {{\n  %s0 = fadd {kind} %x, 0.0")
        for k in range(60):
            value = f"fdiv ({kind} 1.0, {kind} {k + 3}.0)"
            lines.append(f"  %c{k} = {value.replace('(', '').replace(')', '').replace(f', {kind}', ',')}")
            lines.append(f"  %m{k} = fmul {kind} %s{k}, %x\n  %s{k + 1} = fadd {kind} %m{k}, %c{k}")
        lines.append(f"  ret {kind} %s60\n}}")
    vector = ", ".join(f"float {k}.25" for k in range(8))
    other = ", ".join(f"float -{k}.5" for k in range(8))
    lines.append(f"""define void @vectors(ptr %to) {{
  %v = load <8 x float>, ptr %to, align 4
  %m = fmul <8 x float> %v, <{vector}>
  %s = fadd <8 x float> %m, <{other}>
  store <8 x float> %s, ptr %to, align 4
  ret void
}}""")
    return "\n".join(lines)


PROGRAMS = {
    "switch": switch_text(),
    "constants": constants_text(),
    "table": TABLE,
    "data": DATA,
    "calls": CALLS,
    "kernel": KERNEL,
    "refused_thread_local": THREAD_LOCAL,
    "refused_constructor": CONSTRUCTOR,
    "refused_unknown": UNKNOWN,
    "refused_common": COMMON,
    "refused_absolute": ABSOLUTE,
}


def emit(text: str, machine: str, *, absolute: bool) -> bytes:
    """Object code. With `absolute` it is not position-independent, as tack never asks for."""
    triple, cpu = MACHINES[machine]
    model = "large" if absolute and machine == "aarch64" else "small"
    target = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2, reloc="static" if absolute else "pic", codemodel=model)
    module = llvm.parse_assembly(text)
    module.triple = triple
    module.data_layout = str(target.target_data)
    module.verify()
    if not absolute:
        # Folds the constants' divisions; nothing that would change what is called.
        builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=1))
        manager = llvm.create_new_module_pass_manager()
        manager.add_instruction_combine_pass()
        manager.run(module, builder)
    return bytes(target.emit_object(module))


def main(folder: Path) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for machine in MACHINES:
        (folder / machine).mkdir(parents=True, exist_ok=True)
        for name, text in PROGRAMS.items():
            (folder / machine / f"{name}.o").write_bytes(emit(text, machine, absolute=name == "refused_absolute"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
