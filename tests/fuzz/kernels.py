"""Random kernels: the CPU device at every optimisation level and SIMD width, the interpreter and plain Python must store the same bits.

python tests/fuzz/kernels.py --seed 0 --count 1000 [--shrink]

With ``--device cuda`` they run on that device instead, and are compared with the interpreter and the CPU device.

Several programs are compiled together. Each batch runs on all oracles, and in a few of the ways (level, width, threads) in turns. A
program that differs is printed; with ``--shrink``, made small and printed as a test for tests/unit/test_fuzz_regressions.py.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from check import ALL_WAYS, FEW, Difference, Way, arguments, check, check_device, parameters, run_host, text_of  # noqa: E402
from host import INTS, Refused  # noqa: E402
from shrink import shrink  # noqa: E402
from statements import ROWS, generate, is_fused, is_wide  # noqa: E402
from tree import Program  # noqa: E402

import tack  # noqa: E402

BATCH = 8
WAYS = 1  # of running a batch on the CPU: most of the time goes into compiling, and batches take turns


def batches(seeds: Iterable[int], size: int = BATCH) -> Iterator[list[int]]:
    """The seeds of programs that are compiled together: those of one width of weak floats, with the same oracles."""
    waiting: dict[tuple[bool, bool], list[int]] = {}
    for s in seeds:
        group = waiting.setdefault((is_wide(s), is_fused(s)), [])
        group.append(s)
        if len(group) == size:
            yield list(group)
            group.clear()
    yield from (g for g in waiting.values() if g)


def ways_of(number: int, count: int = WAYS) -> list[Way]:
    """Some of the ways, so that consecutive batches go through all of them."""
    return [ALL_WAYS[(number * count + k) * 7 % len(ALL_WAYS)] for k in range(count)]


class Target:
    """What programs run on: a device with the interpreter as its oracle, or without one the CPU device in the ways given."""

    def __init__(self, device: tack.Device | None) -> None:
        self.device = device
        self.atomics = INTS if device is None else tuple(t for t in INTS if t in device.atomic_dtypes)

    def seeds(self, first: int, count: int) -> Iterator[int]:
        """The first ``count`` programs that it can have, from one on: without f64 where there is none."""
        narrow = self.device is not None and not self.device.supports_f64
        return itertools.islice((s for s in itertools.count(first) if not (narrow and is_wide(s))), count)

    def program(self, seed: int, row: int = 0) -> Program:
        return generate(seed, row, atomics=self.atomics)

    def check(self, programs: Sequence[Program], ways: Sequence[Way]) -> Difference | None:
        return check(programs, ways) if self.device is None else check_device(programs, self.device)


def run_batch(target: Target, seeds: Sequence[int], ways: Sequence[Way]) -> list[tuple[int, Difference]]:
    """The programs of a batch that differ, and how."""
    found = target.check([target.program(s, k * ROWS) for k, s in enumerate(seeds)], ways)
    if found is None:
        return []
    bad = [(s, d) for s in seeds if (d := target.check([target.program(s)], ways))]
    return bad or [(seeds[0], Difference(found.kind, f"only with the batch {list(seeds)}: {found.message}"))]


def shrunk(target: Target, seed: int, difference: Difference, ways: Sequence[Way]) -> Program:
    def fails(program: Program) -> bool:
        try:
            if difference.kind == "compile":  # plain Python takes what the compiler refuses
                run_programs(program)
            found = target.check([program], ways)
        except (NameError, SyntaxError, Refused):
            return False
        return found is not None and found.kind == difference.kind and (found.kind != "compile" or head(found) == head(difference))

    return shrink(copy.deepcopy(target.program(seed)), fails)


def run_programs(program: Program) -> None:
    wide = is_wide(program.seed)
    run_host(text_of([program], wide, on_host=True), parameters(wide), program.row + ROWS, wide)


def head(difference: Difference) -> str:
    """The start of a compile error without the names in it."""
    return re.sub("'[^']*'|[0-9]+", "", difference.message.split("\n")[0])


def as_test(program: Program, name: str) -> str:
    """A program as a test with the values that plain Python computes."""
    wide = is_wide(program.seed)
    text = text_of([program], wide)
    names = parameters(wide, text)
    kernel = text_of([program], wide, names=names)
    host_text = text_of([program], wide, on_host=True, names=names)
    lines = [f"def test_{name}() -> None:", "    verify(", f'        """\\\n{kernel}""",']
    got = {}
    try:
        if is_fused(program.seed):
            raise Refused("no oracle")
        got = run_host(host_text, names, program.row + ROWS, wide)
    except Refused as refusal:
        lines.append(f"        # plain Python: {refusal}")
    start = arguments(names, program.row + ROWS, 0, 0)
    returned = got.pop("return", [None])[0]
    if returned is not None:
        lines.append(f"        returned={returned!r},")
    for key, value in got.items():
        changed = value[program.row] if key[0] in "tz" else value[program.row : program.row + ROWS, :FEW]
        if (value != start[key]).any():
            lines.append(f"        {key}={changed.tolist()!r},")
    lines.append("    )")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--device", help="another device than the CPU: cuda, cuda:1, ...")
    parser.add_argument("--batch", type=int, default=BATCH, help="programs that are compiled together")
    parser.add_argument("--shrink", action="store_true", help="make what differs small")
    parser.add_argument("--all-ways", action="store_true", help="run every batch in all ways")
    parser.add_argument("--progress", action="store_true", help="print each batch's seeds before it runs, for crashes")
    parser.add_argument("--stop", type=int, default=10, help="differences to stop after")
    options = parser.parse_args()
    target = Target(tack.device(options.device) if options.device else None)
    start, done, bad = time.monotonic(), 0, 0
    for number, seeds in enumerate(batches(target.seeds(options.seed, options.count), options.batch)):
        ways = ALL_WAYS if options.all_ways else ways_of(number)
        if options.progress:
            print(f"seeds {seeds}", flush=True)
        for seed, difference in run_batch(target, seeds, ways):
            bad += 1
            print(f"seed {seed}: {difference}", flush=True)
            program = shrunk(target, seed, difference, ways) if options.shrink else target.program(seed)
            print(as_test(program, f"seed_{seed}"), flush=True)
        done += len(seeds)
        if bad >= options.stop:
            break
    seconds = time.monotonic() - start
    print(f"{done} programs, {bad} of them differ; {seconds:.0f} s, {done / seconds:.1f} programs/s", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
