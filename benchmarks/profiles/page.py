"""The page about the profiles: what each is for, its cases, and what they detect."""

from collections.abc import Mapping, Sequence

from benchmarks.profiles.choose import Entry, Held, Shown, candidates, held_out
from benchmarks.profiles.finding import Finding
from benchmarks.profiles.freeze import Refused, name_of, read_refused
from benchmarks.profiles.known import Known
from benchmarks.profiles.page_parts import details, dropped, refused_of, together
from benchmarks.profiles.plans import PLANS
from harness.core.scenario import PLAIN
from harness.profiles.profile import load_profile, profiles_folder

Selection = Mapping[str, Sequence[Entry]]

HEAD = """# Profiles

A profile is a frozen set of cases that an execution provider has to compute. This page is written by
`python -m benchmarks.profiles page`; `benchmarks/profiles/selection.json` has what was chosen, and
`matrices/profiles` what was frozen of it.

| profile | for | cases | core | operators | archive, kB | s |
|---|---|---:|---:|---:|---:|---:|
"""

DETECTION = """
The seconds, here and below, are those of a session and its first run on the CPU EP, for each plain case.

## Detection

Cases are chosen by what they show: faults that are planted in every candidate, one at a time, and failures
of real providers. A figure for faults by which the cases were chosen says little, so the table begins with
faults that the choice did not know. Half of all faults, drawn by a digest of their names, are held out, and
the cases are chosen by the other half; both halves are held out in turn. What counts is how many of the
held-out faults that the candidates show the chosen ones show, too.

| profile | held-out faults | found | chosen by all | found | seconds of the candidates | of the cases |
|---|---:|---:|---:|---:|---:|---:|
"""

HALVES = """
Two halves share operators: a case that is chosen for one fault of an operator often shows another. Harder
is a whole kind of fault that the choice does not know:

| profile | kind held out | faults | found |
|---|---|---:|---:|
"""

TWICE = """
## Each fault by two cases

The rule was tried with one case for each fault and with two, and two was kept. So the held-out figures are
not quite blind: they were seen for both. Between the two measurements the corpus grew from 1,328 to 1,336
measured candidates, without whole networks and with generated models. The figures above are of another
corpus again, with networks and without generated models, and were not used to choose. They are of the cases
that were frozen; the ones below are of the choice before anything was refused.

| profile | cases, one | held-out found | cases, two | held-out found |
|---|---:|---:|---:|---:|
| `core-opset21@1` | 449 | 83.8% | 455 | 86.1% |
| `cnn@1` | 134 | 75.7% | 171 | 81.6% |
| `transformer@1` | 147 | 89.1% | 213 | 91.6% |
| `qdq@1` | 27 | 98.1% | 33 | 98.4% |
| `llm-ops@1` | 43 | 92.2% | 64 | 95.5% |
| `web@1` | 425 | 80.8% | 426 | 81.9% |
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
    frozen = {label: _kept(label, entries, refused) for label, entries in selection.items()}
    rows, detection, kinds = [], [], []
    for label, entries in frozen.items():
        chosen = [by_key[one.key] for one in entries if one.scenario == PLAIN]
        found = candidates(known.admissible, PLANS[label], known.shown)
        rows.append(_row(label, entries, chosen))
        held = held_out(found, known.shown, PLANS[label].kept)
        detection.append(_detection(label, found, chosen, known.shown, held))
        kinds += [
            f"| `{label}` | {one.what.removeprefix('kind ')} | {one.faults:,} "
            f"| {_share(one.found, one.faults)} |"
            for one in held
            if one.what.startswith("kind")
        ]
    return "".join(
        [
            HEAD, "\n".join(rows), "\n", DETECTION, "\n".join(detection), "\n", HALVES, "\n".join(kinds),
            "\n", KINDS, TWICE, together(frozen, known), dropped(known), refused_of(refused),
            details(frozen, by_key),
        ]
    )  # fmt: skip


def _kept(label: str, entries: Sequence[Entry], refused: Refused) -> list[Entry]:
    """Return the entries that freezing did not refuse."""
    out = refused.get(label, {})
    kept = [one for one in entries if name_of(*one.key, one.scenario) not in out]
    if len(kept) != len(load_profile(label).cases):
        raise ValueError(f"{label}: the frozen profile is not that of the selection; freeze it first")
    return kept


def _row(label: str, entries: Sequence[Entry], chosen: Sequence[Finding]) -> str:
    core = sum(one.feature == "core" for one in entries)
    ops = {op for one in chosen for op in one.ops}
    kilobytes = (profiles_folder() / f"{label}.zip").stat().st_size / 1000
    seconds = sum(one.seconds for one in chosen)
    return (
        f"| `{label}` | {PLANS[label].title} | {len(entries)} | {core} | {len(ops)} "
        f"| {kilobytes:.0f} | {seconds:.2f} |"
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
