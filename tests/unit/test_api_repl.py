"""Kernels typed into Python's interactive prompt, which a pseudo-terminal drives: they work from Python 3.13, and before say what to do."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals are POSIX's")

KERNEL = """\
@tack.kernel
def fill(a, v):
    for i in range(len(a)):
        a[i] = {expression}
"""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[@-~]|\x1b[=>]|\x1b[()][0-9A-Z]|\x1b\][^\x07]*\x07|\r")
keeps_text = pytest.mark.skipif(
    sys.version_info < (3, 13), reason="the interactive prompt keeps no source text before Python 3.13; this is an older one"
)


class Prompt:
    """An interactive Python on a pseudo-terminal. ``basic``: the prompt without an editor, the only one before Python 3.13."""

    def __init__(self, basic: bool) -> None:
        self.basic = basic or sys.version_info < (3, 13)
        self.terminal, inner = pty.openpty()
        environment = {**os.environ, "TERM": "dumb" if self.basic else "xterm", "PYTHON_COLORS": "0", "PYTHON_HISTORY": os.devnull}
        environment |= {"PYTHON_BASIC_REPL": "1"} if self.basic else {}
        self.process = subprocess.Popen([sys.executable, "-i", "-q"], stdin=inner, stdout=inner, stderr=inner, env=environment)
        os.close(inner)
        self.shown = ""

    def wait(self, done: Callable[[str], bool], seconds: float = 60.0) -> str:
        """What is shown from now on, until it is what is waited for."""
        start, deadline = len(self.shown), time.monotonic() + seconds
        while not done(self.shown[start:]):
            assert time.monotonic() < deadline, f"nothing came of it:\n{self.shown}"
            if select.select([self.terminal], [], [], 0.2)[0]:
                self.shown += CONTROL.sub("", os.read(self.terminal, 65536).decode(errors="replace"))
        return self.shown[start:]

    def type(self, text: str) -> str:
        """Enters a statement; answers all that is shown until it is done."""
        start = len(self.shown)
        if self.basic:
            for line in text.splitlines():
                os.write(self.terminal, f"{line}\n".encode())
                self.wait(lambda shown: shown.endswith(("... ", ">>> ")))
            if ":\n" in text:
                os.write(self.terminal, b"\n")
        else:  # pasted, so that the editor indents nothing itself
            os.write(self.terminal, b"\x1b[200~" + text.encode() + b"\x1b[201~\n")
            if ":\n" in text:
                os.write(self.terminal, b"\n")
        os.write(self.terminal, b"print('do' + 'ne', flush=True)\n")
        self.wait(lambda shown: "\ndone\n" in self.shown[start:])
        return self.shown[start:]

    def __enter__(self) -> Prompt:
        self.wait(lambda text: ">>> " in text)
        return self

    def __exit__(self, *exc: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@pytest.fixture(params=["basic", "editing"])
def prompt(request: pytest.FixtureRequest) -> Iterator[Prompt]:
    with Prompt(request.param == "basic") as opened:
        opened.type("import tack")
        opened.type("a = tack.zeros(3)")
        yield opened


@keeps_text
def test_kernels_typed_at_the_prompt_work_and_may_be_typed_again(prompt: Prompt) -> None:
    prompt.type(KERNEL.format(expression="v + 1"))
    prompt.type("fill(a, 2)")
    assert "[3.0, 3.0, 3.0]" in prompt.type("print(a.tolist())")
    prompt.type(KERNEL.format(expression="v * 10"))
    prompt.type("fill(a, 2)")
    assert "[20.0, 20.0, 20.0]" in prompt.type("print(a.tolist())")


@keeps_text
def test_errors_of_a_kernel_typed_at_the_prompt_show_its_line(prompt: Prompt) -> None:
    prompt.type(KERNEL.format(expression="nothing + v"))
    shown = prompt.type("fill(a, 2)")
    assert "name 'nothing' is not defined" in shown and "a[i] = nothing + v" in shown and "^^^^^^^" in shown


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the prompt of this Python keeps source text")
def test_before_python_3_13_the_error_says_what_to_do() -> None:
    with Prompt(basic=True) as prompt:
        prompt.type("import tack")
        prompt.type(KERNEL.format(expression="v + 1"))
        shown = prompt.type("fill(tack.zeros(3), 2)")
        assert "before Python 3.13, the interactive prompt keep no source text" in shown
        assert "Put the function in a .py file or a notebook cell" in shown
