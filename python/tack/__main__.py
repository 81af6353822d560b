"""The command line: ``python -m tack demo | devices | config | cache``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def _demo(options: argparse.Namespace) -> int:
    try:
        from .demo.run import run
    except ImportError as error:
        raise SystemExit(f"The demo needs {error.name}. Install it with\n  pip install '.[demo]'   (or: uv sync --extra demo)") from None
    return run(options.output, options.size, options.image, options.repeats)


def _devices(_: argparse.Namespace) -> int:
    import tack

    from . import _runtime
    from .devices import title_of

    for kind in _runtime.backend_names():
        count = tack.device_count(kind)
        try:
            found = [tack.device(kind if number == 0 else f"{kind}:{number}") for number in range(max(1, count))]
        except RuntimeError as error:
            print(f"{title_of(kind)}: not available")
            print("\n".join(f"  {line}" for line in str(error).splitlines()))
            continue
        for device in found:
            default = " (default)" if device == tack.get_default_device() else ""
            print(f"{title_of(kind)}: {device}{default}")
            print(f"  {device.device_name}, compiled for {device.arch}")
            threads = f"{device.threads} thread{'s' if device.threads != 1 else ''}"
            about = [threads, f"{device.vector_bits}-bit vectors"] if kind == "cpu" else []
            about.append("f64" if device.supports_f64 else "no f64")
            about.append("workgroups" if device.supports_workgroups else "no workgroups")
            print(f"  {', '.join(about)}")
    return 0


def _config(options: argparse.Namespace) -> int:
    from .settings import settings

    rows = settings()
    if options.markdown:  # docs/settings.md below its heading
        print("| setting | type | default | what it does |\n|---|---|---|---|")
        for row in rows:
            print(f"| `{row.name}` | {row.type} | {f'`{row.default}`' if row.default else ''} | {row.help} |")
        return 0
    width = max(len(row.name) for row in rows)
    for row in rows:
        changed = "" if row.value == row.default else f"  (default {row.default or 'none'})"
        print(f"{row.name:<{width}}  {row.value or '-'}{changed}\n{'':<{width}}    {row.help}")
    return 0


def _cache(options: argparse.Namespace) -> int:
    from . import _runtime

    folder = _runtime.cache_folder()
    if not folder:
        print("The kernel cache is off (TACK_CACHE=0, or there is no folder for it).")
        return 0
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    if options.action == "clear":
        for path in files:
            path.unlink(missing_ok=True)  # other processes may be clearing or sweeping as well
        print(f"{folder}: removed {len(files)} files, {size / 1e6:.1f} MB")
    else:
        print(f"{folder}: {len(files)} files, {size / 1e6:.1f} MB of at most {_runtime.config_get('TACK_CACHE_SIZE')}")
    return 0


def _at_least(least: int) -> Callable[[str], int]:
    """The type of an option: a whole number from ``least`` on."""

    def number(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    number.__name__ = "whole number"  # what argparse calls it where it is none
    return number


def main(arguments: list[str] | None = None) -> int:
    """Runs a command; answers the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tack", description="Tack: compute kernels as decorated Python functions.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="run kernels over a photograph, check them against NumPy, write a PNG, print what each took")
    demo.add_argument("--output", type=Path, default=Path("tack-demo.png"), metavar="FILE", help="the PNG to write (default: %(default)s)")
    demo.add_argument("--size", type=_at_least(8), default=1200, metavar="N", help="pixels of the longer side (default: %(default)s)")
    demo.add_argument("--image", type=Path, metavar="FILE", help="another picture than the one of the extra 'demo'")
    demo.add_argument(
        "--repeats", type=_at_least(1), default=7, metavar="N", help="calls after the first, whose best counts (default: %(default)s)"
    )
    demo.set_defaults(run=_demo)
    commands.add_parser("devices", help="list the devices, and what is missing for the others").set_defaults(run=_devices)
    config = commands.add_parser("config", help="list every setting with its value")
    config.add_argument("--markdown", action="store_true", help="the table of the documentation, without values")
    config.set_defaults(run=_config)
    cache = commands.add_parser("cache", help="show the kernel cache, or empty it")
    cache.add_argument("action", nargs="?", choices=("info", "clear"), default="info", help="what to do (default: %(default)s)")
    cache.set_defaults(run=_cache)
    options = parser.parse_args(arguments)
    return int(options.run(options))


if __name__ == "__main__":
    sys.exit(main())
