"""Finds the text of a function without inspect, tokenize or linecache, which a process that only runs cached kernels should not import."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FunctionType

__all__ = ["SourceText", "find_source", "pickled_by_value"]


class SourceText:
    """A function's text as it was when the decorator ran.

    ``text`` keeps the original indentation and includes the decorators above; ``line`` is the 1-based line of its first line in ``file``.
    Where no text could be found, ``text`` is empty and ``problem`` says why and what to do.
    """

    __slots__ = ("file", "line", "name", "problem", "qualname", "text")

    def __init__(self, name: str, qualname: str, file: str, line: int, text: str, problem: str = "") -> None:
        self.name = name
        self.qualname = qualname
        self.file = file
        self.line = line
        self.text = text
        self.problem = problem

    def __reduce__(self) -> tuple[type[SourceText], tuple[object, ...]]:
        return SourceText, (self.name, self.qualname, self.file, self.line, self.text, self.problem)


def pickled_by_value(holder: object, depth: int = 1) -> bool:
    """Whether the pickler that asks ``holder`` (a kernel or func) for its parts wants them, and not a name to import it by.

    That is cloudpickle (or a copy of it in another package) where the name leads nowhere in another process. A pickler says nothing of
    itself, but cloudpickle's runs below its own ``dump``, the only Python frame between. ``depth`` is the caller's distance.
    """
    caller = sys._getframe(depth + 1).f_globals.get("__name__", "")
    if "cloudpickle" not in str(caller):
        return False
    module = getattr(holder, "__module__", None)
    found: object = sys.modules.get(module) if isinstance(module, str) and module != "__main__" else None
    for name in str(getattr(holder, "__qualname__", "")).split("."):
        found = getattr(found, name, None)
    return found is not holder


def find_source(function: FunctionType) -> SourceText:
    """The source of a function that has just been defined. Never raises for a missing source: see ``SourceText.problem``."""
    code = function.__code__
    file, first = code.co_filename, code.co_firstlineno
    lines = _lines_of(function)
    problem = ""
    text = ""
    if lines is None:
        problem = _no_source(file)
    else:
        text = _block(lines, code)
        if not text:
            problem = (
                f"line {first} of {file} is not the definition of '{code.co_name}': the file has changed since it was imported. "
                "Import it again (importlib.reload), or restart Python."
            )
    return SourceText(function.__name__, function.__qualname__, file, first, text, problem)


def _no_source(file: str) -> str:
    if file == "<string>" or file == "<stdin>":
        where = "exec() and, before Python 3.13, the interactive prompt keep no source text"
    else:
        where = f"the file {file!r} cannot be read"
    cure = "Put the function in a .py file or a notebook cell, or register its text with linecache."
    return f"its source text is not available ({where}). {cure}"


# Lines of the files read last, so that a module with a hundred kernels is read once: file -> (mtime in ns, size, lines).
_files: dict[str, tuple[int, int, list[str]]] = {}
_MAX_FILES = 8


def _lines_of(function: FunctionType) -> list[str] | None:
    """All lines of the file (cell, REPL entry) that defines ``function``, without line ends."""
    code = function.__code__
    file = code.co_filename
    if not file.startswith("<"):
        try:
            stat = os.stat(file)
            known = _files.get(file)
            if known is not None and known[0] == stat.st_mtime_ns and known[1] == stat.st_size:
                return known[2]
            with open(file, "rb") as stream:
                lines = _split(_decode(stream.read()))
        except (OSError, UnicodeDecodeError, LookupError):
            pass  # a notebook cell, a zip archive, a file that was deleted: other ways follow
        else:
            if len(_files) >= _MAX_FILES:
                _files.pop(next(iter(_files)))
            _files[file] = (stat.st_mtime_ns, stat.st_size, lines)
            return lines
    return _lines_from_linecache(code) or _lines_from_loader(function) or _lines_from_command(code)


def _split(text: str) -> list[str]:
    """Splits at the line ends that Python's parser knows; str.splitlines knows more (form feed, U+2028)."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _decode(data: bytes) -> str:
    """Decodes a source file: a byte order mark or a coding comment in the first two lines, else UTF-8 (PEP 263)."""
    encoding = "utf-8"
    if data.startswith(b"\xef\xbb\xbf"):
        data = data[3:]
    else:
        for line in data.split(b"\n", 2)[:2]:
            comment = line.strip()
            if not comment.startswith(b"#"):
                if comment:
                    break
                continue
            _, found, rest = comment.partition(b"coding")
            if found and rest[:1] in (b":", b"="):
                words = rest[1:].split()
                if words:
                    encoding = words[0].decode("ascii", "replace")
                break
    return data.decode(encoding)


def _lines_from_linecache(code: CodeType) -> list[str] | None:
    """What linecache holds of notebook cells, IPython, exec and (from Python 3.13) the REPL and ``python -c``."""
    linecache = sys.modules.get("linecache")
    if linecache is None:
        return None  # whoever registers source text there has imported it
    lines: list[str] = []
    from_code = getattr(linecache, "_getlines_from_code", None)  # 3.13: entries of the REPL and of -c are kept by code object
    if from_code is not None:
        lines = from_code(code)
    if not lines:
        lines = linecache.getlines(code.co_filename) if code.co_filename in linecache.cache else []
    return [line.rstrip("\r\n") for line in lines] or None


def _lines_from_loader(function: FunctionType) -> list[str] | None:
    """The source of a module in a zip archive, by its loader."""
    loader = function.__globals__.get("__loader__")
    get_source = getattr(loader, "get_source", None)
    name = function.__globals__.get("__name__")
    if get_source is None or not isinstance(name, str) or function.__globals__.get("__file__") != function.__code__.co_filename:
        return None
    try:
        source = get_source(name)
    except Exception:  # a loader of somebody else's: whatever it raises means that it has no source
        return None
    return _split(source) if source else None


def _lines_from_command(code: CodeType) -> list[str] | None:
    """The text of ``python -c TEXT``, if ``code`` comes from it and not from an exec() under the same name."""
    text = _command_text(sys.orig_argv[1:]) if code.co_filename == "<string>" else None
    if text is None:
        return None
    try:
        todo = [compile(text, "<string>", "exec", dont_inherit=True)]
    except SyntaxError:  # exotic flags of the interpreter
        return None
    while todo:
        found = todo.pop()
        if found == code:  # names, instructions, constants and lines
            return _split(text)
        todo += [constant for constant in found.co_consts if isinstance(constant, type(code))]
    return None


def _command_text(arguments: list[str]) -> str | None:
    """The argument of -c on the interpreter's command line."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "--check-hash-based-pycs":
            next(rest, None)
        if argument.startswith("--"):
            continue
        if not argument.startswith("-") or argument == "-":
            return None  # a script
        for position, letter in enumerate(argument[1:], 2):
            if letter == "c":
                return argument[position:] or next(rest, None)
            if letter == "m":
                return None
            if letter in "WX":  # with a value: the rest of this argument, or the next one
                if not argument[position:]:
                    next(rest, None)
                break
    return None


def _block(lines: list[str], code: CodeType) -> str:
    """The lines of the definition that starts at ``code.co_firstlineno``, or "" if it does not start there.

    The end is the last line that an instruction comes from, and after that every line that is indented deeper than the ``def``.
    """
    start = code.co_firstlineno - 1
    if not 0 <= start < len(lines):
        return ""
    end = max(_last_line(code), start + 1)  # exclusive, 0-based; positions are 1-based
    if code.co_name == "<lambda>":
        return _lambda_lines(lines, start, end)
    head = _def_line(lines, start, code.co_name)
    if head is None:
        return ""
    indent = _indent(lines[head])
    last = end = max(end, head + 1)  # a body without instructions (global n) has no line of its own in the code object
    for position in range(end, len(lines)):
        stripped = lines[position].strip()
        if not stripped or stripped.startswith("#"):
            continue  # belongs to the function only if a statement of it follows
        if _indent(lines[position]) <= indent and stripped[0] not in ")]}":
            break
        last = position + 1
    return "\n".join(lines[start:last]) + "\n"


def _lambda_lines(lines: list[str], start: int, end: int) -> str:
    """The lines of a lambda that begins in line ``start``, with those after ``end`` that close its brackets."""
    _, word, rest = lines[start].partition("lambda")
    if not word:
        return ""
    depth = 0
    for position in range(start, len(lines)):
        line = rest if position == start else lines[position]
        depth += sum(line.count(c) for c in "([{") - sum(line.count(c) for c in ")]}")
        if depth <= 0 and position + 1 >= end:
            return "\n".join(lines[start : position + 1]) + "\n"
    return "\n".join(lines[start:end]) + "\n"


def _def_line(lines: list[str], start: int, name: str) -> int | None:
    """The line with ``def name``: the first line itself or, below decorators, a later one."""
    first = lines[start].lstrip()
    if not first.startswith(("@", "def ", "def\t", "async ")):
        return None
    for position in range(start, len(lines)):
        words = lines[position].split(None, 2)
        if words and words[0] == "async":
            words = lines[position].split(None, 3)[1:]
        if len(words) >= 2 and words[0] == "def":
            return position if words[1].partition("(")[0].partition("[")[0] == name else None
    return None


def _indent(line: str) -> int:
    """Columns of white space in front, with tabs to the next multiple of 8 as Python counts them."""
    expanded = line.expandtabs(8)
    return len(expanded) - len(expanded.lstrip())


def _last_line(code: CodeType) -> int:
    """The 1-based last line that an instruction of ``code`` or of a code object nested in it comes from."""
    last = code.co_firstlineno
    for _, end, _, _ in code.co_positions():  # the end lines are None under -X no_debug_ranges
        if end is not None and end > last:
            last = end
    for _, _, line in code.co_lines():
        if line is not None and line > last:
            last = line
    for constant in code.co_consts:
        if isinstance(constant, type(code)):
            last = max(last, _last_line(constant))
    return last
