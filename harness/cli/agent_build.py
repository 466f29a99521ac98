"""`ep-harness agent`: the agent in C."""

from pathlib import Path

from harness.cli.output import print_lines
from harness.core.text.errors import EXIT_OK
from harness.runtimes.native_agent import build_agent

_NAME = "ep-harness-agent"


def build_native_agent(out: Path | None, *, compiler: str | None, target: str) -> int:
    """Compile the agent, and tell what it needs."""
    built = build_agent(out or Path(_NAME), compiler=compiler, target=target)
    needs = f", needs glibc {built.glibc} or newer" if built.glibc else ""
    print_lines([f"built    {built.path}: {built.nbytes / 1024:.0f} KiB by {built.compiler}{needs}"])
    return EXIT_OK
