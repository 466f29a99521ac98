"""Whether two results are comparable: environment and settings of the target."""

import re
from collections.abc import Iterable

import msgspec

from harness.core.findings.other_build import PLUGIN, RUNTIME, built, library_names, other_builds
from harness.core.text.errors import one_line
from harness.report.changes.latency_change import unlike
from harness.report.runs.environment import EnvironmentRow, environment_table
from harness.report.runs.merged_run import MergedRun, RunEnvironment, target_settings
from harness.report.words.figures import first_of

_SHOWN_DIFFERENCES = 8
"""How many differences of one kind are named."""

OTHER_BUILD = "other build of the plugin"

_WORDS = {
    OTHER_BUILD: r"^$",
    "runtime changed": r"^(onnxruntime|python|node|browser|owners|available_providers|altered)\b"
    r"|^packages\.onnxruntime(?!-ep-|-qnn)",
    "provider changed": r"^plugin\.version|^packages\.onnxruntime|^devices\[\d+\]\.metadata\.version$",
    "driver changed": r"(?i)driver",
    "device changed": r"^(devices|machine|processor)\b",
    "system changed": r"^platform\b",
    "library changed": r"^sha256\b",
    "settings changed": r"^(options|session|providers)\b",
}
"""Phrase -> the keys of a fingerprint that it stands for; the first that matches counts."""

UNAVAILABLE_KEY = "unavailable"
"""Key of a fingerprint: why the target could not be used."""

_PACKAGES = re.compile(r"^.*[/\\](?:site|dist)-packages[/\\]")
"""The folder with packages of a virtual environment."""

_DIGEST = "sha256."
_ANY_OTHER = "environment changed"
_SINCE_LATER = re.compile(r"processor\.features$|drivers\b|sha256\b|altered\b|mapped\b")
"""Facts that an older version did not record, or that are recorded on demand: absent on one side, they say
nothing."""


class Unlike(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between the two runs of a target.

    Attributes:
        target: Its name.
        environment: ``key: old -> new`` of its environment.
        settings: The same of its settings in the matrix.
        words: A summary of the changes in a few phrases, such as ``runtime changed`` or ``device changed``.
    """

    target: str
    environment: tuple[str, ...]
    settings: tuple[str, ...]
    words: tuple[str, ...] = ()


class Likeness:
    """Compares environments and settings of the targets of two runs."""

    def __init__(self, old: MergedRun, new: MergedRun) -> None:
        self._comparable: dict[str, bool] = {}
        self._words: dict[str, tuple[str, ...]] = {}
        self._runs = old, new
        self._environments = tuple({e.target: e.fingerprint for e in run.environments} for run in (old, new))
        self._settings = tuple(target_settings(run.matrix) for run in (old, new))

    def comparable(self, target: str) -> bool:
        """Return whether latencies of a target can be compared: like machines, devices and threads."""
        if target not in self._comparable:
            old, new = (
                [each.fingerprint for each in run.environments if each.target == target] for run in self._runs
            )
            # A side may consist of several runs, one of them on another machine.
            alike = all(not unlike(one, other) for one in old for other in new)
            self._comparable[target] = bool(old and new) and alike
        return self._comparable[target]

    def unlike_targets(self) -> tuple[Unlike, ...]:
        """Return the targets of both runs that differ."""
        found = []
        for target in self._environments[0].keys() & self._environments[1].keys():
            environment = fact_differences(*(sides[target] for sides in self._environments))
            settings = fact_differences(*(sides.get(target, {}) for sides in self._settings))
            if environment or settings:
                words = self.words(target)
                found.append(Unlike(target=target, environment=environment, settings=settings, words=words))
        return tuple(sorted(found, key=lambda each: each.target))

    def words(self, target: str) -> tuple[str, ...]:
        """Return what changed for a target, in a few phrases; empty if nothing did, or if a run lacks it."""
        if target not in self._words:
            old, new = (sides.get(target) for sides in self._environments)
            settings = _rows(*(sides.get(target, {}) for sides in self._settings))
            if old is None or new is None:
                self._words[target] = ()
            else:
                self._words[target] = change_words(_rows(old, new), settings)
        return self._words[target]


def fact_differences(old: dict[str, object], new: dict[str, object]) -> tuple[str, ...]:
    """Return ``key: old -> new`` for each difference of two trees of facts; one line each, bounded."""
    rows = [row for row in _rows(old, new) if not row.same and _is_known(row)]
    others = [
        f"{row.key}: {row.values[0] or '(absent)'} -> {row.values[1] or '(absent)'}"
        for row in rows
        if not row.key.startswith(_DIGEST)
    ]
    told = [one_line(line, 160) for line in (*other_builds(old, new), *others)]
    return tuple(first_of(told, _SHOWN_DIFFERENCES))


def change_words(
    environment: Iterable[EnvironmentRow], settings: Iterable[EnvironmentRow]
) -> tuple[str, ...]:
    """Return what changed between two runs of a target, as phrases such as ``runtime changed``."""
    rows = tuple(environment)
    plugin = {name for row in rows if row.key == "plugin.library" for name in library_names(row.values)}
    found = {_word(row.key, plugin) for row in rows if not row.same and _is_known(row)}
    if "provider changed" in found:
        found.discard(OTHER_BUILD)  # a library of another version is another build anyway
    found |= {"settings changed" for row in settings if not row.same}
    return tuple(word for word in (*_WORDS, _ANY_OTHER) if word in found)


def _word(key: str, plugin: set[str]) -> str:
    if key.startswith(_DIGEST):
        what = built(key.removeprefix(_DIGEST), plugin)
        return {PLUGIN: OTHER_BUILD, RUNTIME: "runtime changed"}.get(what, "library changed")
    return next((word for word, pattern in _WORDS.items() if re.search(pattern, key)), _ANY_OTHER)


def _is_known(row: EnvironmentRow) -> bool:
    """Return whether a difference concerns the machine, not what a version of the harness records."""
    return row.key != UNAVAILABLE_KEY and not (_SINCE_LATER.match(row.key) and "" in row.values)


def _rows(old: dict[str, object], new: dict[str, object]) -> tuple[EnvironmentRow, ...]:
    """Return the facts of two trees side by side.

    A library is the same in any virtual environment. Facts that a target lacks because it could not be used
    are no change.
    """
    if old == new:
        return ()
    sides = [RunEnvironment(target="", run="", fingerprint=side) for side in (old, new)]
    rows = environment_table(sides).rows
    if UNAVAILABLE_KEY in old or UNAVAILABLE_KEY in new:
        rows = tuple(row for row in rows if "" not in row.values)
    return tuple(
        msgspec.structs.replace(row, same=True)
        if len({_PACKAGES.sub("", value) for value in row.values}) == 1
        else row
        for row in rows
    )
