"""Parts of the page about the profiles: all six together, what was left out, and each in detail."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.profiles.choose import Entry
from benchmarks.profiles.finding import Finding
from benchmarks.profiles.freeze import Refused
from benchmarks.profiles.known import Known
from benchmarks.profiles.plans import FEATURES, PLANS
from harness.core.scenario import PLAIN

NAMED = 40
"""Names in a list at most."""

AIM = 0.95, 0.1
"""Share of the faults at least, and of the corpus's time at most."""

ZOO = "zoo"
"""The suite of whole networks."""

Frozen = Mapping[str, Sequence[Entry]]


def together(frozen: Frozen, known: Known) -> str:
    """Return what all profiles find together, and in which part of the time."""
    keys = {one.key for entries in frozen.values() for one in entries if one.scenario == PLAIN}
    whole = [one for one in known.findings if not one.why_not]
    everything = {fault for one in whole for fault in known.shown[one.key]}
    seen = {fault for key in keys for fault in known.shown[key]}
    spent, part = sum(one.seconds for one in whole), sum(one.seconds for one in whole if one.key in keys)
    corpus = sum(known.corpus.values())
    reached = len(seen) / len(everything) >= AIM[0] and part / corpus <= AIM[1]
    return (
        f"\n## All six together\n\nThey have {len(keys)} of {len(whole):,} measured candidates and show "
        f"{len(seen) / len(everything):.1%} of the {len(everything):,} faults that all of these show, in "
        f"{part / spent:.0%} of their time ({part:.1f} of {spent:.1f} s). The whole corpus, with networks "
        f"and generated graphs that were no candidates, has {len(known.corpus):,} models that the CPU EP "
        f"passes and takes {corpus:.1f} s; the profiles take {part / corpus:.0%} of that. What they miss "
        "are faults of operators that no profile is about, of opsets that it excludes, and of cases that "
        "need several features. The aim, 95% of what the whole corpus finds in a tenth of its time, is "
        f"{'reached' if reached else 'not reached'}.\n"
    )


def dropped(known: Known) -> str:
    """Return how many candidates are no cases, and why."""
    silent = [f"`{one.model}`" for one in known.findings if not one.why_not and not known.shown[one.key]]
    total = len(known.findings) + known.unmeasured
    reasons = Counter(_kind_of(one.why_not) for one in known.findings if one.why_not)
    text = (
        f"\n## What was left out\n\nOf {total:,} candidates that the CPU EP passes with a golden that "
        f"tells right from wrong, {known.unmeasured:,} were not measured, and {sum(reasons.values()):,} "
        f"could not be. {len(silent)} show no fault, planted or real, and are no cases. Further ones are "
        "left out that show nothing beyond what chosen ones show, and those that need several features at "
        "once, so that a failure would not tell which is missing.\n"
    )
    if reasons:
        text += "\nCould not be measured:\n\n" + _listed(reasons)
    if silent:
        more = ", ..." if len(silent) > NAMED else ""
        text += f"\nWithout any fault: {', '.join(silent[:NAMED])}{more}.\n"
    return text


def refused_of(refused: Refused) -> str:
    """Return how many chosen candidates freezing refused, by reason."""
    every = {name: why for names in refused.values() for name, why in names.items()}
    if not every:
        return ""
    return (
        f"\nFreezing refused {len(every)} candidates that had been chosen, because nobody could be held to "
        "their goldens, or because the CPU EP itself does not pass them by the rules of the profile. They "
        "are no candidates in the tables of detection, and the next choice leaves them out.\n\n"
        + _listed(Counter(map(_kind_of, every.values())))
    )


def _kind_of(why: str) -> str:
    """Return a reason without what differs from case to case."""
    parts = why.split(": ")
    return (
        ": ".join(parts[:2]) if parts[0] in {"disputed", "weak", "the CPU EP does not pass it"} else parts[0]
    )


def _listed(reasons: Counter[str]) -> str:
    lines = [f"| {why.replace('|', '/')} | {count} |\n" for why, count in reasons.most_common()]
    return "| reason | candidates |\n|---|---:|\n" + "".join(lines)


def details(frozen: Frozen, by_key: Mapping[tuple[str, str], Finding]) -> str:
    """Return a section for each profile."""
    parts = ["\n## The profiles\n"]
    for label, entries in frozen.items():
        features = Counter(one.feature for one in entries)
        parts.append(
            f"\n### {label}\n\n{PLANS[label].about}\n\n| feature | cases | meaning |\n|---|---:|---|\n"
        )
        parts += [
            f"| {name} | {features[name]} | {meaning} |\n"
            for name, meaning in {"core": "what every provider places and computes", **FEATURES}.items()
            if features[name]
        ]
        networks = sorted({one.model for one in entries if one.suite == ZOO})
        if networks:
            parts.append(f"\nWhole networks: {', '.join(f'`{one}`' for one in networks)}.\n")
        plain = [by_key[one.key] for one in entries if one.scenario == PLAIN]
        parts.append(f"\nCases by operator: {_operators(plain)}.\n")
    return "".join(parts)


def _operators(chosen: Iterable[Finding]) -> str:
    counts = Counter(op for one in chosen for op in one.ops)
    return ", ".join(f"{op} {count}" for op, count in sorted(counts.items()))
