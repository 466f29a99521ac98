"""The whole benchmark: other providers, every model, the results and the page."""

import argparse
import importlib.metadata
import platform
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec

from benchmarks.detection.elsewhere import STRANGERS, Answer, Stranger, ask
from benchmarks.detection.measure import FULL, Bench
from benchmarks.detection.page import page
from benchmarks.detection.policies import BOTH, CALIBRATED, POLICIES
from benchmarks.detection.rows import Measured, Results
from benchmarks.detection.subjects import Subject, subjects
from benchmarks.detection.tally import accused, found
from benchmarks.generation.page import section_of, with_section
from harness.golden.provenance import provenance

WANTED_FOUND = 0.99
WANTED_ACCUSED = 0.005
ALL = (FULL, "float16", "bfloat16")
DRAWS = 3
"""Of weights and inputs: with one alone there are too few healthy results to speak of half a percent."""

PAGE = Path("docs/reference/detection.md")


def main() -> int:
    """Exit code 1 where the calibrated tolerance does not do what it should."""
    arguments = _arguments()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        models = subjects(folder, arguments.model or (), DRAWS)
        answers: dict[str, dict[str, Answer]] = {one.label: {} for one in models}
        print(f"{len(models)} models; other providers first", flush=True)
        with ThreadPoolExecutor(arguments.jobs) as threads:
            for stranger, got in threads.map(lambda one: _ask(one, models, folder), STRANGERS):
                for name, answer in got.items():
                    answers[name][stranger.name] = answer
                values = sum(answer.values is not None for answer in got.values())
                print(f"{stranger.name}: {values} of {len(got)} models", flush=True)
        measured = []
        with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as processes:
            # The deepest first: they take longest.
            order = sorted(models, key=lambda one: (one.draw, -(one.layers or 0)))
            asked = [processes.submit(_measure, one, answers[one.label]) for one in order]
            for one, future in zip(order, asked, strict=True):
                measured.append(future.result())
                print(f"{one.label}: {len(measured[-1].rows)} results", flush=True)
    results = Results(environment=_environment(), seconds=time.monotonic() - started, models=tuple(measured))
    arguments.out.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1))
    if arguments.page:
        kept = section_of(arguments.page.read_text(encoding="utf-8")) if arguments.page.exists() else ""
        arguments.page.write_text(with_section(page(results), kept), encoding="utf-8")
    return _verdict(results)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("detection.json"), help="where the results go")
    parser.add_argument("--page", type=Path, help=f"where the page goes, such as {PAGE}")
    parser.add_argument("--model", action="append", help="this model only; may be repeated")
    parser.add_argument("--folder", type=Path, help="keeps models and the answers of other providers")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    return parser.parse_args()


def _ask(stranger: Stranger, models: list[Subject], folder: Path) -> tuple[Stranger, dict[str, Answer]]:
    wanted = [one for one in models if stranger.precision in _precisions(one)]
    return stranger, dict(ask(stranger, wanted, folder))


def _measure(subject: Subject, answers: dict[str, Answer]) -> Measured:
    return Bench(subject, answers).measure(_precisions(subject), faults=subject.draw == 0)


def _precisions(subject: Subject) -> tuple[str, ...]:
    """Depth and draws are studied at float32."""
    return ALL if subject.layers is None and subject.draw == 0 else (FULL,)


def _environment() -> dict[str, str]:
    facts = provenance()
    return {
        "onnxruntime": facts["onnxruntime"],
        "onnx": importlib.metadata.version("onnx"),
        "numpy": importlib.metadata.version("numpy"),
        "processor": facts["processor"],
        "system": platform.platform(),
    }


def _verdict(results: Results) -> int:
    rows = [row for one in results.models for row in one.rows if row.precision == FULL]
    for policy in POLICIES:
        print(f"{policy.name:34} finds {found(rows, policy.name)!s:24} accuses {accused(rows, policy.name)}")
    finds = found(rows, CALIBRATED).share >= WANTED_FOUND
    leaves = all(accused(rows, policy).share <= WANTED_ACCUSED for policy in (CALIBRATED, BOTH))
    return 0 if finds and leaves else 1
