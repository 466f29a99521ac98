"""Check a package: every variant on the targets of its provider, and what is selected on each target."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import msgspec

from harness.annex.advise.fastest import simulated_of, timed
from harness.annex.pack.package_remarks import PackageRemark, idle_options, speed_remarks
from harness.core.records.record import Record
from harness.core.records.scenario import GENERATE, PACKAGE_SCENARIO, PLAIN
from harness.core.records.verdict import Family, Verdict, lacks_target
from harness.corpus.beside.genai_config import CONFIG_NAME
from harness.corpus.suites.suite import Suite
from harness.engine.engine import Engine
from harness.engine.tasks.events import Finished, TargetReady
from harness.plan.expand import cells
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.plan.runs_entry import LatencySettings
from harness.studies.ask import Notify, results

_RIGHT = frozenset({Family.PASSED})

MEASURED = LatencySettings(warm_up=3, repeats=200, budget_s=0.5)
"""How each variant is timed: enough runs for a stable median, and half a second at most."""


class PackageCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What a check found.

    Attributes:
        variants: Every variant of the package, as ``component/variant``, in its order.
        alone: Variant and target -> its record.
        selected: Component and target -> the record of the selection.
        fingerprints: The environment of each target that could be used.
        speed: Variants that are slower than the component's for the CPU EP, and selections that are not the
            fastest right variant of their target.
        idle: Variants with options that changed no bit of the answer.
    """

    variants: tuple[str, ...]
    alone: Mapping[tuple[str, str], Record]
    selected: Mapping[tuple[str, str], Record]
    fingerprints: Mapping[str, Mapping[str, Any]]
    speed: tuple[PackageRemark, ...] = ()
    idle: tuple[PackageRemark, ...] = ()

    @property
    def wrong(self) -> tuple[Record, ...]:
        """Records that speak against the package: of a variant that is not right, or of a selection."""
        variants = [
            one
            for one in self.alone.values()
            if one.family not in _RIGHT and not lacks_target(one.verdict, one.phase)
        ]
        selections = [
            one
            for one in self.selected.values()
            if one.family not in _RIGHT
            and one.verdict is not Verdict.NO_VARIANT
            and not lacks_target(one.verdict, one.phase)
        ]
        return (*variants, *selections)

    @property
    def untried(self) -> tuple[str, ...]:
        """Variants that no target at hand could run."""
        tried = {name for (name, _), one in self.alone.items() if not lacks_target(one.verdict, one.phase)}
        return tuple(name for name in self.variants if name not in tried)

    @property
    def holes(self) -> tuple[Record, ...]:
        """Selections that find nothing."""
        return tuple(one for one in self.selected.values() if one.verdict is Verdict.NO_VARIANT)


def _generates(suite: Suite) -> bool:
    """Return whether every variant is a generation folder, whose text is then played, too."""
    return all((suite.home(model) / CONFIG_NAME).is_file() for model in suite.files)


def check_package(suite: Suite, matrix: Matrix, notify: Notify) -> PackageCheck:
    """Run a package on the targets of a matrix as they are; tolerances are the matrix's.

    Raises:
        UsageError: The cache cannot be used.
    """
    targets = [msgspec.structs.replace(target, axes={}) for target in matrix.targets]
    scenarios = (PLAIN, PACKAGE_SCENARIO, *((GENERATE,) if _generates(suite) else ()))
    asked = msgspec.structs.replace(timed(matrix, targets, MEASURED), axes={"scenario": scenarios})
    wanted = tuple(cells(asked, {suite.name: suite.models()}, {suite.name: suite.uses}))
    alone: dict[tuple[str, str], Record] = {}
    selected: dict[tuple[str, str], Record] = {}
    fingerprints: dict[str, Mapping[str, Any]] = {}
    with closing(Engine(Plan(matrix=asked, cells=wanted), {suite.name: suite})) as engine:
        engine.submit(wanted)
        engine.drain()
        for event in results(engine, notify):
            if isinstance(event, TargetReady):
                fingerprints[event.target] = event.fingerprint
            elif isinstance(event, Finished):
                record = event.record
                key = record.model, record.target
                if record.axes.get("scenario") == PACKAGE_SCENARIO:
                    selected[key] = record
                elif key not in alone or alone[key].family in _RIGHT:  # what is wrong stays
                    alone[key] = record
    package = suite.package
    assert package is not None  # noqa: S101 - the suite is a package
    return PackageCheck(
        variants=tuple(
            f"{component.name}/{variant.name}"
            for component in package.components
            for variant in component.variants
        ),
        alone=alone,
        selected=selected,
        fingerprints=fingerprints,
        speed=tuple(speed_remarks(alone, selected, simulated_of(targets, fingerprints))),
        idle=tuple(idle_options(suite, {target.name: target for target in targets}, alone)),
    )
