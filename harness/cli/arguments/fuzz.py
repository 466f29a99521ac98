"""Arguments of `fuzz`."""

import argparse

from harness.cli.arguments import declare
from harness.cli.arguments.values import count, duration_s


def add_fuzz(commands: declare.Commands) -> None:
    """Declare `fuzz`."""
    fuzz = declare.command(
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
    declare.value(
        fuzz,
        "targets",
        "TARGET",
        "exact name of a provider, such as CPUExecutionProvider, or a matrix file, whose targets count",
        nargs="+",
    )
    declare.repeated(fuzz, "--target", "GLOB", "of matrix files, only these targets; may be repeated")
    declare.provider_settings(fuzz)
    declare.env(fuzz)
    declare.value(
        fuzz, "--for", "TIME", "such as 8h; default: 10m", type=duration_s, dest="seconds", default=600.0
    )
    declare.value(fuzz, "--models", "N", "end after so many models", type=count, dest="stop")
    declare.value(fuzz, "--seed", "N", "of the models; default: 0", type=_seed, default=0)
    declare.value(fuzz, "--ops", "GLOBS", "only these operators, such as Conv,Reduce*", dest="operators")
    declare.value(
        fuzz,
        "--triage",
        "TIME",
        "for explaining failures, afterwards; 0 for none; default: 10m",
        type=_maybe_s,
        dest="triage_s",
        default=600.0,
    )
    where = fuzz.add_mutually_exclusive_group()
    declare.path(where, "--out", "DIR", "run folder; default: runs/fuzz-<time>")
    declare.path(where, "--resume", "DIR", "go on in this run folder")
    declare.no_report(fuzz)


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return int(text)


def _maybe_s(text: str) -> float:
    return 0.0 if text == "0" else duration_s(text)
