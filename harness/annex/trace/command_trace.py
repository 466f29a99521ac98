"""`ep-harness trace`: the error of targets by depth of a model, as sentences, a file and a page."""

import hashlib
import shutil
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec

from harness.annex.trace.trace_study import TRACE_NEEDS, TraceStudy
from harness.annex.trace.what_to_trace import ToTrace, axes_of, cells_to_trace, model_to_trace, target_of
from harness.annex.triage.command_triage import trusted_matrix
from harness.annex.triage.lab import Lab
from harness.cli.output import notify, print_result, wrapped
from harness.cli.targets import ProviderRequest, wanted_matrix
from harness.core.files.writing import write_aside, writing
from harness.core.records.trace import (
    TRACE_FILE,
    TRACE_FOLDER,
    KeptFloat32,
    Trace,
    TracedModel,
    TracedPartition,
    encode_trace,
)
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK, EXIT_UNEXPECTED, UsageError
from harness.core.text.visible_text import visible
from harness.engine.prepare import open_suites
from harness.report.pages.depth_page import write_depth_page
from harness.report.runs.read import read_run

_WORK = "work"

KEEPS = ("fp16", "bf16", "int8-static")
"""Conversions that can leave nodes in float32."""
_RIGHT = frozenset({"none", "everywhere", "amplified"})


class TraceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of the command."""

    what: str
    cells: tuple[str, ...]
    targets: tuple[str, ...]
    settings: ProviderRequest
    matrix: Path | None = None
    inputs: Path | None = None
    out: Path | None = None
    advise: bool = False
    resume: bool = False


class TraceOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--json`` prints: the traces, and where the file and the page are."""

    file: str
    page: str
    traces: tuple[Trace, ...]


def trace(request: TraceRequest, *, as_json: bool) -> int:
    """Trace a model, or cells of a run, write the file and the page, and print the sentences.

    Returns:
        0 if there is no error but rounding, 1 if there is another one, 3 if a target could not be traced or
        an error not be located, 130 if interrupted.
    """
    run = Path(request.what)
    is_run = (run / "run.json").is_file()
    out = request.out or (run / TRACE_FOLDER if is_run else Path(TRACE_FOLDER))
    if (out / TRACE_FILE).exists() and not request.resume and request.out is None and is_run:
        notify(f"replaced {out / TRACE_FILE}")
    if request.advise and not is_run and not any("precision=" in one for one in request.targets):
        what = "nodes can be kept in float32 only where the model is converted"
        hint = f"name one of these: --target 'MATRIX.toml:NAME[precision={KEEPS[0]}]' ({', '.join(KEEPS)})"
        raise UsageError.at("--advise", what, hint)
    wanted = list(_of_run(run, request) if is_run else _of_model(request))
    traces: list[Trace] = []
    try:
        for _, group in groupby(wanted, key=lambda one: one.subject.digest):
            traces.append(_traced(list(group), out, request))
    except KeyboardInterrupt:
        notify("interrupted: continue with --resume")
        return EXIT_INTERRUPTED
    with writing(out):
        write_aside(out / TRACE_FILE, b"".join(map(encode_trace, traces)).decode())
    page = write_depth_page(tuple(traces), out)
    result = TraceOutcome(file=str(out / TRACE_FILE), page=str(page), traces=tuple(traces))
    print_result(result, _lines(result), as_json=as_json)
    findings = {target.finding for one in traces for target, _ in one.targets}
    if "unknown" in findings:
        return EXIT_INCOMPLETE
    return EXIT_OK if findings <= _RIGHT else EXIT_UNEXPECTED


def _of_model(request: TraceRequest) -> Iterator[ToTrace]:
    if request.cells:
        hint = "name targets by --target"
        raise UsageError.at(request.cells[0], f"cells need a run folder, and {request.what} is none", hint)
    if not request.targets:
        hint = "such as --target OpenVINOExecutionProvider --plugin onnxruntime_ep_openvino"
        raise UsageError.at("--target", "a model needs at least one", hint)
    subject, source = model_to_trace(request.what, request.inputs, notify)
    for text in request.targets:
        if ".toml" in text:
            target, axes = target_of(text)
        else:
            provider, _, rest = text.partition("[")
            asked = msgspec.structs.replace(request.settings, provider=provider)
            (target,) = wanted_matrix(asked).targets
            axes = axes_of(rest.removesuffix("]"))
        plain = msgspec.structs.replace(target, axes={}, alone=False, workers=1, retries=0)
        yield ToTrace(model=request.what, subject=subject, inputs=source, target=plain, axes=axes)


def _of_run(run: Path, request: TraceRequest) -> Iterator[ToTrace]:
    if request.targets or request.inputs:
        what = "--target and --inputs are for a model; a run has both"
        raise UsageError.at(request.what, what, "name cells of the run, or a model")
    if not request.cells:
        raise UsageError.at(request.what, "which cells?", f"ep-harness trace {request.what} 'CELL'")
    data = read_run(run)
    matrix, records = trusted_matrix(data, request.matrix)
    for one in cells_to_trace(matrix, open_suites(matrix), records, request.cells, notify):
        target = msgspec.structs.replace(one.target, axes={}, alone=False, workers=1, retries=0)
        yield msgspec.structs.replace(one, target=target)


def _traced(wanted: list[ToTrace], out: Path, request: TraceRequest) -> Trace:
    """Trace one model on its targets."""
    first = wanted[0]
    targets = {one.target.name: one.target for one in wanted}
    whole = hashlib.sha256(repr([first.subject.digest, *targets.values()]).encode()).hexdigest()
    work = out / _WORK / whole[:16]
    with writing(work):
        if not request.resume:
            shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
    found, partitions = [], list[TracedPartition]()
    with Lab(tuple(targets.values()), work, notify, TRACE_NEEDS) as lab:
        for one in wanted:
            notify(f"trace    {visible(one.model)} on {visible(one.target.name)}")
            study = TraceStudy(lab, one.subject, one.target.name, one.axes, notify)
            result, nodes, parts = study.run()
            if request.advise and dict(one.axes).get("precision") in KEEPS:
                result = study.keep(result, nodes)
            found.append((result, nodes))
            partitions += parts
            notify(f"{found[-1][0].target}: {found[-1][0].sessions} sessions, {found[-1][0].seconds:.0f} s")
    model = TracedModel(
        model=first.model, digest=first.subject.digest, nodes=len(study.net.nodes), inputs=first.inputs
    )
    return Trace(model=model, targets=tuple(found), partitions=tuple(partitions))


def _lines(found: TraceOutcome) -> Iterator[str]:
    for one in found.traces:
        for target, _ in one.targets:
            yield from wrapped(visible(f"{target.target}: {target.sentence}"), indent="  ")
            if target.keep is not None:
                yield from wrapped(visible(_kept(target.keep)), indent="  ")
            if target.disturbed:
                yield from wrapped(
                    f"Watching changes what is computed at {target.disturbed} nodes: an EP fuses them. "
                    "What each makes alone stands; what it inherits is that of another computation.",
                    indent="  ",
                )
        if one.model.inputs == "generated":
            yield from wrapped(
                "The inputs are generated: they rank nodes otherwise than real ones. Give --inputs FILE.npz."
            )
    yield f"trace    {found.file}"
    yield f"page     {found.page}"


def _kept(keep: KeptFloat32) -> str:
    names = ", ".join(keep.nodes)
    before, after = (
        "NaN or infinity" if one.special or one.relative is None else f"relative error {one.relative:.2g}"
        for one in (keep.before, keep.after)
    )
    times = ""
    if keep.before_ms is not None and keep.after_ms is not None:
        times = f"; first run {keep.before_ms:.3g} ms, then {keep.after_ms:.3g} ms (median of 5)"
    return f"keep     in float32: {names}. Before: {before}; with it: {after}{times}."
