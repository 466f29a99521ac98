"""Compare submissions with each other: measured times that are copied, and names that belong to a signer.

A refused submission marks no other one, and an unsigned one marks no signed one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.annex.conformance.level import case_key
from harness.annex.conformance.lookalike_names import as_read, same_name
from harness.annex.conformance.submission import STATEMENT, SUBMITTED_RECORDS, Product
from harness.annex.conformance.submit import UNNAMED
from harness.annex.conformance.verify.finding import Finding, finding
from harness.annex.conformance.verify.plausible import FEWEST_ALIKE, times_of
from harness.core.record import Record


class ComparableParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a submission that are compared with others.

    Attributes:
        name: Name of the folder or zip.
        product: None if its statement cannot be read.
        signer: Identity or fingerprint of the key; empty if nobody signed.
        refused: Whether it is refused on its own account.
    """

    name: str
    files: Mapping[str, bytes]
    records: Sequence[Record]
    product: Product | None
    signer: str
    refused: bool

    def may_mark(self, other: "ComparableParts") -> bool:
        """Return whether something that both submissions share counts against the other one."""
        return not self.refused and bool(self.signer or not other.signer)


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
    measured = [
        {(case_key(record), times) for record in one.records if (times := times_of(record))}
        for one in submissions
    ]
    holders: dict[object, list[int]] = defaultdict(list)
    for index, own in enumerate(measured):
        for each in own:
            holders[each].append(index)
    for index, one in enumerate(submissions):
        shared = Counter(other for times in measured[index] for other in holders[times])
        for at, same in sorted(shared.items()):
            other = submissions[at]
            if not other.may_mark(one) or other.files == one.files:
                continue
            if same >= FEWEST_ALIKE or same == len(measured[index]):
                what = f"{same} of {len(one.records)} records have the times of {other.name}"
                yield index, finding("copied", SUBMITTED_RECORDS, what)


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
