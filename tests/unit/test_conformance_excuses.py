"""The conformance suite's own machinery: the devices it runs on, what tests need of them, and excuses that are verified."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
CONFORMANCE = Path(__file__).parent.parent / "conformance"
TESTS = """
    import pytest

    def test_refused(device):
        raise NotImplementedError("kernel 'k' uses f64")

    def test_wrong(device):
        assert device.type != "cpu"

    def test_good(device):
        assert device.type == "cpu"
"""


def suite(pytester: pytest.Pytester, unsupported: str = "", failing: str = "") -> None:
    """A conformance folder with the real conftest and other excuses."""
    folder = pytester.mkpydir("tests") / "conformance"
    folder.mkdir()
    for name in ("conftest.py", "recorder.py"):
        (folder / name).write_text((CONFORMANCE / name).read_text())
    (pytester.path / "conftest.py").write_text((CONFORMANCE.parent / "conftest.py").read_text())
    text = (CONFORMANCE / "excuses.py").read_text()
    for name, entries in (("UNSUPPORTED", unsupported), ("EXPECTED_FAILURE", failing)):
        text = re.sub(rf"^{name}: .*?^\)", f"{name}: tuple[Excuse, ...] = ({entries})", text, flags=re.MULTILINE | re.DOTALL)
    (folder / "excuses.py").write_text(text)
    (folder / "test_some.py").write_text("\n".join(line[4:] for line in TESTS.splitlines()))


def outcomes(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", "tests/conformance", *args)


def test_excused_tests_must_fail_in_the_excused_way(pytester: pytest.Pytester) -> None:
    suite(pytester, 'Excuse("cpu", "test_some.py::test_refused*", "f64"),', 'Excuse("cpu", "*wrong*", "a defect"),')
    outcomes(pytester).assert_outcomes(passed=1, xfailed=2)


def test_an_excuse_for_a_wrong_answer_is_no_unsupported(pytester: pytest.Pytester) -> None:
    suite(pytester, 'Excuse("cpu", "*refused*", "f64"), Excuse("cpu", "*wrong*", "f64"),')
    outcomes(pytester).assert_outcomes(passed=1, xfailed=1, failed=1)


def test_an_excused_test_that_passes_is_a_failure(pytester: pytest.Pytester) -> None:
    suite(pytester, failing='Excuse("cpu", "*refused*", "x"), Excuse("cpu", "*wrong*", "x"), Excuse("cpu", "*good*", "fixed since"),')
    result = outcomes(pytester)
    result.assert_outcomes(failed=1, xfailed=2)
    result.stdout.fnmatch_lines(["*XPASS(strict)*fixed since*"])


def test_an_excuse_that_matches_nothing_is_an_error(pytester: pytest.Pytester) -> None:
    suite(pytester, 'Excuse("cpu", "*refused*", "f64"), Excuse("cpu", "*gone*", "f64"),', 'Excuse("cpu", "*wrong*", "x"),')
    result = outcomes(pytester)
    assert result.ret != 0
    result.stderr.fnmatch_lines(["*excuses that match no test*gone*"])


def test_other_devices_excuses_do_not_count_here(pytester: pytest.Pytester) -> None:
    suite(pytester, 'Excuse("metal", "*", "f64"),')
    outcomes(pytester).assert_outcomes(passed=1, failed=2)


def test_a_required_device_that_is_absent_fails_with_the_reason(pytester: pytest.Pytester) -> None:
    suite(pytester)
    result = outcomes(pytester, "--require-devices=cpu,metal", "-k", "good")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*Cannot start the 'metal' device*"])


def test_an_unknown_required_device_is_a_usage_error(pytester: pytest.Pytester) -> None:
    suite(pytester)
    result = outcomes(pytester, "--require-devices=abacus")
    assert result.ret != 0
    assert "unknown device types ['abacus']" in result.stderr.str() + result.stdout.str()


def test_devices_that_cannot_be_tested_together_are_a_usage_error(pytester: pytest.Pytester) -> None:
    suite(pytester)
    result = outcomes(pytester, "--devices=cuda-sim,cuda")
    assert result.ret != 0
    assert "cuda-sim and cuda cannot be tested by one process" in result.stderr.str() + result.stdout.str()


NEEDS = """
    import pytest

    @pytest.mark.needs("lanes and threads")
    def test_of_the_cpu(device):
        pass

    @pytest.mark.needs("lanes and threads", "queue")
    def test_of_no_device(device):
        assert False

    @pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.needs("workgroups"))])
    def test_of_some(device, n):
        assert n == 1

    def test_of_the_host():
        pass
"""


def test_a_test_runs_where_what_it_needs_is(pytester: pytest.Pytester) -> None:
    suite(pytester)
    (pytester.path / "tests/conformance/test_some.py").write_text("\n".join(line[4:] for line in NEEDS.splitlines()))
    outcomes(pytester).assert_outcomes(passed=3, deselected=2)
    outcomes(pytester, "--devices=metal").assert_outcomes(errors=4, deselected=1)  # required and absent; the host's own is the CPU's
    outcomes(pytester, "--devices=cpu,metal", "--require-devices=cpu").assert_outcomes(passed=3, deselected=2)


def test_an_unknown_need_is_a_usage_error(pytester: pytest.Pytester) -> None:
    suite(pytester)
    (pytester.path / "tests/conformance/test_some.py").write_text(
        "import pytest\n@pytest.mark.needs('wings')\ndef test_some(device):\n    pass\n"
    )
    result = outcomes(pytester)
    assert result.ret != 0
    assert "needs {'wings'}" in result.stderr.str() + result.stdout.str()
