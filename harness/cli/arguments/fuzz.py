"""Arguments of `fuzz`."""

import argparse
from pathlib import Path

from harness.cli.arguments.command import Commands, add_command, add_no_report, add_provider_settings
from harness.cli.arguments.values import count, duration_s


def add_fuzz(commands: Commands) -> None:
    """Declare `fuzz`."""
    fuzz = add_command(
        commands,
        "fuzz",
        "generate models until a provider gives a wrong answer",
        "fuzz.fuzz",
        {
            0: "nothing failed",
            1: "something failed",
            2: "an argument is wrong",
            3: "nothing failed, and a target cannot be used",
            130: "ended by Ctrl-C; what was found is kept",
        },
    )
    fuzz.add_argument(
        "targets",
        nargs="+",
        metavar="TARGET",
        help="exact name of a provider, such as CPUExecutionProvider, or a matrix file, whose targets count",
    )
    fuzz.add_argument("--target", metavar="GLOB", help="of matrix files, only these targets")
    add_provider_settings(fuzz)
    fuzz.add_argument(
        "--for",
        type=duration_s,
        dest="seconds",
        default=600.0,
        metavar="TIME",
        help="such as 8h; default: 10m",
    )
    fuzz.add_argument("--models", type=count, dest="stop", metavar="N", help="end after so many models")
    fuzz.add_argument("--seed", type=_seed, default=0, metavar="N", help="of the models; default: 0")
    fuzz.add_argument(
        "--ops", dest="operators", metavar="GLOBS", help="only these operators, such as Conv,Reduce*"
    )
    fuzz.add_argument(
        "--triage",
        type=_maybe_s,
        dest="triage_s",
        default=600.0,
        metavar="TIME",
        help="for explaining failures, afterwards; 0 for none; default: 10m",
    )
    where = fuzz.add_mutually_exclusive_group()
    where.add_argument("--out", type=Path, metavar="DIR", help="run folder; default: runs/fuzz-<time>")
    where.add_argument("--resume", type=Path, metavar="DIR", help="go on in this run folder")
    add_no_report(fuzz)


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return int(text)


def _maybe_s(text: str) -> float:
    return 0.0 if text == "0" else duration_s(text)
