"""The parser of the whole command line, as `ep-harness --help` shows it."""

import argparse

from harness import __version__
from harness.cli.arguments import declare
from harness.cli.arguments.agents import add_agents
from harness.cli.arguments.caches import add_golden, add_runtime
from harness.cli.arguments.conformance import add_conform, add_profiles, add_publication, add_verify
from harness.cli.arguments.first_steps import add_first_steps
from harness.cli.arguments.fuzz import add_fuzz
from harness.cli.arguments.results import add_baseline, add_history, add_query, add_results
from harness.cli.arguments.runs import add_runs
from harness.cli.arguments.studies import add_studies
from harness.cli.arguments.triage import add_triage


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line.

    ``call`` of the parsed arguments is ``module.function`` in `harness/cli`. That function takes all other
    arguments by their names and returns the exit code.
    """
    root = argparse.ArgumentParser(
        prog="ep-harness",
        description="Does this model, on this execution provider (EP), give the right answer, and did the "
        "provider really compute it?",
        epilog="Begin with `ep-harness doctor`. Details: `ep-harness COMMAND --help`.",
    )
    root.add_argument("--version", action="version", version=f"ep-harness {__version__}")
    commands = root.add_subparsers(required=True, metavar="COMMAND")
    # In the order in which a newcomer meets them.
    add_first_steps(commands)
    add_runs(commands)
    add_results(commands)
    add_baseline(declare.group(commands, "baseline", "write the known failures of a kind of machine"))
    add_triage(commands)
    add_fuzz(commands)
    add_history(declare.group(commands, "history", "keep runs in a database; show trends and failing cells"))
    add_query(commands)
    add_profiles(declare.group(commands, "profiles", "list, show or export the profiles of conformance"))
    add_conform(commands)
    add_verify(commands)
    add_publication(commands)
    add_studies(commands)
    add_agents(commands)
    add_golden(
        declare.group(commands, "golden", "record, verify or prune goldens: the CPU provider's results")
    )
    add_runtime(declare.group(commands, "runtime", "list, build or prune environments made of packages"))
    return root
