"""Parts of the page about the profiles: all six together, the whole corpus, and what was left out."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from benchmarks.profiles.choose import candidates
from benchmarks.profiles.known import Known
from benchmarks.profiles.page_parts import planted, reached, real, share
from benchmarks.profiles.plans import BY_FAULT, MOST_FEATURES
from harness.annex.conformance.freeze import CaseCandidate
from harness.core.records.scenario import PLAIN

NAMED = 40
"""Names in a list at most."""

Frozen = Mapping[str, Sequence[CaseCandidate]]


def together(frozen: Frozen, known: Known) -> str:
    """Return what all profiles find together, and in which part of the time."""
    keys = {(one.suite, one.model) for entries in frozen.values() for one in entries if one.scenario == PLAIN}
    whole = [one for one in known.findings if not one.why_not]
    chosen = [one for one in whole if one.key in keys]
    spent, corpus = sum(one.seconds for one in chosen), sum(known.corpus.values())
    every, seen = planted(whole, known.shown), planted(chosen, known.shown)
    possible = planted(known.admissible, known.shown)
    of_eps, found = real(whole, known.shown), real(chosen, known.shown)
    return (
        f"\n## All six together\n\nThey have {len(keys)} of {len(whole):,} measured models and take "
        f"{spent:.2f} s, {share(spent, corpus)} of the time of the whole corpus. Possible cases show "
        f"{len(possible):,} planted faults, and the six find {share(len(seen & possible), len(possible))} of "
        "them. Taken as an aim for all of them at once, that of each profile is "
        f"{reached(len(seen & possible) / len(possible), spent / corpus)}.\n\n"
        f"All measured models, those that can be no case included, show {len(every):,} planted faults; the "
        f"six show {share(len(seen), len(every))} of these, and {share(len(found), len(of_eps))} of "
        f"{len(of_eps):,} real ones.\n\n" + _missed(every - seen, known)
    )


def _missed(missed: Collection[str], known: Known) -> str:
    """Return why planted faults are missed."""
    possible = {
        fault
        for plan in BY_FAULT.values()
        for one in candidates(known.admissible, plan, known.shown)
        for fault in known.shown[one.key]
    }
    admissible = planted(known.admissible, known.shown)
    counts = {
        "candidates show them, and there was no room": sum(one in possible for one in missed),
        "only models show them that are in no profile: by their operators or opset, or by more than "
        f"{MOST_FEATURES} features": sum(one in admissible and one not in possible for one in missed),
        "only models show them that can be no case": sum(one not in admissible for one in missed),
    }
    rows = [f"| {why} | {count:,} |\n" for why, count in counts.items()]
    return f"| why {len(missed):,} planted faults are missed | faults |\n|---|---:|\n" + "".join(rows)


def corpus_of(known: Known) -> str:
    """Return what the corpus is: models and seconds by suite."""
    measured = Counter(one.suite for one in known.findings if not one.why_not)
    models = Counter(suite for suite, _ in known.corpus)
    lines = [
        f"| `{suite}` | {count:,} | {measured[suite]:,} "
        f"| {sum(took for key, took in known.corpus.items() if key[0] == suite):.2f} |\n"
        for suite, count in sorted(models.items())
    ]
    total = f"| together | {models.total():,} | {measured.total():,} | {sum(known.corpus.values()):.2f} |\n"
    return (
        "\n## The whole corpus\n\nThe models that the CPU EP passes, with a golden that tells right from "
        "wrong. Faults are planted in those that are measured: models of less than 700 kB."
        "\n\n| suite | models | measured | s |\n|---|---:|---:|---:|\n" + "".join(lines) + total
    )


def dropped(known: Known) -> str:
    """Return how many models are no cases, and why."""
    silent = [f"`{one.model}`" for one in known.findings if not one.why_not and not known.shown[one.key]]
    reasons = Counter(_kind_of(one.why_not) for one in known.findings if one.why_not)
    text = (
        f"\n## What was left out\n\nOf {len(known.corpus):,} models of the corpus, {known.unmeasured:,} were "
        f"not measured, and {reasons.total():,} could not be. {len(silent)} show no fault, planted or real, "
        "and are no cases. Further ones are left out that show nothing beyond what chosen ones show, and "
        f"those that need more than {MOST_FEATURES} features at once.\n"
    )
    if reasons:
        text += "\nCould not be measured:\n\n" + _listed(reasons)
    if silent:
        more = ", ..." if len(silent) > NAMED else ""
        text += f"\nWithout any fault: {', '.join(silent[:NAMED])}{more}.\n"
    return text


def refused_of(known: Known) -> str:
    """Return how many models can be no case, by reason."""
    if not known.refused_why:
        return ""
    return (
        f"\n{len(known.refused_why):,} models can be no case: nobody could be held to their goldens, the "
        "CPU EP itself does not pass them by the rules of profiles, or they are too large or too new. The "
        "tables by profile do not count their faults; the figures of all six together do.\n\n"
        + _listed(Counter(map(_kind_of, known.refused_why.values())))
    )


def _kind_of(why: str) -> str:
    """Return a reason without what differs from case to case."""
    parts = why.split(": ")
    several = parts[0] in {"disputed", "weak", "the CPU EP does not pass it"}
    return ": ".join(parts[:2]) if several else parts[0]


def _listed(reasons: Counter[str]) -> str:
    lines = [f"| {why.replace('|', '/')} | {count:,} |\n" for why, count in reasons.most_common()]
    return "| reason | models |\n|---|---:|\n" + "".join(lines)
