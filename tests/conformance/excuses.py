"""What a device may fail at, in two lists that are verified: an excuse that matches no test, or whose test passes, fails the suite.

Each entry: device type, a pattern for the test's id (fnmatch, e.g. "test_programs.py::test_program*f64*"), and the reason.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Excuse:
    device: str
    test: str
    reason: str


UNSUPPORTED: tuple[Excuse, ...] = (
    # The device lacks a capability, for ever: the test must be refused with an error that names it. The reason is the capability.
    Excuse("metal", "*f64*", "f64"),
    Excuse("metal", "test_reductions.py::test_bits_are_those_of_the_interpreter*float64*", "f64"),
    Excuse("metal", "test_language_floats.py::test_rounding_functions", "f64"),
    Excuse("metal", "test_language_floats.py::test_domain_errors_give_nan_or_infinity", "f64"),
    Excuse("metal", "test_language_functions.py::test_several_results_nested_and_unpacked", "f64"),
    Excuse("metal", "test_language_functions.py::test_functions_are_generic", "f64"),
    Excuse("metal", "test_language_numbers.py::test_the_type_of_every_pair", "f64"),
    Excuse("metal", "test_language_numbers.py::test_python_numbers_take_the_dtype_they_meet", "f64"),
    Excuse("metal", "test_language_numbers.py::test_alone_they_are_i64_and_the_kernels_float", "f64"),
    Excuse("metal", "test_language_numbers.py::test_expressions_of_constants_fold_as_python_does", "f64"),
    Excuse("metal", "test_language_numbers.py::test_bools_are_weak_ints_in_arithmetic_and_bools_in_logic", "f64"),
    *(
        Excuse("metal", f"test_language_numbers.py::test_every_kind_of_scalar_argument?metal*-{value}?", "f64")
        for value in ("2.5", "True", "value2", "0.1", "value4", "value5", "value6", "-0.0", "nan", "9223372036854775808")
    ),
)

EXPECTED_FAILURE: tuple[Excuse, ...] = (
    # Something of ours is wrong or missing for now: the test must fail. The reason says what.
)
