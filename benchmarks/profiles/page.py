"""The page about the profiles: what each is for, its cases, and what they detect."""

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.profiles.choose import (
    BUDGET_TIME,
    COVERED,
    Held,
    Limits,
    candidates,
    cover,
    held_out,
    limits_of,
)
from benchmarks.profiles.finding import Finding
from benchmarks.profiles.freeze import name_of, read_refused
from benchmarks.profiles.known import Known
from benchmarks.profiles.page_corpus import corpus_of, dropped, refused_of, together
from benchmarks.profiles.page_parts import details, planted, reached, real, section, share
from benchmarks.profiles.plans import BY_FAULT, PLANS
from harness.annex.conformance.freeze import CaseCandidate
from harness.annex.conformance.profiles.profile import load_profile, profiles_folder
from harness.core.records.scenario import PLAIN

Selection = Mapping[str, Sequence[CaseCandidate]]

HEAD = """# Profiles

A profile is a frozen set of cases that an execution provider has to compute. This page is written by
`python -m benchmarks.profiles page`; `benchmarks/profiles/selection.json` has what was chosen, and
`matrices/profiles` what was frozen of it.

| profile | for | cases | core | operators | archive, kB | s |
|---|---|---:|---:|---:|---:|---:|
"""

DETECTION = f"""
`quick@1` is made of the others by `python -m benchmarks.profiles quick`, with the same bytes: the largest case of each operator up to opset
21, float16 and quantized operators, and whole networks, 132 cases. It is for a first look at a device:
[`ep-harness submit`](../how-to/submit.md).

The seconds, here and below, are those of a session and its first run on the CPU EP, for each plain case.

## Detection

The aim: a frozen profile finds 95% of what the whole corpus finds of planted faults, in a tenth of its time.

Cases are chosen by what they show: faults that are planted in every model, one at a time, and failures of
real providers. A figure for faults by which the cases were chosen says little, so the table also has faults
that the choice did not know: half of all faults, drawn by a digest of their names, are held out, and the
cases are chosen by the other half; both halves are held out in turn. What counts is how many of the held-out
faults that the candidates show the chosen ones show, too. The candidates of a profile are all models of
the corpus that are about its operators and can be cases.

The next case is always the one with most new faults for its cost: the parts that it takes of a million bytes
and of {BUDGET_TIME:.0%} of the corpus's time. With what is left, each fault gets a second case. The aim is
about faults that the choice knew, and it says so little of others that the column of those held out is beside
it: where that is below 95%, a provider with a fault of a new kind is found out less often than the aim says.

| profile | candidates | planted faults | found | real | found | of all, held out | s of all | of cases | of the corpus | aim |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|
"""  # noqa: E501 - a row of a table

HALVES = """
Two halves share operators: a case that is chosen for one fault of an operator often shows another. Harder
is a whole kind of fault that the choice does not know:

| profile | kind held out | faults | found |
|---|---|---:|---:|
"""

RULES = """
## Other rules

The same candidates by other rules: by bytes alone, and with one case for each fault.

| profile | rule | cases | s | planted, found | of all, held out |
|---|---|---:|---:|---:|---:|
"""

KINDS = """
The kinds are:

* `simple`: a kernel is wrong for an operator and an element type: all of its result, the last element, the
  last row, or the order of elements; or it computes with eight bits.
* `form`: a kernel is wrong for one form of its arguments: a rank, an attribute's value, an input that
  is given.
* `rare`: forms that few models have, of the benchmark of generated models.
* `rare, of second runs`: faults of that benchmark that a kernel has from its second run on. Here they are
  planted in a single run: they show which operators are reached, not that a second run is compared.
* `computed`: wrong formulas, of the benchmark of detection, by operator.
* `real`: failures of real providers, by target, verdict and operators.

Each fault is planted in two nodes of a model at most. A verdict is that of the default rules: an output
fails if it exceeds both the table and the noise. `simple` and `form` faults are
coarse: they show which kernels and forms are reached, not how fine an error is seen.
"""


def page(selection: Selection, known: Known) -> str:
    """Return the page.

    Raises:
        ValueError: A frozen profile is not that of the selection.
    """
    by_key = {one.key: one for one in known.findings}
    refused = read_refused()
    frozen = {
        label: [one for one in entries if name_of(one.suite, one.model, one.scenario) not in refused]
        for label, entries in selection.items()
    }
    rows: list[str] = []
    detection: list[str] = []
    kinds: list[str] = []
    rules: list[str] = []
    for label, entries in frozen.items():
        if len(entries) != len(load_profile(label).cases):
            raise ValueError(f"{label}: the frozen profile is not that of the selection; freeze it first")
    of_api = [section(load_profile(label)) for label in frozen if label not in BY_FAULT]
    frozen = {label: entries for label, entries in frozen.items() if label in BY_FAULT}
    for label, entries in frozen.items():
        chosen = [by_key[one.suite, one.model] for one in entries if one.scenario == PLAIN]
        found = candidates(known.admissible, PLANS[label], known.shown)
        rows.append(_row(label, entries, chosen))
        held = held_out(found, known.shown, limits_of(known.corpus), PLANS[label].kept)
        detection.append(_detection(label, found, chosen, known, held))
        kinds += [
            f"| `{label}` | {one.what.removeprefix('kind ')} | {one.faults:,} "
            f"| {share(one.found, one.faults)} |\n"
            for one in held
            if one.what.startswith("kind")
        ]
        rules += _rules(label, found, known)
    return "".join(
        [
            HEAD, *rows, DETECTION, *detection, HALVES, *kinds, KINDS, together(frozen, known),
            corpus_of(known), RULES, *rules, dropped(known), refused_of(known), details(frozen, by_key),
            *of_api,
        ]
    )  # fmt: skip


def _row(label: str, entries: Sequence[CaseCandidate], chosen: Sequence[Finding]) -> str:
    core = sum(one.feature == "core" for one in entries)
    ops = {op for one in chosen for op in one.ops}
    kilobytes = (profiles_folder() / f"{label}.zip").stat().st_size / 1000
    return (
        f"| `{label}` | {PLANS[label].title} | {len(entries)} | {core} | {len(ops)} "
        f"| {kilobytes:.0f} | {_seconds(chosen):.2f} |\n"
    )


def _detection(
    label: str, found: Sequence[Finding], chosen: Sequence[Finding], known: Known, held: Sequence[Held]
) -> str:
    part, whole = _seconds(chosen), sum(known.corpus.values())
    every, seen = planted(found, known.shown), planted(chosen, known.shown)
    of_eps, of_cases = real(found, known.shown), real(chosen, known.shown)
    return (
        f"| `{label}` | {len(found):,} | {len(every):,} | {share(len(seen & every), len(every))} "
        f"| {len(of_eps):,} | {share(len(of_cases & of_eps), len(of_eps))} "
        f"| {_of_halves(held)} | {_seconds(found):.2f} | {part:.2f} | {share(part, whole)} "
        f"| {reached(len(seen & every) / len(every), part / whole)} |\n"
    )


def _rules(label: str, found: Sequence[Finding], known: Known) -> Iterator[str]:
    both = limits_of(known.corpus)
    bytes_alone = Limits(nbytes=both.nbytes, seconds=float("inf"))
    for rule, limits, covered in (
        ("bytes, one case", bytes_alone, 1),
        ("bytes, two cases", bytes_alone, COVERED),
        ("time and bytes, one case", both, 1),
        ("time and bytes, two cases", both, COVERED),
    ):
        chosen = cover(found, known.shown, limits, PLANS[label].kept, covered)
        held = held_out(found, known.shown, limits, PLANS[label].kept, covered)
        yield (
            f"| `{label}` | {rule} | {len(chosen)} | {_seconds(chosen):.2f} "
            f"| {_found(chosen, found, known)} | {_of_halves(held)} |\n"
        )


def _found(chosen: Sequence[Finding], found: Sequence[Finding], known: Known) -> str:
    every = planted(found, known.shown)
    return share(len(planted(chosen, known.shown) & every), len(every))


def _of_halves(held: Sequence[Held]) -> str:
    halves = [one for one in held if one.what.startswith("half")]
    return share(sum(one.found for one in halves), sum(one.faults for one in halves))


def _seconds(some: Sequence[Finding]) -> float:
    return sum(one.seconds for one in some)
