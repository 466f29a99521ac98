"""``REPORT.md``: a fault in the form that onnxruntime's template for bug reports requires."""

from collections.abc import Iterable, Iterator

import numpy as np

from harness.annex.triage.bundle_model import BundleContents, WrittenModel
from harness.annex.triage.distance import CODES, distance
from harness.annex.triage.manifest import BundleManifest, FaultEnvironment
from harness.annex.triage.scrub import Scrubber
from harness.core.records.fault import Condition, Fault, ReducedModel
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.core.values.value import STRING, Array, Tensor, leaves

_SHOWN = 40
"""Largest number of rows of a table."""

WORST = 5
"""Elements shown of each output."""

PRINTED_LINES = 40

_PLATFORMS = (("linux", "Linux"), ("windows", "Windows"), ("macos", "Mac"), ("darwin", "Mac"))


def report_lines(
    contents: BundleContents, manifest: BundleManifest, model: WrittenModel, scrub: Scrubber
) -> Iterator[str]:
    """Yield the report in lines, with an empty one after a paragraph.

    Names from the model are in code spans, which are not interpreted.
    """
    fault = contents.fault
    yield f"### Describe the issue\n\n{_prose(manifest.fault.sentence)}\n"
    yield from _confirmed(manifest, fault)
    for lines in (
        _values(contents),
        _graph(fault, scrub),
        _conditions(fault.conditions, scrub),
        _crash(fault),
        _printed(contents.printed, scrub),
    ):
        yield from lines
    yield from _reproduce(manifest)
    yield from _form(manifest, model)


def _confirmed(manifest: BundleManifest, fault: Fault) -> Iterator[str]:
    told = manifest.fault
    where = f" in the phase {_code(told.phase)}" if told.phase else ""
    cause = f" ({_code(told.cause)})" if told.cause else ""
    yield f"Verdict: {_code(told.verdict)}{where}{cause}. Seen in {told.failures} of {told.trials} trials."
    if told.message:
        yield f"Message, without numbers and names: {_code(told.message)}"
    if told.fed:
        yield f"The model in which it was found was fed: {_code(told.fed)}."
    if fault.scenario:
        yield f"It needs the scenario {_code(fault.scenario)}."
    if fault.usage is not None:
        yield f"It shows only {fault.usage.words}."
    if manifest.preceding:
        count = len(manifest.preceding)
        yield f"It needs {count} other model{'s' if count > 1 else ''} to run before in the same process."
    location = fault.location
    if location is not None and location.nodes:
        nodes = ", ".join(
            f"{_code(name)} ({_code(op)})"
            for name, op in zip(location.nodes, location.op_types, strict=False)
        )
        yield f"Located in {nodes}{'' if location.exact else ', one of which holds it'}."
        if location.fused:
            yield f"Seen only while these are compiled together: {', '.join(map(_code, location.fused))}."
    if fault.reduced is not None:
        reduced = fault.reduced
        weights = {
            "kept": "",
            "random": "; its weights are random numbers",
            "single": "; its weights are constant",
        }
        yield (
            f"Reduced from {reduced.nodes_before} to {len(reduced.nodes)} nodes, "
            f"from {reduced.bytes_before:,} to {reduced.bytes:,} bytes{weights[reduced.weights]}."
        )
    yield ""


def _values(contents: BundleContents) -> Iterator[str]:
    """Yield expected and found values where they differ most."""
    found = {leaf: part for name, value in contents.found for leaf, part in leaves(name, value)}
    if not found:
        return
    yield "#### Expected and found\n"
    for name, value in contents.expected:
        for leaf, part in leaves(name, value):
            other = found.get(leaf)
            if part is not None and other is not None:
                yield from _worst(leaf, part, other, contents.limits.get(name))


def _worst(name: str, expected: Tensor, found: Tensor, limit: float | None) -> Iterator[str]:
    forms = [f"{one.dtype}{list(one.array.shape)}" for one in (expected, found)]
    if forms[0] != forms[1]:
        yield f"Output {_code(name)}: expected {_code(forms[0])}, found {_code(forms[1])}.\n"
        return
    apart = distance(expected, found)
    allowed = "values are not compared" if limit is None else f"limit {limit:.3g}"
    yield f"Output {_code(name)}, {_code(forms[0])}: distance {apart:.3g} from what is expected; {allowed}.\n"
    order = _by_error(expected, found)[:WORST]
    if order.size:
        yield "| element | expected | found |"
        yield "|---|---|---|"
        flats = expected.array.reshape(-1), found.array.reshape(-1)
        for at in order.tolist():
            place = [int(index) for index in np.unravel_index(at, expected.array.shape)]
            yield f"| {place} | {_code(flats[0][at])} | {_code(flats[1][at])} |"
        yield ""


def _by_error(expected: Tensor, found: Tensor) -> Array:
    """Return flat positions of unequal elements, the largest error first; NaN and infinity precede all."""
    one, other = expected.array.reshape(-1), found.array.reshape(-1)
    if expected.dtype == STRING or expected.dtype in CODES:
        return np.flatnonzero(one != other)
    wide = np.complex128 if one.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        one, other = one.astype(wide), other.astype(wide)
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        error = np.where(np.isfinite(one) & np.isfinite(other), np.abs(other - one), np.inf)
    error[same] = -1.0
    order = np.argsort(-error, kind="stable")
    return order[error[order] >= 0]


def _graph(fault: Fault, scrub: Scrubber) -> Iterator[str]:
    reduced = fault.reduced
    if reduced is None:
        return
    yield "#### The graph\n"
    yield "| node | operator | inputs | outputs | attributes |"
    yield "|---|---|---|---|---|"
    for node in reduced.nodes[:_SHOWN]:
        operator = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        attributes = ", ".join(f"{key}={scrub(value)}" for key, value in node.attributes.items())
        cells = (node.name, operator, ", ".join(node.inputs), ", ".join(node.outputs), attributes)
        mark = "**→** " if node.guilty else ""
        yield f"| {mark}{' | '.join(_code(cell) for cell in cells)} |"
    yield from _more(len(reduced.nodes))
    yield ""
    yield from _tensors(reduced)


def _tensors(reduced: ReducedModel) -> Iterator[str]:
    yield "| tensor | role | type | shape |"
    yield "|---|---|---|---|"
    for one in reduced.tensors[:_SHOWN]:
        yield f"| {_code(one.name)} | {one.role} | {_code(one.dtype)} | {_code(one.shape)} |"
    yield from _more(len(reduced.tensors))
    yield ""
    opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in reduced.opsets.items())
    if opsets:
        yield f"Opsets: {_code(opsets)}.\n"


def _conditions(conditions: Iterable[Condition], scrub: Scrubber) -> Iterator[str]:
    rows = list(conditions)
    if not rows:
        return
    yield "#### What was varied, one thing at a time\n"
    yield "| varied | value | the failure |"
    yield "|---|---|---|"
    told = {True: "is there", False: "is gone", None: "cannot be judged"}
    for one in rows[:_SHOWN]:
        verdict = f" ({_code(one.verdict)})" if one.verdict and not one.fails else ""
        name = " ".join(filter(None, (one.kind, scrub(one.name))))
        yield f"| {_code(name)} | {_code(scrub(one.value))} | {told[one.fails]}{verdict} |"
    yield from _more(len(rows))
    yield ""


def _crash(fault: Fault) -> Iterator[str]:
    crash = fault.crash
    if crash is None:
        return
    address = f" at address {crash.address}" if crash.address else ""
    yield f"#### Native stack ({_prose(crash.signal)}{address})\n"
    if crash.culprit:
        yield f"Innermost library outside of the C library and Python: {_code(crash.culprit)}.\n"
    frames = (
        f"#{number} {one.library} {one.function or '?'}+0x{one.offset:x}"
        for number, one in enumerate(crash.frames[:_SHOWN])
    )
    yield from _block(frames)


def _printed(printed: str, scrub: Scrubber) -> Iterator[str]:
    lines = scrub(printed).strip().splitlines()
    if not lines:
        return
    yield "#### What the process printed\n"
    if len(lines) > PRINTED_LINES:
        yield f"The last {PRINTED_LINES} of {len(lines)} lines; `printed.txt` has all.\n"
    yield from _block(lines[-PRINTED_LINES:])


def _reproduce(manifest: BundleManifest) -> Iterator[str]:
    target = manifest.target
    yield "### To reproduce\n"
    yield "Unpack the archive, and run `repro.py`. It needs nothing but the packages of the first line.\n"
    yield "```sh"
    yield f"pip install {' '.join(_requirements(manifest.environment, manifest))}"
    yield "python repro.py   # exit code 0: the fault is gone, 1: it is there, 2: it cannot be judged here"
    yield "```\n"
    for what, sign, table in (
        ("Provider options", "=", target.options),
        ("Device", "=", target.device),
        ("Environment variables", "=", target.env),
        ("Session", ": ", manifest.axes),
    ):
        if table:
            rows = (_code(f"{key}{sign}{value}") for key, value in table.items())
            yield f"{what}: {', '.join(rows)}.\n"
    yield "`ep-harness replay` of ort-ep-harness judges the archive on any target and runs none of it.\n"


def _form(manifest: BundleManifest, model: WrittenModel) -> Iterator[str]:
    found = manifest.environment
    plugin = manifest.target.plugin
    system = found.os.lower()
    library = f"{plugin.package or plugin.library} {plugin.version}".strip() if plugin else ""
    if plugin and plugin.sha256:
        library += f" ({plugin.library}, SHA-256 {plugin.sha256})"
    answers = (
        ("Urgency", "Not stated."),
        ("Platform", next((name for key, name in _PLATFORMS if key in system), "Other / Unknown")),
        ("OS Version", _code(found.os or "unknown")),
        ("ONNX Runtime Installation", "Released Package"),
        ("ONNX Runtime Version or Commit ID", _code(found.onnxruntime or "unknown")),
        ("ONNX Runtime API", f"Python {_prose(found.python)}".strip()),
        ("Architecture", _code(f"{found.architecture or 'unknown'} {found.processor}".strip())),
        ("Execution Provider", _code(" > ".join(manifest.target.provider))),
        ("Execution Provider Library Version", _code(library or "part of onnxruntime")),
        (
            "Model File",
            f"`model.onnx` in the archive{f', made by {_code(model.producer)}' if model.producer else ''}.",
        ),
        ("Is this a quantized model?", "Yes" if model.quantized else "No"),
    )
    for question, answer in answers:
        yield f"### {question}\n\n{answer}\n"


def _requirements(found: FaultEnvironment, manifest: BundleManifest) -> Iterator[str]:
    plugin = manifest.target.plugin
    packages = {name.lower().replace("_", "-"): version for name, version in found.packages.items()}
    wanted = ["numpy", *(name for name in packages if name.startswith("onnxruntime") and "-ep-" not in name)]
    # Other plugin packages are in the same environment, and are irrelevant here.
    of_plugin = plugin.package.lower().replace("_", "-") if plugin and plugin.package else ""
    others = {"onnxruntime-qnn"} - {of_plugin} if "onnxruntime" in packages else set()
    for name in dict.fromkeys((*wanted, *([of_plugin] if of_plugin else ()))):
        if name not in others:
            yield f"'{name}=={packages[name]}'" if name in packages else name


def _more(count: int) -> Iterator[str]:
    if count > _SHOWN:
        yield f"| … {count - _SHOWN} more |"


def _block(lines: Iterable[str]) -> Iterator[str]:
    """Yield a fenced block that its lines cannot end."""
    yield "~~~~~~~~text"
    for line in lines:
        yield "    " + visible(line)
    yield "~~~~~~~~\n"


def _code(text: object) -> str:
    """Return a code span that its content can neither end nor split in a table."""
    line = one_line(visible(str(text))).replace("|", "¦")
    longest = max(
        (len(run) for run in "".join(char if char == "`" else " " for char in line).split()), default=0
    )
    fence = "`" * (longest + 1)
    pad = " " if longest else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else ""


def _prose(text: str) -> str:
    """Return text in which Markdown finds no markup, mention or link."""
    line = one_line(visible(text), 1000)
    for char in "\\`*_[]<>#@|~":
        line = line.replace(char, f"\\{char}")
    return line
