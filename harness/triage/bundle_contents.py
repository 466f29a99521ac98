"""What is handed over to be made into a bundle."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.core.fault import Fault
from harness.core.value import NamedValues
from harness.corpus.data_sets import DataSet
from harness.plan.target import Target
from harness.plan.tolerance_entry import ToleranceEntry
from harness.triage.bundle_model import ModelSource


class PrecedingModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that must run before in the same process."""

    model: ModelSource
    inputs: NamedValues


class BundleContents(msgspec.Struct, frozen=True, kw_only=True):
    """What goes into a bundle.

    Attributes:
        model: The model, already converted where the cell's precision asks for that.
        inputs: By name, in the order of the model.
        expected: Right outputs by name; empty if none are known, as for some crashes.
        found: Wrong outputs by name; empty if there are none.
        limits: Name of an output -> the largest ``harness.triage.distance.distance`` that is no fault. Values
            of other outputs are not compared.
        further: Data sets that the same session runs after the first one.
        preceding: Models that run before in the same process, in this order.
        tolerance: The matrix's entry for the cell; None for the built-in tolerances.
        fingerprint: Environment of the target, as ``TargetReady`` has it.
        library: The EP's library, if it is on this machine.
        time_limit_s: Seconds after which a trial of ``repro.py`` has hung.
    """

    fault: Fault
    model: ModelSource
    inputs: NamedValues
    expected: NamedValues = ()
    found: NamedValues = ()
    limits: Mapping[str, float] = {}
    further: tuple[DataSet, ...] = ()
    preceding: tuple[PrecedingModel, ...] = ()
    target: Target
    axes: Mapping[str, str] = {}
    tolerance: ToleranceEntry | None = None
    fingerprint: Mapping[str, Any] = {}
    library: Path | None = None
    printed: str = ""
    time_limit_s: float = 600.0
