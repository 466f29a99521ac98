"""The page about the profiles: what each is for, its cases, and what they detect."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.profiles.choose import Entry, Held, Shown, candidates, held_out
from benchmarks.profiles.finding import Finding
from benchmarks.profiles.plans import FEATURES, PLANS, SCENARIOS

NAMED = 40
"""Names in a list at most."""

Selection = Mapping[str, Sequence[Entry]]

HEAD = """# Profiles

A profile is a frozen set of cases that an execution provider has to compute. This page is written by
`python -m benchmarks.profiles page`; `benchmarks/profiles/selection.json` has the cases.

| profile | for | cases | core | operators | about kB | s |
|---|---|---:|---:|---:|---:|---:|
"""

DETECTION = """
## Detection

Cases are chosen by what they show: faults that are planted in every candidate, one at a time, and failures
of real
providers. A figure for faults by which the cases were chosen says little, so the table begins with faults
that
the choice did not know. Half of all faults, drawn by a digest of their names, are held out, and the cases
are chosen by
the other half; both halves are held out in turn. What counts is how many of the held-out faults that the
candidates show the chosen ones show, too.

| profile | held-out faults | found | chosen by all | found | seconds of the candidates | of the cases |
|---|---:|---:|---:|---:|---:|---:|
"""

HALVES = """
Two halves share operators: a case that is chosen for one fault of an operator often shows another. Harder
is a whole
kind of fault that the choice does not know:

| profile | kind held out | faults | found |
|---|---|---:|---:|
"""

KINDS = """
The kinds are:

* `simple`: a kernel is wrong for an operator and an element type: all of its result, the last element, the
last row, or
  the order of elements; or it computes with eight bits.
* `form`: a kernel is wrong for one form of its arguments: a rank, an attribute's value, an input that is
given.
* `rare`: forms that few models have, of the benchmark of generated models.
* `computed`: wrong formulas, of the benchmark of detection, by operator.
* `real`: failures of real providers, by target, verdict and operators.

Each fault is planted in two nodes of a model at most. A verdict is that of the default rules: an output
fails if it exceeds
both the table and the noise. `simple` and `form` faults are coarse: they show which kernels and forms are
reached, not how fine an error is seen.
"""


def page(selection: Selection, findings: Sequence[Finding], shown: Shown) -> str:
    """Return the page."""
    by_key = {one.key: one for one in findings}
    rows, detection, kinds = [], [], []
    for label, entries in selection.items():
        chosen = [by_key[one.key] for one in entries if one.scenario == "plain"]
        found = candidates(findings, PLANS[label], shown)
        rows.append(_row(label, entries, chosen))
        held = held_out(found, shown, PLANS[label].kept)
        detection.append(_detection(label, found, chosen, shown, held))
        kinds += [
            f"| `{label}` | {one.what.removeprefix('kind ')} | {one.faults:,} "
            f"| {_share(one.found, one.faults)} |"
            for one in held
            if one.what.startswith("kind")
        ]
    return "".join(
        [
            HEAD, "\n".join(rows), "\n", _total(selection, findings, shown),
            DETECTION, "\n".join(detection), "\n", HALVES, "\n".join(kinds), "\n", KINDS,
            _dropped(findings, shown), _details(selection, by_key),
        ]
    )  # fmt: skip


def _row(label: str, entries: Sequence[Entry], chosen: Sequence[Finding]) -> str:
    core = sum(one.feature == "core" for one in entries)
    ops = {op for one in chosen for op in one.ops}
    kilobytes, seconds = sum(one.nbytes for one in chosen) / 1000, sum(one.seconds for one in chosen)
    return (
        f"| `{label}` | {PLANS[label].title} | {len(entries)} | {core} | {len(ops)} "
        f"| {kilobytes:.0f} | {seconds:.2f} |"
    )


def _total(selection: Selection, findings: Sequence[Finding], shown: Shown) -> str:
    keys = {one.key for entries in selection.values() for one in entries}
    whole = [one for one in findings if not one.why_not]
    everything = {fault for one in whole for fault in shown[one.key]}
    seen = {fault for key in keys for fault in shown[key]}
    spent = sum(one.seconds for one in whole)
    part = sum(one.seconds for one in whole if one.key in keys)
    return (
        f"\nAll six together have {len(keys)} of {len(whole)} candidates. They show "
        f"{_share(len(seen), len(everything))} "
        f"of the {len(everything):,} faults that all candidates show, in {part / spent:.0%} of the time "
        f"({part:.1f} of {spent:.1f} s: a session and its first run on the CPU EP for each). The others are "
        "faults of operators that no profile is about, of opsets that it excludes, and of cases that need "
        "several features.\n"
    )


def _detection(
    label: str, found: Sequence[Finding], chosen: Sequence[Finding], shown: Shown, held: Sequence[Held]
) -> str:
    halves = [one for one in held if one.what.startswith("half")]
    out, got = sum(one.faults for one in halves), sum(one.found for one in halves)
    everything = {fault for one in found for fault in shown[one.key]}
    seen = {fault for one in chosen for fault in shown[one.key]} & everything
    whole, part = sum(one.seconds for one in found), sum(one.seconds for one in chosen)
    return (
        f"| `{label}` | {out:,} | {_share(got, out)} | {len(everything):,} "
        f"| {_share(len(seen), len(everything))} | {whole:.2f} | {part:.2f} ({part / whole:.0%}) |"
    )


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _dropped(findings: Sequence[Finding], shown: Shown) -> str:
    silent = [f"`{one.model}`" for one in findings if not one.why_not and not shown[one.key]]
    refused = sum(bool(one.why_not) for one in findings)
    several = "those that need several features at once, so that a failure would not tell which is missing"
    text = (
        f"\n## What was dropped\n\nOf {len(findings)} candidates that the CPU EP passes with a "
        f"golden that tells right "
        f"from wrong, {refused} could not be measured (too large, or of types that this process "
        f"cannot feed); "
        f"{len(silent)} show no fault, planted or real, and are no cases. Further ones are left out "
        f"that show nothing "
        f"beyond what chosen ones show, and {several}.\n"
    )
    if silent:
        more = ", ..." if len(silent) > NAMED else ""
        text += f"\nWithout any fault: {', '.join(silent[:NAMED])}{more}.\n"
    return text


def _details(selection: Selection, by_key: Mapping[tuple[str, str], Finding]) -> str:
    parts = ["\n## The profiles\n"]
    for label, entries in selection.items():
        features = Counter(one.feature for one in entries)
        parts.append(
            f"\n### {label}\n\n{PLANS[label].about}\n\n| feature | cases | meaning |\n|---|---:|---|\n"
        )
        parts += [
            f"| {name} | {features[name]} | {meaning} |\n"
            for name, meaning in {"core": "what every provider places and computes", **FEATURES}.items()
            if features[name]
        ]
        plain = [by_key[one.key] for one in entries if one.scenario not in SCENARIOS]
        parts.append(f"\nCases by operator: {_operators(plain)}.\n")
    return "".join(parts)


def _operators(chosen: Iterable[Finding]) -> str:
    counts = Counter(op for one in chosen for op in one.ops)
    return ", ".join(f"{op} {count}" for op, count in sorted(counts.items()))
