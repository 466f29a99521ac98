"""Execution-provider test harness for ONNX Runtime.

The names of ``__all__`` are the public interface: docs/reference/python-api.md. Each is imported when it is
first used, so that ``import harness`` costs nothing. Modules below this package are private.
"""

TYPE_CHECKING = False  # as in ``typing``, which an application that is recorded need not import
if TYPE_CHECKING:
    from harness.core.records.record import Record
    from harness.core.records.verdict import Family, Verdict
    from harness.core.text.errors import HarnessError, UsageError
    from harness.engine.prepare import RunnablePlan, make_plan
    from harness.judge.judge_run import JudgedRun, judge_run
    from harness.plan.matrix import Matrix, read_matrix
    from harness.report.changes.run_comparison import Comparison, compare_runs
    from harness.report.formats.rows import as_row
    from harness.report.report_files import write_report
    from harness.report.runs.read import RunData, read_run
    from harness.run.live_run import LiveRun, run_plan

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Family",
    "HarnessError",
    "JudgedRun",
    "LiveRun",
    "Matrix",
    "Record",
    "RunData",
    "RunnablePlan",
    "UsageError",
    "Verdict",
    "__version__",
    "as_row",
    "compare_runs",
    "judge_run",
    "make_plan",
    "read_matrix",
    "read_run",
    "run_plan",
    "write_report",
]

_HOMES = {
    "core.text.errors": ("HarnessError", "UsageError"),
    "core.records.record": ("Record",),
    "core.records.verdict": ("Family", "Verdict"),
    "engine.prepare": ("RunnablePlan", "make_plan"),
    "judge.judge_run": ("JudgedRun", "judge_run"),
    "plan.matrix": ("Matrix", "read_matrix"),
    "report.changes.run_comparison": ("Comparison", "compare_runs"),
    "report.report_files": ("write_report",),
    "report.runs.read": ("RunData", "read_run"),
    "report.formats.rows": ("as_row",),
    "run.live_run": ("LiveRun", "run_plan"),
}
"""Module -> its public names, as the imports above tell type checkers."""


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        for module, names in _HOMES.items():
            if name in names:
                import importlib

                value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{module}"), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> "list[str]":
    return __all__
