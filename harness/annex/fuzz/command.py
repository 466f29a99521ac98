"""The command `fuzz`."""

import argparse

from harness.cli.argument_values import count, duration_s
from harness.cli.command_type import Command
from harness.cli.options import GivenArguments, Options, RunCommand
from harness.cli.shared_options import ProviderSettings, env_options, with_report


def _declare(options: Options) -> RunCommand:
    text = "exact name of a provider, such as CPUExecutionProvider, or a matrix file, whose targets count"
    targets = options.many("TARGET", text, str)
    text = "of matrix files, only these targets; may be repeated"
    target = options.repeated("--target", "GLOB", text, str)
    settings = ProviderSettings(options)
    env = env_options(options)
    seconds = options.value("--for", "TIME", "such as 8h; default: 10m", duration_s, 600.0)
    stop = options.value("--models", "N", "end after so many models", count)
    seed = options.value("--seed", "N", "of the models; default: 0", _seed, 0)
    operators = options.value("--ops", "GLOBS", "only these operators, such as Conv,Reduce*", str)
    text = "for explaining failures, afterwards; 0 for none; default: 10m"
    triage_s = options.value("--triage", "TIME", text, _maybe_s, 600.0)
    where = options.either()
    out = where.path("--out", "DIR", "run folder; default: runs/fuzz-<time>")
    resume = where.path("--resume", "DIR", "go on in this run folder")
    report = with_report(options)

    def run(given: GivenArguments) -> int:
        from harness.annex.fuzz.command_fuzz import fuzz

        return fuzz(
            targets=given[targets],
            target=given[target],
            out=given[out],
            resume=given[resume],
            with_report=given[report],
            triage_s=given[triage_s],
            seconds=given[seconds],
            seed=given[seed],
            operators=given[operators],
            stop=given[stop],
            plugin=given[settings.plugin],
            options=given[settings.options],
            device=given[settings.device],
            env=given[env],
        )

    return run


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return int(text)


def _maybe_s(text: str) -> float:
    return 0.0 if text == "0" else duration_s(text)


FUZZ = Command(
    name="fuzz",
    summary="generate models until a provider gives a wrong answer",
    aim="cause",
    declare=_declare,
    exit_codes={
        0: "nothing failed",
        1: "something failed",
        2: "an argument is wrong",
        3: "nothing failed, and a target cannot be used",
        130: "ended by Ctrl-C; what was found is kept",
    },
)
