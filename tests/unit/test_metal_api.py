"""metal_api.mm without a Mac: it type-checks against headers of our own, which say what Apple's do (metal-cpp, of mlx-metal's wheel)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "cpp/src/backends/metal/metal_api.mm"
STUBS = Path(__file__).parent / "metal_stubs"
API = ROOT / "cpp/src/backends/metal/metal_api.h"


def clang() -> str:
    """A clang that has Objective-C; GCC's front end knows no ARC."""
    for name in (os.environ.get("TACK_CLANG", ""), *(f"clang++-{v}" for v in range(21, 13, -1)), "clang++"):
        if name and (found := shutil.which(name)):
            return found
    pytest.skip("needs clang (Debian: clang-19, or clang)")


def check(stubs: Path, sdk: int) -> subprocess.CompletedProcess[str]:
    flags = "-x objective-c++ -std=c++20 -fsyntax-only -fobjc-runtime=macosx-13.0 -fobjc-arc -fblocks -Wall -Wextra -Wconversion -Wshadow"
    command = [
        clang(),
        *flags.split(),
        "-Werror",
        f"-D__MAC_OS_X_VERSION_MAX_ALLOWED={sdk}",
        f"-I{stubs}",
        f"-I{ROOT}/cpp/src",
        str(SOURCE),
    ]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("sdk", [130000, 140000, 150000, 260000])
def test_the_objective_c_part_type_checks(sdk: int) -> None:
    done = check(STUBS, sdk)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- (void)endEncoding;", ""),
        ("- (id<MTLCommandQueue>)newCommandQueue;", "- (id<MTLBuffer>)newCommandQueue:(int)n;"),
        ("setBytes:(const void*)bytes length:(NSUInteger)length", "setBytes:(const void*)bytes length:(NSString*)length"),
        ("@property(readonly) NSError* error;", "@property(readonly) NSString* error;"),
    ],
)
def test_a_wrong_use_is_noticed(tmp_path: Path, old: str, new: str) -> None:
    shutil.copytree(STUBS, tmp_path / "stubs")
    header = tmp_path / "stubs/Metal/Metal.h"
    assert old in header.read_text()
    header.write_text(header.read_text().replace(old, new))
    assert check(tmp_path / "stubs", 150000).returncode != 0


def test_every_function_of_the_table_is_defined_with_its_types() -> None:
    """By the compiler: C functions that are defined otherwise than they are declared do not compile."""
    program = f"""
        #include "backends/metal/metal_api.h"
        namespace tack::metal::abi {{ extern "C" {{
        #define X(member, symbol, result, ...) result symbol(__VA_ARGS__);
        #include "backends/metal/metal.def"
        #undef X
        }} }}
        #include "{SOURCE}"
    """
    flags = "-x objective-c++ -std=c++20 -fsyntax-only -fobjc-runtime=macosx-13.0 -fobjc-arc -fblocks -Wmissing-prototypes -Werror"
    command = [clang(), *flags.split(), f"-I{STUBS}", f"-I{ROOT}/cpp/src", "-"]
    done = subprocess.run(command, input=program, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    table = set(re.findall(r"^X\(\w+, (\w+),", (API.parent / "metal.def").read_text(), re.MULTILINE))
    defined = set(re.findall(r"\b(tack_metal_\w+)\(", SOURCE.read_text()))
    assert table == defined and len(table) >= 18


# -- against Apple's declarations


@dataclass(frozen=True)
class Method:
    selector: str
    result: str
    parameters: tuple[str, ...]


def apple_type(text: str) -> str:
    """A type of Objective-C as metal-cpp writes it, without const, spaces and namespaces."""
    text = re.sub(r"id<MTL(\w+)>", r"\1*", text)
    text = re.sub(r"\b(?:const|class|MTL|NS)::|\bconst\b|\bclass\b", "", text)
    text = re.sub(r"\bMTL::|\bNS::", "", text)
    text = re.sub(r"\b(?:MTL|NS)(?=[A-Z])", "", text)
    text = re.sub(r"\(\^\w*\)", "(^)", text)  # a block's parameters have no names there
    text = re.sub(r"\b(void\s*\*|UInteger)\s+\w+(?=[,)])", r"\1", text)
    return {"BOOL": "bool", "unsignedchar": "uint8_t"}.get(re.sub(r"\s", "", text), re.sub(r"\s", "", text))


def stub_methods() -> set[Method]:
    found: set[Method] = set()
    for path in STUBS.rglob("*.h"):
        text = re.sub(r"//[^\n]*|\s*__attribute__\(\(availability.*?\)\)", "", path.read_text())
        for attributes, declared, name in re.findall(r"@property(\(\w+\))? ([^;]*?)\s*(\w+);", text):
            found.add(Method(name, apple_type(declared), ()))
            if not attributes:
                found.add(Method(f"set{name[0].upper()}{name[1:]}:", "void", (apple_type(declared),)))
        for result, rest in re.findall(r"^[-+] \(([^;]*?)\)(\w[^;]*);", text, re.MULTILINE | re.DOTALL):
            parts = re.findall(r"(\w+):\(((?:[^()]|\([^()]*\))*)\)\s*\w+", rest)
            selector = "".join(f"{part}:" for part, _ in parts) or rest.strip()
            found.add(Method(selector, apple_type(result), tuple(apple_type(t) for _, t in parts)))
    return found


def split(parameters: str) -> list[str]:
    """Types of a C++ parameter list, names taken off."""
    out, depth, start = [], 0, 0
    for i, c in enumerate(parameters + ","):
        depth += (c in "(<") - (c in ")>")
        if c == "," and depth == 0:
            out.append(parameters[start:i].strip())
            start = i + 1
    return [p if "(^" in p else re.sub(r"(?<=[\s*&])\w+(\[\])?$", r"\1", p).replace("[]", "*") for p in out if p]


def metal_cpp(folder: Path) -> tuple[dict[str, set[Method]], dict[str, int], dict[str, str]]:
    """What metal-cpp declares: methods by selector, enumerators, and the type behind each enum."""
    texts = [p.read_text() for p in (*folder.glob("Foundation/*.hpp"), *folder.glob("Metal/*.hpp"))]
    selectors = {name: sel for text in texts for name, sel in re.findall(r'_DEF_SEL\((\w+),\s*"([^"]+)"\)', text)}
    methods: dict[str, set[Method]] = {}
    define = re.compile(
        r"_INLINE (?:static )?([\w:<>*& ]+?)\s*\b(?:MTL|NS)::\w+::(\w+)\(((?:[^()]|\([^()]*\))*)\)[^{;]*\{(.*?)\n\}", re.DOTALL
    )
    values: dict[str, int] = {}
    underlying: dict[str, str] = {}
    for text in texts:
        for result, _, parameters, body in define.findall(text):
            for name in re.findall(r"_PRIVATE_SEL\((\w+)\)", body):
                selector = selectors[name]
                types = tuple(apple_type(p) for p in split(parameters))
                methods.setdefault(selector, set()).add(Method(selector, apple_type(result), types))
        for kind, name, body in re.findall(r"_(?:ENUM|OPTIONS)\(([\w:]+),\s*(\w+)\)\s*\{(.*?)\}", text, re.DOTALL):
            underlying[name] = apple_type(kind)
            for constant, value in re.findall(r"(\w+) = (\d+),", body):
                values[constant] = int(value)
    return methods, values, underlying


@pytest.fixture(scope="module")
def apple(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of metal-cpp, from a wheel for macOS: 45 MB."""
    folder = tmp_path_factory.mktemp("mlx")
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "--python-version", "3.12"]
    done = subprocess.run([*pip, "--platform", "macosx_14_0_arm64", "-d", str(folder), "mlx-metal"], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"needs the package mlx-metal: {done.stderr.strip().splitlines()[-1] if done.stderr.strip() else 'pip failed'}")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [n for n in archive.namelist() if "metal_cpp" in n])
    return folder / "mlx/include/metal_cpp"


# What metal-cpp spells otherwise, with names of its own for the same types; it writes constructors by itself.
OURS = {"alloc", "init"}
TYPES = {
    "String*": {"ErrorDomain"},
    "instancetype": {"String*", "Array*"},
    "ComputePipelineReflection**": {"AutoreleasedComputePipelineReflection*"},
    "id*": {"Object**"},
}


def differences(stubs: set[Method], methods: dict[str, set[Method]]) -> list[str]:
    wrong = []
    for ours in sorted(stubs, key=lambda m: m.selector):
        if ours.selector in OURS:
            continue
        same = [
            theirs
            for theirs in methods.get(ours.selector, ())
            if len(theirs.parameters) == len(ours.parameters)
            and all(
                a == b or b in TYPES.get(a, ())
                for a, b in zip((ours.result, *ours.parameters), (theirs.result, *theirs.parameters), strict=True)
            )
        ]
        if not same:
            wrong.append(f"{ours}: Apple has {sorted(map(str, methods.get(ours.selector, ())))}")
    return wrong


@pytest.mark.long
def test_the_headers_of_our_own_say_what_apples_do(apple: Path) -> None:
    methods, values, underlying = metal_cpp(apple)
    stubs = stub_methods()
    assert len(stubs) > 50 and differences(stubs, methods) == []
    changed = {Method("endEncoding", "int", ()), Method("noSuchSelector:", "void", ("int",)), Method("contents", "void*", ("int",))}
    assert len(differences(changed, methods)) == 3, "a wrong declaration is noticed"

    header = "".join(p.read_text() for p in STUBS.rglob("*.h"))
    enums = re.findall(r"typedef enum : NS(\w+) \{([^}]*)\} (?:MTL|NS)(\w+);", header)
    assert len(enums) >= 8
    for kind, body, name in enums:
        assert underlying[name] == kind, name
        for constant, value in re.findall(r"(?:MTL|NS)(\w+) = (\d+)", body):
            assert values[constant] == int(value), constant


@pytest.mark.long
def test_error_codes_are_apples(apple: Path) -> None:
    _, values, _ = metal_cpp(apple)
    codes = re.findall(r"X\(\w+, MTL(\w+), (\d+)\)", API.read_text())
    assert len(codes) == 10
    for name, value in codes:
        assert values[name] == int(value), name
