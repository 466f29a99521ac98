"""The words for how a cell ended, and the families they belong to."""

from enum import StrEnum


class Family(StrEnum):
    """What a verdict says about the execution provider (EP)."""

    SKIPPED = "skipped"
    EXCLUDED = "excluded"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"
    UNTESTED = "untested"
    PASSED = "passed"
    MISSING = "missing"


class Verdict(StrEnum):
    """One word for a cell. The first that matches wins, in this order."""

    UNAVAILABLE = "unavailable"
    DECLARED = "declared"
    INVALID_MODEL = "invalid_model"
    REFERENCE_DISPUTED = "reference_disputed"
    NO_GOLDEN = "no_golden"
    NO_INPUT = "no_input"
    UNDEFINED_INPUT = "undefined_input"
    CRASH = "crash"
    HANG = "hang"
    OUT_OF_MEMORY = "out_of_memory"
    OPTION_REJECTED = "option_rejected"
    ERROR = "error"
    FALLBACK_AT_RUN = "fallback_at_run"
    SHAPE_MISMATCH = "shape_mismatch"
    DTYPE_MISMATCH = "dtype_mismatch"
    NAN_MISMATCH = "nan_mismatch"
    MISMATCH = "mismatch"
    NONDETERMINISTIC = "nondeterministic"
    UNSUPPORTED = "unsupported"
    FALLBACK = "fallback"
    FOLDED = "folded"
    PASS_PARTIAL = "pass_partial"  # noqa: S105 - a verdict, not a password
    PASS = "pass"  # noqa: S105 - a verdict, not a password
    NOT_RUN = "not_run"
    HARNESS_ERROR = "harness_error"

    @property
    def family(self) -> Family:
        """The family of this verdict."""
        return _FAMILIES[self]

    @property
    def meaning(self) -> str:
        """One line for people, as the reports and the reference documentation show it."""
        return _MEANINGS[self]


class Phase(StrEnum):
    """Where in its life a cell was; ``start`` and ``register`` belong to its process."""

    START = "start"
    REGISTER = "register"
    CREATE = "create"
    RUN = "run"
    COMPARE = "compare"
    TEARDOWN = "teardown"


class Cause(StrEnum):
    """Why a target is ``unavailable``."""

    IMPORT_FAILED = "import_failed"
    NOT_INSTALLED = "not_installed"
    NOT_IN_BUILD = "not_in_build"
    LIBRARY_MISSING = "library_missing"
    VERSION_CONFLICT = "version_conflict"
    NO_DEVICE = "no_device"
    REGISTRATION_FAILED = "registration_failed"


_TABLE: dict[Verdict, tuple[Family, str]] = {
    Verdict.UNAVAILABLE: (Family.SKIPPED, "the target cannot be used here; nothing was tried"),
    Verdict.DECLARED: (Family.SKIPPED, "skipped by declaration; nothing was tried"),
    Verdict.INVALID_MODEL: (Family.EXCLUDED, "the CPU EP of the same runtime refuses the model too"),
    Verdict.REFERENCE_DISPUTED: (Family.EXCLUDED, "golden and expected data disagree, so neither can judge"),
    Verdict.NO_GOLDEN: (Family.EXCLUDED, "there is no result to compare with"),
    Verdict.NO_INPUT: (Family.EXCLUDED, "no generated input runs on the CPU EP"),
    Verdict.UNDEFINED_INPUT: (
        Family.EXCLUDED,
        "the operator's text leaves the result undefined for these values",
    ),
    Verdict.CRASH: (Family.FAILED, "the process died"),
    Verdict.HANG: (Family.FAILED, "the process exceeded the time limit of a phase and was killed"),
    Verdict.OUT_OF_MEMORY: (Family.FAILED, "memory ran out"),
    Verdict.OPTION_REJECTED: (Family.FAILED, "the EP refuses a provider option"),
    Verdict.ERROR: (Family.FAILED, "the EP raised an error where the CPU EP works"),
    Verdict.FALLBACK_AT_RUN: (Family.FAILED, "the session changed its providers during the run"),
    Verdict.SHAPE_MISMATCH: (Family.FAILED, "an output has another shape or structure than the golden"),
    Verdict.DTYPE_MISMATCH: (Family.FAILED, "an output has another element type than the golden"),
    Verdict.NAN_MISMATCH: (Family.FAILED, "NaN or infinity stands where the golden has none, or the reverse"),
    Verdict.MISMATCH: (Family.FAILED, "values differ by more than the tolerance"),
    Verdict.NONDETERMINISTIC: (Family.FAILED, "two runs of the same session differ"),
    Verdict.UNSUPPORTED: (Family.UNSUPPORTED, "the EP refuses the model cleanly"),
    Verdict.FALLBACK: (Family.UNTESTED, "right answer, but no node ran on the EP"),
    Verdict.FOLDED: (Family.UNTESTED, "right answer, but nothing was left to run after constant folding"),
    Verdict.PASS_PARTIAL: (Family.PASSED, "right answer, some compute nodes fell back to the CPU"),
    Verdict.PASS: (Family.PASSED, "right answer, computed by the EP"),
    Verdict.NOT_RUN: (Family.MISSING, "planned, but there is no result"),
    Verdict.HARNESS_ERROR: (Family.MISSING, "the harness itself failed in this cell; please report it"),
}
_FAMILIES = {verdict: family for verdict, (family, _) in _TABLE.items()}
_MEANINGS = {verdict: meaning for verdict, (_, meaning) in _TABLE.items()}
