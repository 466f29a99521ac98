"""The table of compiled models on the page *API*: EP version by onnxruntime version, and how many load."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from harness.core.records.verdict import Family
from harness.plan.surroundings import surroundings_of
from harness.report.runs.read import RunData
from harness.report.words.tone import SYMBOLS

_COMPILING = frozenset({"compile", "ep_context"})
"""Scenarios in which a fresh process loads what the EP has compiled."""


class CompiledBy(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A provider of one version under one onnxruntime."""

    provider: str
    version: str
    runtime: str


class CompiledCell(msgspec.Struct, frozen=True, kw_only=True):
    """The compiled models of one EP version under one onnxruntime.

    Attributes:
        loaded: Those that a fresh process loads, with the right result.
        tried: Those, and all that fail.
    """

    loaded: int = 0
    tried: int = 0

    @property
    def told(self) -> str:
        """The cell in words."""
        return f"{self.loaded} of {self.tried} load" if self.tried else "compiles nothing"

    @property
    def tone(self) -> str:
        """The tone of its chip."""
        return "failed" if self.loaded < self.tried else "passed" if self.tried else "unsupported"

    @property
    def symbol(self) -> str:
        """The symbol of its chip."""
        return SYMBOLS[self.tone]


class CompiledGrid(msgspec.Struct, frozen=True, kw_only=True):
    """Providers with their versions (lines) by versions of onnxruntime; null where nothing was tried."""

    runtimes: tuple[str, ...]
    lines: tuple[tuple[str, tuple[CompiledCell | None, ...]], ...]


def compiled_cells(runs: Iterable[RunData]) -> dict[CompiledBy, CompiledCell]:
    """Count the compiled models of all runs; where a version is not known, nothing counts.

    Runs that differ in a version alone may have equal results, which a merged run has once.
    """
    counts: dict[CompiledBy, Counter[Family]] = {}
    for run in runs:
        for record in run.records:
            if record.axes.get("scenario") not in _COMPILING:
                continue
            environment = run.info.environment_of(record.target, record.place)
            here = surroundings_of(environment, (record.provider,), {})
            if here.ep_version and here.onnxruntime:
                by = CompiledBy(provider=record.provider, version=here.ep_version, runtime=here.onnxruntime)
                counts.setdefault(by, Counter())[record.verdict.family] += 1
    return {
        by: CompiledCell(loaded=found[Family.PASSED], tried=found[Family.PASSED] + found[Family.FAILED])
        for by, found in counts.items()
    }


def compiled_grid(cells: Mapping[CompiledBy, CompiledCell]) -> CompiledGrid | None:
    """Return the table; None without cells."""
    if not cells:
        return None
    runtimes = tuple(sorted({by.runtime for by in cells}))
    lines: dict[str, list[CompiledCell | None]] = {}
    for by in sorted(cells):
        line = lines.setdefault(f"{by.provider} {by.version}", [None] * len(runtimes))
        line[runtimes.index(by.runtime)] = cells[by]
    return CompiledGrid(runtimes=runtimes, lines=tuple((name, tuple(line)) for name, line in lines.items()))
