"""One attempt: a folder, a source of chance, commands, and what is wrong with what they did."""

import random
from pathlib import Path
from typing import Protocol

from benchmarks.mutation.commands import Commands, Ended

MOST_MIB = 1024.0
MOST_PROCESSOR_S = 60.0
CODES = frozenset({0, 1, 2, 3})
"""Those that are documented, but for 130, which nobody here asks for."""


class Attempt:
    """What a kind gets for one of its attempts.

    Attributes:
        rng: Decides everything.
        folder: New and empty; it stays if something is wrong.
        problems: What is.
    """

    def __init__(self, rng: random.Random, folder: Path, commands: Commands) -> None:
        self.rng = rng
        self.folder = folder
        self.problems: list[str] = []
        self._commands = commands

    def run(self, *arguments: str, **env: str) -> Ended:
        """Run a command and note what no command may do."""
        ended = self._commands.run(arguments, self.folder, **env)
        name = " ".join(arguments[:1])
        self.expect(ended.code is not None, f"{name}: a hang")
        self.expect(ended.code in {None, *CODES}, f"{name}: exit code {ended.code}; {ended.err[-300:]}")
        self.expect("Traceback" not in ended.out + ended.err, f"{name}: a traceback; {ended.err[-500:]}")
        self.expect(ended.processor_s < MOST_PROCESSOR_S, f"{name}: {ended.processor_s:.0f} s of a processor")
        self.expect(ended.peak_mib < MOST_MIB, f"{name}: {ended.peak_mib:.0f} MiB")
        return ended

    def expect(self, right: bool, words: str) -> None:  # noqa: FBT001 - as assert
        """Note a problem unless all is right."""
        if not right:
            self.problems.append(words)


class Kind(Protocol):
    """Something that others write."""

    def __init__(self, home: Path, commands: Commands) -> None:
        """Make what is valid, in a folder."""

    def attempt(self, made: Attempt) -> None:
        """Change it, run commands on it, and note what is wrong."""
