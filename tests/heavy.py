"""Records of a report with many cells: made, not run, and of every look that its pages know."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.core.records.record import ModelContent, Record
from harness.core.records.verdict import Family, Verdict
from tests.kit import latency, record, write_run
from tests.triages import fault, write_triage

OPERATORS = 180
TARGETS = tuple(
    f"{device}-{option}" for device in ("npu", "gpu", "cpu") for option in ("fp32", "tuned", "a8")
)
VERDICTS = (
    *(Verdict.PASS,) * 10,
    *(Verdict.FALLBACK,) * 3,
    *(Verdict.UNSUPPORTED, Verdict.MISMATCH, Verdict.PASS_PARTIAL, Verdict.ERROR, Verdict.NO_GOLDEN),
    *(Verdict.PASS, Verdict.PRECISION_LOSS, Verdict.UNAVAILABLE),
)


def heavy_records(cells: int) -> Iterator[Record]:
    """Yield the records of ten columns, in suites of a thousand models; a failure in five is expected."""
    for number in range(cells):
        model, column = divmod(number, len(TARGETS) + 1)
        name = f"test_{op_of(model).lower()}_case_{model:05}"
        mode = {"execution_mode": "parallel"} if column == len(TARGETS) else {}
        verdict = VERDICTS[(model * 7 + column * 3 + model // 60) % len(VERDICTS)]
        yield record(
            name,
            verdict,
            suite=f"suite-{model // 1000}",
            target=TARGETS[column % len(TARGETS)],
            axes=mode,
            op=op_of(model),
            bits=None if verdict is Verdict.NO_GOLDEN else 18 + number % 60 / 10,
            expected=verdict is Verdict.PASS or number % 5 != 0,
            reason=""
            if verdict is Verdict.PASS
            else f"output 'y' of {name}: {number % 97} of 12 elements differ",
            content=ModelContent(
                opsets={"ai.onnx": 13 + model % 10}, ops={op_of(model): 1}, types=("float32",)
            ),
            latency=latency(1.0, 1.1, 1.0 + number % 50 / 10) if verdict is Verdict.PASS else None,
        )


def heavy_runs(folder: Path, cells: int) -> tuple[Path, Path]:
    """Write a run with these records and 200 faults, and an older one in which every verdict is another's."""
    records = list(heavy_records(cells))
    later = records[11:] + records[:11]
    older = (
        msgspec.structs.replace(
            one, verdict=other.verdict, family=other.family, expected=other.expected, reason=other.reason
        )
        for one, other in zip(records, later, strict=True)
    )
    run = write_run(folder / "run", records)
    failed = [one.cell for one in records if one.verdict.family is Family.FAILED]
    faults = (fault(f"F{number:010}", *failed[number::200]) for number in range(200) if failed[number::200])
    write_triage(run, *faults)
    return run, write_run(folder / "older", list(older))


def op_of(model: int) -> str:
    """Return the type of operator of a model."""
    return f"Operator{model // 5 % OPERATORS}"


def weights(site: Path) -> dict[str, tuple[int, int]]:
    """Return page -> its files, and the bytes of the heaviest; ``models-7.html`` is of ``models``."""
    found: dict[str, list[int]] = {}
    for path in site.glob("*.html"):
        stem, _, number = path.stem.rpartition("-")
        found.setdefault(stem if number.isdecimal() and stem else path.stem, []).append(path.stat().st_size)
    return {page: (len(sizes), max(sizes)) for page, sizes in sorted(found.items())}
