"""Which cells are told as slower, where nights differ by a known amount: a simulation.

A run has 200 cells. Each night each cell takes its own time, off by a normal share of ``spread``; every other
cell by one of ``quiet``, where that is given; of ``heavy`` nights by Student's t of three degrees. Within a
night its runs have a floor, a long tail and slow drifts. Some cells of the new run are slower by a planted
share. Printed is the part of the equal cells that is told as slower, and the part of the planted ones, over
all nights that were simulated. ``shared`` nights move all cells together, which is the worst case: a night's
cells are then wrong together, or right, so these lines have 12 cells and more nights. A cell that is slowed
alone is one in each night, so that line has more nights, too. Ends with 1 if ten nights that differ by 3 %
keep less than they promise.

    python benchmarks/night_to_night.py [--nights 4] [--seed 1]
"""

import argparse
import sys
from collections.abc import Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray
from processes import verdict

from harness.core.timing.latency import Latency, latency_of
from harness.report.changes.latency_change import latency_changes

CELLS = 200
RUNS = 30
ALONE = 8

MOST_EQUAL = 0.01
LEAST_SLOWED = 0.95
"""What ten nights that differ by 3 % promise for a slowdown of 15 %."""

Floats = NDArray[np.float64]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table; ``slowed`` cells are slower by ``by``."""

    bases: int
    cells: int = CELLS
    spread: float = 0.03
    quiet: float | None = None
    heavy: bool = False
    slowed: int = 0
    by: float = 0.15
    shared: bool = False
    promised: bool = False


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Parts of the equal and of the slowed cells that are told as slower, and of all that are unclear."""

    equal: float
    slowed: float | None
    unclear: float


CASES = (
    Case(bases=10, promised=True),
    Case(bases=10, slowed=1),
    Case(bases=10, slowed=20, promised=True),
    Case(bases=10, slowed=100, promised=True),
    Case(bases=10, slowed=CELLS, promised=True),
    Case(bases=10, cells=12, shared=True),
    Case(bases=10, cells=12, slowed=12, shared=True),
    Case(bases=10, spread=0.10, quiet=0.01),
    Case(bases=10, spread=0.10, quiet=0.01, slowed=20),
    Case(bases=10, heavy=True),
    Case(bases=10, heavy=True, slowed=20),
    Case(bases=10, spread=0.05),
    Case(bases=10, spread=0.05, slowed=CELLS),
    Case(bases=3),
    Case(bases=3, slowed=CELLS),
    Case(bases=1),
    Case(bases=1, slowed=CELLS),
    Case(bases=1, slowed=CELLS, by=0.25),
    Case(bases=1, spread=0.05),
)


def simulated(case: Case, nights: int, seed: int) -> Found:
    """Simulate so many nights, each against ``bases`` nights before it."""
    generator = np.random.default_rng(seed)
    equal = slowed = unclear = 0
    nights *= ALONE if case.slowed == 1 else CELLS // case.cells
    for _ in range(nights):
        before = [night(generator, case, 0.0) for _ in range(case.bases)]
        after = night(generator, case, case.by)
        cells = {str(at): ([one[at] for one in before], [after[at]]) for at in range(case.cells)}
        changes = list(latency_changes(cells).values())
        told = [change.verdict == "slower" for change in changes]
        slowed += sum(told[: case.slowed])
        equal += sum(told[case.slowed :])
        unclear += sum(change.verdict == "unclear" for change in changes)
    others = case.cells - case.slowed
    return Found(
        equal=equal / (nights * others) if others else 0.0,
        slowed=slowed / (nights * case.slowed) if case.slowed else None,
        unclear=unclear / (nights * case.cells),
    )


def night(generator: np.random.Generator, case: Case, by: float) -> list[Latency]:
    """Return the latencies of all cells in one night; the first ``slowed`` are slower by a share."""
    count, numbers = 1 if case.shared else case.cells, np.arange(case.cells)
    # Of three degrees, Student's t has a variance of 3.
    off = generator.standard_t(3, count) / 3**0.5 if case.heavy else generator.normal(0, 1, count)
    spread = np.where(numbers % 2, case.spread if case.quiet is None else case.quiet, case.spread)
    factors = np.exp(np.broadcast_to(off, case.cells) * spread) * np.where(numbers < case.slowed, 1 + by, 1)
    return [latency(times(generator, 10.0 * factor)) for factor in factors]


def times(generator: np.random.Generator, ms: float) -> Floats:
    """Return the times of one process: a floor, a tail, a slow drift, and now and then an interruption."""
    drift = np.convolve(generator.normal(0, 1, RUNS + 9), np.ones(10) / 10, mode="valid") * 0.01
    interruptions = generator.binomial(1, 0.03, RUNS) * generator.uniform(0.1, 2.0, RUNS)
    found: Floats = ms * (1 + np.abs(drift) + generator.exponential(0.01, RUNS) + interruptions)
    return found


def latency(samples_ms: Floats) -> Latency:
    """Return times as a record has them."""
    return latency_of(
        {
            "samples_ns": [round(ms * 1e6) for ms in samples_ms],
            "warm_up": 0,
            "stopped_by": "repeats",
            "io": "copied",
            "intra_op_threads": 1,
            "inter_op_threads": 1,
            "waiting_threads": 0.0,
            "host_peak_mib": None,
            "device_mib": None,
        }
    )


def lines(nights: int, seed: int, missed: list[Case]) -> Iterator[str]:
    """Yield the table, one line for each case; add those that miss what is promised."""
    told = "equal cells told | slowed cells told | unclear |"
    yield f"| nights before | nights differ by | cells slowed | by | {told}"
    yield "|---" * 7 + "|"
    for case in CASES:
        found = simulated(case, nights, seed)
        if case.promised and (
            found.equal > MOST_EQUAL or (found.slowed is not None and found.slowed < LEAST_SLOWED)
        ):
            missed.append(case)
        slowed = "–" if found.slowed is None else f"{found.slowed:.1%}"  # noqa: RUF001
        shared = ", all cells together" if case.shared else ", heavy tails" if case.heavy else ""
        spread = f"{case.spread:.0%}" if case.quiet is None else f"{case.quiet:.0%},{case.spread:.0%}"
        yield (
            f"| {case.bases} | {spread}{shared} | {case.slowed} of {case.cells} | {case.by:.0%} "
            f"| {found.equal:.2%} | {slowed} | {found.unclear:.2%} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nights", type=int, default=4, help="nights simulated for each line")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    missed: list[Case] = []
    for line in lines(given.nights, given.seed, missed):
        print(line, flush=True)
    sys.exit(not verdict("cases of nights that miss what is promised", len(missed), 0))


if __name__ == "__main__":
    main()
