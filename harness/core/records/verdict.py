"""The words for how a cell ended, and the families to which they belong."""

from collections.abc import Collection
from enum import StrEnum
from typing import Self


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
    """A verdict of a cell: one word, with its family and a one-line meaning.

    Among several faulty outputs the first member decides, see ``harness.core.verdicts.judge_output.worst``.
    The rules of a cell have their own order: ``harness.core.verdicts.rules.RULES``.
    """

    family: Family
    meaning: str

    # The defaults are for type checkers, which treat ``Verdict("pass")`` as a call of this.
    def __new__(cls, word: str, family: Family = Family.MISSING, meaning: str = "") -> Self:
        """Make a member from its word, family and meaning."""
        verdict = str.__new__(cls, word)
        verdict._value_ = word
        verdict.family, verdict.meaning = family, meaning
        return verdict

    UNAVAILABLE = "unavailable", Family.SKIPPED, "the target cannot be used here; nothing was tried"
    DECLARED = "declared", Family.SKIPPED, "skipped by declaration; nothing was tried"
    TIMEOUT = "timeout", Family.SKIPPED, "the process was still at work at the time limit of a phase"
    INVALID_MODEL = (
        "invalid_model",
        Family.EXCLUDED,
        "onnx's checker, or ONNX's text, forbids the model; or the file is no model",
    )
    REFERENCE_DISPUTED = (
        "reference_disputed",
        Family.EXCLUDED,
        "golden and expected data disagree, so neither can judge",
    )
    NO_GOLDEN = "no_golden", Family.EXCLUDED, "there is no result to compare with"
    NO_INPUT = "no_input", Family.EXCLUDED, "no generated input runs on the CPU EP"
    UNDEFINED_INPUT = (
        "undefined_input",
        Family.EXCLUDED,
        "the operator's text leaves the result undefined for these values",
    )
    ILL_CONDITIONED = (
        "ill_conditioned",
        Family.EXCLUDED,
        "one rounding inside the model takes every digit of the answer, whoever computes it",
    )
    CRASH = "crash", Family.FAILED, "the process died"
    HANG = (
        "hang",
        Family.FAILED,
        "the process did nothing more, or worked for 10 times the time limit of a phase, alone",
    )
    OUT_OF_MEMORY = "out_of_memory", Family.FAILED, "memory ran out"
    OPTION_REJECTED = "option_rejected", Family.FAILED, "the EP refuses a provider option"
    ERROR = "error", Family.FAILED, "the EP raised an error where the CPU EP works"
    WRONG_VARIANT = (
        "wrong_variant",
        Family.FAILED,
        "the runtime selects another variant of a package than its rules demand",
    )
    STALE_VARIANT = (
        "stale_variant",
        Family.FAILED,
        "the EP accepts a compiled variant that it cannot load, or that another build made",
    )
    FALLBACK_AT_RUN = "fallback_at_run", Family.FAILED, "the session changed its providers during the run"
    SHAPE_MISMATCH = (
        "shape_mismatch",
        Family.FAILED,
        "an output has another shape or structure than the golden",
    )
    DTYPE_MISMATCH = "dtype_mismatch", Family.FAILED, "an output has another element type than the golden"
    NAN_MISMATCH = (
        "nan_mismatch",
        Family.FAILED,
        "NaN or infinity stands where the golden has none, or the reverse",
    )
    MISMATCH = "mismatch", Family.FAILED, "values differ by more than rounding explains"
    NONDETERMINISTIC = "nondeterministic", Family.FAILED, "two runs of the same session differ"
    PRECISION_LOSS = (
        "precision_loss",
        Family.FAILED,
        "rightly computed at the precision that the EP chose, which leaves too few bits of the answer",
    )
    WRONG_DEVICE = "wrong_device", Family.FAILED, "right answer, but on another device than the one asked for"
    UNCLEAN_EXIT = (
        "unclean_exit",
        Family.FAILED,
        "of a target, never of a cell: a process that was asked to end died, or did not end",
    )
    UNSUPPORTED = "unsupported", Family.UNSUPPORTED, "the EP refuses the model cleanly"
    NO_VARIANT = (
        "no_variant",
        Family.UNSUPPORTED,
        "no variant of the package is for this target: an application gets an error",
    )
    FALLBACK = (
        "fallback",
        Family.UNTESTED,
        "right answer, but no node ran on the EP, or less than a tenth of the work",
    )
    FOLDED = "folded", Family.UNTESTED, "right answer, but nothing was left to run after constant folding"
    PASS_PARTIAL = "pass_partial", Family.PASSED, "right answer, some compute nodes fell back to the CPU"
    PASS = "pass", Family.PASSED, "right answer, computed by the EP"
    NOT_RUN = "not_run", Family.MISSING, "planned, but there is no result"
    HARNESS_ERROR = (
        "harness_error",
        Family.MISSING,
        "the harness itself failed in this cell; please report it",
    )


WRONG_NUMBERS = frozenset({Verdict.MISMATCH, Verdict.PRECISION_LOSS})
"""Verdicts on finite numbers that are too far from the golden's."""


def is_result(verdict: Verdict) -> bool:
    """Return whether a verdict says something about the provider."""
    return verdict.family not in {Family.SKIPPED, Family.EXCLUDED, Family.MISSING}


def says_nothing(verdicts: Collection[Verdict]) -> bool:
    """Return whether cells with these verdicts were tried, and none says anything about a provider."""
    families = {verdict.family for verdict in verdicts}
    tried = Family.EXCLUDED in families or Verdict.TIMEOUT in verdicts
    return tried and families <= {Family.EXCLUDED, Family.SKIPPED}


class Phase(StrEnum):
    """The phase of a cell; ``start`` and ``register`` belong to its process.

    ``unload`` and ``exit`` belong to the end of a process, which begins with ``teardown``.
    """

    START = "start"
    REGISTER = "register"
    CREATE = "create"
    RUN = "run"
    COMPARE = "compare"
    TEARDOWN = "teardown"
    UNLOAD = "unload"
    EXIT = "exit"


class Cause(StrEnum):
    """Why a target is ``unavailable``."""

    IMPORT_FAILED = "import_failed"
    NOT_INSTALLED = "not_installed"
    NOT_IN_BUILD = "not_in_build"
    LIBRARY_MISSING = "library_missing"
    VERSION_CONFLICT = "version_conflict"
    NO_DEVICE = "no_device"
    REGISTRATION_FAILED = "registration_failed"


def lacks_target(verdict: Verdict, phase: Phase | None) -> bool:
    """Return whether a cell has no result because its target cannot be used, not because of its own needs."""
    return verdict is Verdict.UNAVAILABLE and phase is not Phase.CREATE
