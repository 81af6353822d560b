"""Who may know whom: includes in C++ and imports in Python keep to docs/architecture.md; and the rules that a text search can check."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "tack"

# Layer of a C++ file by its folder -> what it may include.
CPP_MAY = {
    "include": {"include"},
    "backend": {"include", "backend"},
    "core": {"include", "backend", "core"},
    "backends": {"include", "backend", "core", "backends"},
    "bindings": {"include", "bindings"},
}
# Package of a Python file -> packages of tack that it may import at any place.
PYTHON_MAY = {
    "types": set(),
    "ir": {"types", "ir"},
    "frontend": {"types", "ir", "frontend", "errors"},
    "codegen": {"types", "ir", "codegen", "errors"},
}
COMPILER = ("ir", "frontend", "codegen")


def cpp_layer(include: str, file: Path) -> str:
    if include.startswith("tack/"):
        return "include"
    if include == "backend.h":
        return "backend"
    for layer in ("core", "backends"):
        if include.startswith(layer + "/"):
            return layer
    return "bindings" if "bindings" in file.parts else "?"


def cpp_sources() -> list[tuple[Path, str]]:
    found = [(p, "include") for p in (ROOT / "cpp/include/tack").iterdir()] + [(ROOT / "cpp/src/backend.h", "backend")]
    for layer in ("core", "backends"):
        found += [(p, layer) for p in (ROOT / "cpp/src" / layer).rglob("*") if p.suffix in {".h", ".cpp", ".mm"}]
    found += [(p, "bindings") for p in (ROOT / "python/bindings").iterdir() if p.suffix in {".h", ".cpp"}]
    return found


def test_cpp_includes_keep_the_layers() -> None:
    sources = cpp_sources()
    assert {layer for _, layer in sources} == set(CPP_MAY)
    for path, layer in sources:
        for include in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE):
            target = cpp_layer(include, path)
            if path.name == "registry.cpp" and target == "backends":
                continue
            assert target in CPP_MAY[layer], f"{path.relative_to(ROOT)} ({layer}) includes {include!r} ({target})"


def test_only_the_registry_names_the_backends() -> None:
    for path, layer in cpp_sources():
        if layer == "core" and path.name != "registry.cpp":
            assert "backends/" not in path.read_text(), f"{path.relative_to(ROOT)} reaches into a backend; only core/registry.cpp may"


def test_environment_is_read_in_one_place() -> None:
    for path, _ in cpp_sources():
        if path.name != "config.cpp":
            assert "getenv" not in path.read_text(), f"{path.relative_to(ROOT)} reads the environment; settings belong in core/config.cpp"
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        assert "os.environ" not in text and "getenv" not in text, f"{path.relative_to(ROOT)} reads the environment; ask _runtime.config_get"


def imports(path: Path) -> list[str]:
    """Absolute names of all modules that a file of the package imports, anywhere in it."""
    package = ["tack", *path.relative_to(PACKAGE).parts[:-1]]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                found += [f"{node.module}.{a.name}" for a in node.names]
            else:
                base = package[: len(package) - node.level + 1]
                found += [".".join([*base, *([node.module] if node.module else []), a.name]) for a in node.names]
    return found


@pytest.mark.parametrize("layer", sorted(PYTHON_MAY))
def test_python_imports_keep_the_layers(layer: str) -> None:
    files = sorted((PACKAGE / layer).rglob("*.py")) if (PACKAGE / layer).is_dir() else [PACKAGE / f"{layer}.py"]
    assert files
    for path in files:
        for name in imports(path):
            parts = name.split(".")
            if parts[0] == "tack":
                allowed = {*PYTHON_MAY[layer], "runtime"} if layer == "types" else PYTHON_MAY[layer]
                assert parts[1] in allowed, f"{path.relative_to(ROOT)} imports {name}"
            if layer in COMPILER:
                assert parts[0] not in {"numpy", "llvmlite"}, f"{path.relative_to(ROOT)} imports {name}: the compiler runs on bare Python"


def test_llvmlite_is_imported_in_one_file() -> None:
    users = {str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if any(n.split(".")[0] == "llvmlite" for n in imports(p))}
    assert users == {"runtime/llvm_compiler.py"}


def test_every_file_says_what_it_is_for() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path.relative_to(ROOT)} has no first line that says what it is for"
    for path, _ in cpp_sources():
        assert re.match(r"(//|/\*) \S+ -- .{10,}", path.read_text()), (
            f"{path.relative_to(ROOT)}: the first line must be `// file -- what it is for`"
        )


def test_files_stay_short_or_say_why() -> None:
    for path in [*PACKAGE.rglob("*.py"), *(p for p, _ in cpp_sources())]:
        text = path.read_text()
        lines = text.count("\n")
        assert lines <= 600 or "Over 600 lines because" in text, (
            f"{path.relative_to(ROOT)} has {lines} lines: split it, or say why it is one file"
        )


@pytest.mark.parametrize("backend", ["cuda", "hip", "level_zero", "metal", "null"])
def test_a_backend_is_small(backend: str) -> None:
    """900 lines are what one more backend may cost (docs/adding-a-backend.md): of C++, without comments and what declares the system's."""
    folder = ROOT / "cpp/src/backends" / backend
    files = [p for p in folder.iterdir() if p.suffix in {".cpp", ".h"} and p.name != "metal_api.h"]
    lines = [line.strip() for p in files for line in p.read_text().splitlines()]
    assert 50 < sum(line != "" and not line.startswith("//") for line in lines) <= 900
