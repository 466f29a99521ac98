"""Compare submissions with each other: measured times that are copied, and names that belong to a signer.

A refused submission marks no other one, and an unsigned one marks no signed one.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from harness.annex.conformance.level import case_key
from harness.annex.conformance.lookalike_names import as_read, same_name
from harness.annex.conformance.submission import STATEMENT, SUBMITTED_RECORDS, Product
from harness.annex.conformance.submit import UNNAMED
from harness.annex.conformance.verify.finding import Finding, finding
from harness.annex.conformance.verify.plausible import FEWEST_ALIKE, times_of
from harness.core.records.record import Record

Times = npt.NDArray[np.uint64]
"""Digests of the measured times of cases, ``(N,)``, each once, sorted."""

_MOST_HOLDERS = 8
"""Submissions with the same times that are compared with each other one: thousands of copies cost no more."""


class ComparableParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a submission that are compared with others.

    Attributes:
        name: Name of the folder or zip.
        content: As ``content_digest`` gives it.
        times: As ``measured_times`` gives them.
        records: Number of its records.
        product: None if its statement cannot be read.
        signer: Identity or fingerprint of the key; empty if nobody signed.
        refused: Whether it is refused on its own account.
    """

    name: str
    content: str
    times: Times
    records: int
    product: Product | None
    signer: str
    refused: bool

    def may_mark(self, other: "ComparableParts") -> bool:
        """Return whether something that both submissions share counts against the other one."""
        return not self.refused and bool(self.signer or not other.signer)


def content_digest(files: Mapping[str, bytes]) -> str:
    """Return the SHA-256 over the names and contents of a submission's files."""
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in sorted(files.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def measured_times(records: Sequence[Record]) -> Times:
    """Return digests of the times of each case that ran: of each the first eight bytes of its SHA-256."""
    told = (repr((case_key(one), times)).encode() for one in records if (times := times_of(one)))
    return np.unique(np.array([_number(text) for text in told], np.uint64))


def _number(text: bytes) -> int:
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def compared_findings(submissions: Sequence[ComparableParts]) -> dict[int, list[Finding]]:
    """Return the findings: index in ``submissions`` -> findings; only for submissions with some."""
    found: dict[int, list[Finding]] = defaultdict(list)
    for index, one in (*_copies(submissions), *_names(submissions)):
        found[index].append(one)
    return found


def _copies(submissions: Sequence[ComparableParts]) -> Iterator[tuple[int, Finding]]:
    """Yield submissions that share measured times with others: two runs never do.

    A submission that occurs twice, byte by byte, is not a copy of itself.
    """
    shared: dict[int, Counter[int]] = defaultdict(Counter)
    for holders in _shared_times(submissions):
        # Those that may mark others come first, so that each copy meets one of them.
        first = sorted(holders, key=lambda at: (submissions[at].refused, not submissions[at].signer, at))
        for index in holders:
            shared[index].update(first[:_MOST_HOLDERS])
    for index, counts in sorted(shared.items()):
        one = submissions[index]
        for at, same in sorted(counts.items()):
            other = submissions[at]
            if not other.may_mark(one) or other.content == one.content:
                continue
            if same >= FEWEST_ALIKE or same == len(one.times):
                what = f"{same} of {one.records} records have the times of {other.name}"
                yield index, finding("copied", SUBMITTED_RECORDS, what)


def _shared_times(submissions: Sequence[ComparableParts]) -> Iterator[list[int]]:
    """Yield the indices of the submissions that share a measured time, for each such time."""
    if not submissions:
        return
    owners = np.repeat(np.arange(len(submissions)), [len(one.times) for one in submissions])
    times = np.concatenate([one.times for one in submissions])
    order = np.argsort(times, kind="stable")
    ends = np.flatnonzero(np.diff(times[order])) + 1
    starts = np.concatenate([[0], ends])
    for start, length in zip(starts, np.diff([*starts, len(times)]), strict=True):
        if length > 1:
            yield [int(at) for at in owners[order[start : start + length]]]


def _names(submissions: Sequence[ComparableParts]) -> Iterator[tuple[int, Finding]]:
    """Yield names that look like those of another submission, and vendors for which another key signs.

    Of two unsigned spellings the rarer one is marked; both if they are equally frequent.
    """
    for field in ("vendor", "name"):
        alike: dict[str, dict[tuple[str, str], ComparableParts]] = defaultdict(dict)
        told = [(at, one, str(getattr(one.product, field, ""))) for at, one in enumerate(submissions)]
        spelled = Counter(text for _, one, text in told if not one.refused)
        for _, one, text in told:
            if not one.refused and text:
                alike[as_read(text)].setdefault((text, one.signer), one)
        for at, one, text in told:
            for (other_text, signer), other in alike[as_read(text)].items() if text else ():
                if not other.may_mark(one) or (signer and signer == one.signer):
                    continue
                if other_text != text and (signer or spelled[other_text] >= spelled[text]):
                    what = f"the {field} {text!r} looks like {other_text!r} of {other.name}"
                    yield at, finding("look-alike", STATEMENT, what)
                elif other_text == text and field == "vendor" and signer and same_name(text) != UNNAMED:
                    what = f"the vendor {text!r} signs as {signer} in {other.name}"
                    yield at, finding("other-signer", STATEMENT, what)
