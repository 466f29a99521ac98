import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from harness.core.cell import AXIS_DEFAULTS, Cell
from harness.core.output_metrics import OutputMetrics
from harness.core.record import SCHEMA, Record, encode_record
from harness.core.run_info import RunInfo
from harness.core.verdict import Family, Verdict
from harness.store.store import Store, open_store

MakeRecord = Callable[..., Record]
WriteRun = Callable[..., Path]
Opened = Callable[[], Store]


def make_record(model: str = "abs", verdict: Verdict = Verdict.PASS, **fields: object) -> Record:
    axes = tuple(sorted(AXIS_DEFAULTS.items()))
    cell = Cell(suite="onnx-node", model=model, target="npu", axes=axes)
    output = OutputMetrics(
        name="y", dtype="float32", shape=(4,), delivered_bits=20.5, headroom=0.25, elements=4
    )
    base: dict[str, object] = {
        "schema": SCHEMA,
        "cell": cell.id,
        "suite": cell.suite,
        "model": model,
        "target": cell.target,
        "provider": "NpuExecutionProvider",
        "verdict": verdict,
        "family": verdict.family,
        "expected": verdict.family is not Family.FAILED,
        "axes": dict(axes),
        "outputs": (output,) if verdict.family is Family.PASSED else (),
        "started": "2026-11-20T10:00:00Z",
        "attempt": 1,
    }
    return msgspec.convert({**base, **fields}, Record, from_attributes=True)


def write_folder(
    folder: Path,
    records: Sequence[Record],
    *,
    complete: bool = True,
    planned: Sequence[str] = (),
    runtime: str = "1.30",
) -> Path:
    """A run that was finished long ago, so that its times are told apart from those of a later change."""
    cells = sorted(set(planned) | {record.cell for record in records})
    plan = "".join(f"{cell}\n" for cell in cells).encode()
    info = RunInfo(
        schema=SCHEMA,
        plan=hashlib.sha256(plan).hexdigest(),
        cells=len(cells),
        matrix={"path": "matrices/nightly.toml"},
        targets={"npu": {"onnxruntime": runtime}},
        complete=complete,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_bytes(msgspec.json.encode(info))
    (folder / "plan.txt").write_bytes(plan)
    (folder / "records.jsonl").write_bytes(b"".join(encode_record(record) + b"\n" for record in records))
    return folder


@pytest.fixture
def record() -> MakeRecord:
    return make_record


@pytest.fixture(scope="module")
def module_night() -> WriteRun:
    """Write a folder with one run of one cell."""

    def write(runs: Path) -> Path:
        write_folder(runs / "night", [make_record("abs")])
        return runs

    return write


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture
def night(runs: Path) -> WriteRun:
    """Write the run of one night; its number is the day of the month."""

    def write(number: int, *records: Record, **fields: object) -> Path:
        started = f"2026-11-{number:02}T02:00:00Z"
        dated = [msgspec.structs.replace(each, started=started) for each in records]
        return write_folder(runs / f"night-{number:02}", dated, **fields)  # type: ignore[arg-type]

    return write


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the clock be an hour later, as for files that were written long ago."""

    def later() -> None:
        now_ns = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 3_600_000_000_000)

    return later


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def rows(runs: Path, place: Path, told: list[str]) -> Callable[[str], list[tuple[object, ...]]]:
    """Bring the store up to date, and return the rows of a query."""

    def asked(sql: str) -> list[tuple[object, ...]]:
        with open_store(runs, place, told.append) as store:
            return list(store.rows(sql))

    return asked


@pytest.fixture
def store(runs: Path, place: Path, told: list[str], night: WriteRun) -> Iterator[Store]:
    """The store of one run of two cells."""
    night(1, make_record("abs"), make_record("neg", Verdict.MISMATCH, reason="differs"))
    with open_store(runs, place, told.append) as opened:
        yield opened


def keep_times(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file, and give it back its time of modification."""
    before = path.stat()
    path.write_bytes(change(path.read_bytes()))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture
def altered() -> Callable[..., None]:
    return keep_times
