"""Facts about a cell in words: its scenario, and what else its verdict depends on."""

from collections.abc import Iterator

from harness.core.agreement.agreement import agreements_words
from harness.core.comparison.output_metrics import Noise, OutputMetrics, PrecisionError
from harness.core.records.record import Record
from harness.core.records.reference_answer import Adjudication
from harness.core.records.scenario import Observation, ParameterValue
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.report.words.figures import alike, brief, first_of, multiple, ratio

_SHOWN = 4
_CHARS = 600
_NAME_CHARS = 80
_UNITS = {"ms": "ms", "mib": "MiB", "bytes": "bytes"}
_NEARER = {"golden": "the golden is nearer", "ep": "the provider is nearer", "equal": "both are equally near"}


def evidence(record: Record) -> Iterator[tuple[str, str]]:
    """Yield ``(label, text)`` pairs: answers, missing noise, precision, adjudication, repeats."""
    if record.agreement:
        yield "Answers", one_line(agreements_words(record.agreement), _CHARS)
    if record.no_spread:
        yield "Rounding noise", one_line(f"unknown: {record.no_spread}", _CHARS)
    if record.content is not None and (names := record.content.default_noise):
        told = ", ".join(first_of(names, _SHOWN))
        yield "Noise by default", one_line(f"nothing is known about the rounding of {told}", _CHARS)
    costs = [
        _cost(one_line(output.name, _NAME_CHARS), error)
        for output in record.outputs
        if (error := output.precision_error) is not None
    ]
    if costs:
        yield "Cost of the precision", _listed(costs)
    if values := [told for output in record.outputs if (told := _values(output))]:
        yield "Values", _listed(values)
    if record.adjudication:
        yield "Nearer the truth", _listed([_adjudicated(each) for each in record.adjudication])
    if record.repeats is not None:
        repeats = record.repeats
        results = "the same bits" if repeats.distinct == 1 else f"{repeats.distinct:,} different results"
        apart = f", up to {brief(repeats.max_abs)} from the first" if repeats.max_abs else ""
        apart += f", {plural(repeats.differing, 'run')} unlike the first" if repeats.differing else ""
        wanted = "; equal bits are required" if repeats.bit_equal else ""
        sessions = "one session" if repeats.sessions == 1 else f"each of {repeats.sessions:,} sessions"
        where = f"{plural(repeats.runs, 'run')} in {sessions}"
        yield "Repeats", f"{where}: {results}{apart}{wanted}"


def scenario_facts(record: Record) -> Iterator[tuple[str, str]]:
    """Yield ``("Scenario", "dynamic_shapes: shapes given, batch=2; run 3.1, 40 ms")``, or nothing."""
    told = "; ".join(_fact(name, fact) for name, fact in record.scenario.items())
    if told:
        yield "Scenario", one_line(f"{record.axes.get('scenario', '')}: {told}", _CHARS)


def noise_words(noise: Noise | None) -> str:
    """Return ``1.23 × float32, 7.5 × in one element; like tf32``; empty without noise."""  # noqa: RUF002
    if noise is None:
        return ""
    like = f"; like {alike(noise.like)}" if noise.like and noise.like != noise.precision else ""
    words = f"{multiple(noise.rms)} {noise.precision}, {multiple(noise.max)} in one element{like}"
    return one_line(words, _CHARS)


def _cost(name: str, error: PrecisionError) -> str:
    numbers = (
        "" if error.error is None else f"error {brief(error.error)} against the model before conversion",
        "" if error.cpu_error is None else f"the CPU EP's {brief(error.cpu_error)}",
        "" if error.ratio is None else f"ratio {ratio(error.ratio)}",
        f"numbers missing: {one_line(error.unknown, _NAME_CHARS)}" if error.unknown else "",
    )
    return f"{name}: {', '.join(filter(None, numbers))}"


def _values(output: OutputMetrics) -> str:
    """Return what is known about the values of an output beside its errors."""
    details = output.details
    if details is None:
        return ""
    facts = (
        f"random values, judged as {details.distribution}" if details.distribution else "",
        f"at most {multiple(details.steps)} its quantization step off" if details.steps else "",
        f"{plural(details.ties, 'position')} where the values tie" if details.ties else "",
        f"{plural(details.signed_zeros, 'zero')} of the other sign" if details.signed_zeros else "",
        f"{plural(details.flushed, 'subnormal number')} flushed to zero" if details.flushed else "",
        f"{plural(details.undefined, 'element')} that ONNX leaves undefined" if details.undefined else "",
    )
    return f"{one_line(output.name, _NAME_CHARS)}: {', '.join(filter(None, facts))}" if any(facts) else ""


def _adjudicated(found: Adjudication) -> str:
    name, by = one_line(found.output, _NAME_CHARS), one_line(found.by, _NAME_CHARS)
    figures = f"golden {brief(found.golden)}, provider {brief(found.ep)}"
    return f"{name}: {_NEARER[found.nearer]}, by {by}: {figures}"


def _listed(words: list[str]) -> str:
    return one_line("; ".join(first_of(words, _SHOWN, "outputs")), _CHARS)


def _fact(name: str, fact: Observation) -> str:
    stem, _, last = name.rpartition("_")
    unit = _UNITS.get(last, "") if stem else ""
    label = (stem if unit else name).replace("_", " ")
    values = fact if isinstance(fact, tuple) else (fact,)
    return f"{label} {', '.join(map(_scalar, values)) or 'none'}" + (f" {unit}" if unit else "")


def _scalar(value: ParameterValue) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return brief(value)
    return f"{value:,}" if isinstance(value, int) else value
