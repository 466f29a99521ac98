"""Outliers: submissions that disagree with nearly all other devices of their kind.

It may be a forgery, a broken device, or a rare one that is right: a person has to look. A stranger can invent
devices, so what nobody signed has no voice about what somebody signed.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from harness.annex.conformance.level import Standing
from harness.annex.conformance.submission import STATEMENT
from harness.annex.conformance.verify.finding import Finding, finding
from harness.annex.publication.devices import device_id, device_kind
from harness.annex.publication.entry import AcceptedSubmission

FEWEST_OTHERS = 4
"""Other devices of a kind from which on their agreement counts."""

AGREEMENT = 0.75
"""Share of the other devices that have to agree about a case."""

FEWEST_CASES = 3
MOST_SHARE = 0.1
"""A submission that differs in more than this share of the cases is an outlier, if these are that many."""


def outlier_findings(entries: Sequence[AcceptedSubmission]) -> Mapping[str, list[Finding]]:
    """Return the id of each outlier -> its finding.

    Of a kind are submissions of one version of a product with one onnxruntime and one profile, on devices of
    one type and name. Of each device the newest submission counts.
    """
    kinds: dict[tuple[str, ...], list[AcceptedSubmission]] = defaultdict(list)
    for entry in entries:
        kinds[_kind(entry)].append(entry)
    found: dict[str, list[Finding]] = defaultdict(list)
    for members in kinds.values():
        voters = {True: _by_device(one for one in members if one.signer), False: _by_device(members)}
        for is_signed, devices in voters.items():
            if len(devices) <= FEWEST_OTHERS:
                continue
            for entry, what in _outliers(list(devices.values())):
                if bool(entry.signer) is is_signed:
                    found[entry.id].append(finding("outlier", STATEMENT, what))
    return found


def _kind(entry: AcceptedSubmission) -> tuple[str, ...]:
    said, where = entry.statement, entry.statement.environment
    options = (f"{key}={value}" for key, value in sorted(where.provider_options.items()))
    return (
        where.provider,
        said.product.version,
        where.onnxruntime,
        entry.profile,
        device_kind(entry),
        where.runtime,
        *options,
    )


def _by_device(
    entries: Iterator[AcceptedSubmission] | Sequence[AcceptedSubmission],
) -> dict[str, AcceptedSubmission]:
    devices: dict[str, AcceptedSubmission] = {}
    for entry in sorted(entries, key=lambda one: (one.statement.created, one.id)):
        devices[device_id(entry)] = entry
    return devices


def _outliers(entries: Sequence[AcceptedSubmission]) -> Iterator[tuple[AcceptedSubmission, str]]:
    """Yield those of some devices that differ from the others, ``(entry, in how many cases)``."""
    passes = np.array([[one.standing is Standing.PASSED for one in entry.result.cases] for entry in entries])
    others = passes.sum(axis=0)[None, :] - passes
    share = others / (len(entries) - 1)
    differs = np.where(passes, share <= 1 - AGREEMENT, share >= AGREEMENT).sum(axis=1)
    for entry, count in zip(entries, differs, strict=True):
        if count >= FEWEST_CASES and count > MOST_SHARE * passes.shape[1]:
            others_of_kind = f"nearly all of {len(entries) - 1} other devices of the kind"
            yield entry, f"{count} of {passes.shape[1]} cases differ from {others_of_kind}"
