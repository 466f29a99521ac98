"""Arguments of `fuzz`."""

import argparse

from harness.cli.arguments.command import (
    Commands,
    add_command,
    add_no_report,
    add_path,
    add_provider_settings,
    add_value,
)
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
    add_value(
        fuzz,
        "targets",
        "TARGET",
        "exact name of a provider, such as CPUExecutionProvider, or a matrix file, whose targets count",
        nargs="+",
    )
    add_value(fuzz, "--target", "GLOB", "of matrix files, only these targets")
    add_provider_settings(fuzz)
    add_value(
        fuzz, "--for", "TIME", "such as 8h; default: 10m", type=duration_s, dest="seconds", default=600.0
    )
    add_value(fuzz, "--models", "N", "end after so many models", type=count, dest="stop")
    add_value(fuzz, "--seed", "N", "of the models; default: 0", type=_seed, default=0)
    add_value(fuzz, "--ops", "GLOBS", "only these operators, such as Conv,Reduce*", dest="operators")
    add_value(
        fuzz,
        "--triage",
        "TIME",
        "for explaining failures, afterwards; 0 for none; default: 10m",
        type=_maybe_s,
        dest="triage_s",
        default=600.0,
    )
    where = fuzz.add_mutually_exclusive_group()
    add_path(where, "--out", "DIR", "run folder; default: runs/fuzz-<time>")
    add_path(where, "--resume", "DIR", "go on in this run folder")
    add_no_report(fuzz)


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return int(text)


def _maybe_s(text: str) -> float:
    return 0.0 if text == "0" else duration_s(text)
