"""Mutate each kind of input for some time, or a number of times, and say what went wrong."""

import argparse
import random
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.mutation.attempt import Attempt
from benchmarks.mutation.commands import Commands, commands
from benchmarks.mutation.kinds import KINDS


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a kind.

    Attributes:
        attempts: How many there were.
        problems: Attempt -> what is wrong.
    """

    attempts: int
    problems: dict[int, tuple[str, ...]]


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 1 where something is wrong."""
    arguments = _arguments(argv)
    wrong = 0
    home = arguments.keep or Path(tempfile.mkdtemp(prefix="mutation-"))
    home.mkdir(exist_ok=True)
    with commands(home) as given:
        for kind in arguments.kind or KINDS:
            began = time.monotonic()
            found = tally(
                kind, home, given, arguments.seed, arguments.count, arguments.seconds, arguments.first
            )
            took_s = time.monotonic() - began
            print(
                f"{kind}: {found.attempts} attempts in {took_s:.0f} s, {len(found.problems)} with a problem"
            )
            for number, problems in found.problems.items():
                for problem in problems:
                    print(f"  {number}: {problem}", flush=True)
            wrong += len(found.problems)
    if not arguments.keep:
        shutil.rmtree(home)
    return int(wrong > 0)


def tally(
    kind: str,
    home: Path,
    given: Commands,
    seed: int,
    count: int | None,
    seconds: float = 0.0,
    first: int = 0,
) -> Tally:
    """Attempt what a seed and the numbers from ``first`` on come to: ``count`` of them, or for some time."""
    problems: dict[int, tuple[str, ...]] = {}
    number = first
    place = home / kind.replace(" ", "-")
    place.mkdir()
    made_from = KINDS[kind](place, given)
    until = time.monotonic() + seconds
    while number < first + count if count is not None else time.monotonic() < until:
        folder = place / f"{number}"
        folder.mkdir()
        rng = random.Random(f"{seed}/{kind}/{number}")  # noqa: S311 - nobody is to be fooled
        one = Attempt(rng, folder, given)
        made_from.attempt(one)
        if one.problems:
            problems[number] = tuple(one.problems)
        else:
            shutil.rmtree(folder)
        number += 1
    return Tally(attempts=number - first, problems=problems)


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__)
    parser.add_argument("--kind", action="append", choices=[*KINDS], help="this kind only; may be repeated")
    parser.add_argument("--seconds", type=float, default=600.0, help="for each kind")
    parser.add_argument("--count", type=int, help="attempts of each kind, in place of a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first attempt, to see one again")
    parser.add_argument("--keep", type=Path, help="folder that keeps what failed")
    return parser.parse_args(argv)
