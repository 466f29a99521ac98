"""The harness against a bare loop on each execution provider by itself: ONNX's operator tests.

The harness is ``ep-harness run`` of one target of four_providers.toml, the whole process, without the report.
The bare loop (bare_loop.py) is timed alone, with everything imported and parsed and the plugin registered
before its clock starts, in two ways: with a session held open meanwhile, as the harness's agent holds one,
and without. Providers that share a device among sessions (QNN, WebGPU) otherwise set it up for every model.
Rounds take turns; medians are printed. Models that crash a process are left out of the bare loop.
"""

import argparse
from statistics import median

from processes import bare, harness, heading, progress, row, targets, usable


def main() -> None:
    """Measure the targets and print a row for each."""
    names = list(targets())
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", type=int, nargs="?", default=3)
    parser.add_argument("--target", action="append", choices=names, help="only this one; may be repeated")
    parser.add_argument("--held-only", action="store_true", help="no bare loop without a session held open")
    arguments = parser.parse_args()
    heading("target", "bare loop", "bare loop, session held", "harness", "against the loop", "against held")
    for name in arguments.target or usable():
        measure(name, arguments.rounds, held_only=arguments.held_only)


def measure(name: str, rounds: int, *, held_only: bool) -> None:
    """Print a target's row."""
    target = targets()[name]
    harness(name)  # fills the caches
    through: list[float] = []
    free: list[float] = []
    held: list[float] = []
    for _ in range(rounds):
        through.append(harness(name).seconds)
        progress(f"{name}: harness {through[-1]:.2f} s")
        for loops, hold in ((held, True),) if held_only else ((held, True), (free, False)):
            loop = bare(target, hold=hold)
            loops.append(loop.loop_s)
            progress(f"{name}: bare{', held' * hold} {loop}")
    seconds = [f"{median(times):.2f} s" if times else "" for times in (free, held, through)]
    ratios = [f"{median(through) / median(times):.2f} x" if times else "" for times in (free, held)]
    row(name, *seconds, *ratios)


if __name__ == "__main__":
    main()
