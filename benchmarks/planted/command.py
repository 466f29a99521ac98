"""The whole benchmark: every model, every fault, the results and the page."""

import argparse
import importlib.metadata
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec

from benchmarks.planted.court import Court
from benchmarks.planted.faults import faults
from benchmarks.planted.honest import honest
from benchmarks.planted.measure import measure
from benchmarks.planted.models import models
from benchmarks.planted.models.model import Model
from benchmarks.planted.page import page
from benchmarks.planted.real import differing, provider_of, records_of
from benchmarks.planted.rows import Results, Row
from benchmarks.planted.subject import Subject
from harness.corpus.caches.cache import ENVIRONMENT
from harness.golden.provenance import provenance

WANTED_ACCUSED = 0.005
"""Share of honest answers that may fail."""


def main() -> int:
    """Exit code 1 where a visible fault passes, or too many honest answers fail."""
    arguments = _arguments()
    started = time.monotonic()
    asked = [one for one in models() if not arguments.model or one.name in arguments.model]
    rows: list[Row] = []
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as processes:
        for one, found in zip(asked, processes.map(rows_of, [one.name for one in asked]), strict=True):
            rows += found
            print(f"{one.name}: {len(found)} answers", flush=True)
    real, otherwise = differing(rows, records_of(tuple(one.name for one in asked)))
    results = Results(
        real=real,
        otherwise=tuple(otherwise),
        providers=tuple(
            provider_of(rows, tuple(one.name for one in asked), name) for name in arguments.provider or ()
        ),
        environment=_environment(),
        models=tuple(one.name for one in asked),
        seconds=time.monotonic() - started,
        rows=tuple(rows),
    )
    arguments.out.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))
    if arguments.page:
        arguments.page.write_text(page(results), encoding="utf-8")
    print(*(f"OTHERWISE {text}" for text in otherwise), sep="\n")
    missed = [row for row in rows if row.is_missed]
    accused = [row for row in rows if row.is_accused]
    for row in (*missed, *accused):
        print(
            "ACCUSED" if row.honest else "MISSED",
            f"{row.kind} | {row.model} | {row.size:.3g} | {row.reason}",
        )
    return 1 if missed or len(accused) > WANTED_ACCUSED * sum(row.honest for row in rows) else 0


def rows_of(model: Model | str, folder: Path | None = None) -> list[Row]:
    """Return all rows of one model, in a folder and with a cache of their own.

    Args:
        model: The model, or its name.
        folder: Where the model, its goldens and its cache go; a temporary one where None.
    """
    found = model if isinstance(model, Model) else next(one for one in models() if one.name == model)
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return rows_of(found, Path(temporary))
    before = os.environ.get(ENVIRONMENT)
    os.environ[ENVIRONMENT] = str(folder / "cache")
    try:
        found.write(folder / "models")
        court = Court(folder)
        rows = list(measure(Subject(found, court), court, faults(), list(honest())))
        if court.errors:
            raise RuntimeError(court.errors[0])
        return rows
    finally:
        if before is None:
            del os.environ[ENVIRONMENT]
        else:
            os.environ[ENVIRONMENT] = before


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planted", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("planted.json"), help="where the results go")
    parser.add_argument("--page", type=Path, help="where the page goes, such as docs/reference/planted.md")
    parser.add_argument("--model", action="append", help="this model only; may be repeated")
    parser.add_argument("--provider", action="append", help="a target of matrices/local.toml, too")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    return parser.parse_args()


def _environment() -> dict[str, str]:
    facts = provenance()
    return {
        "onnxruntime": facts["onnxruntime"],
        "onnx": importlib.metadata.version("onnx"),
        "numpy": importlib.metadata.version("numpy"),
        "processor": facts["processor"],
    }
