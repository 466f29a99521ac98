"""Findings: the results of a verification, by name; the table of the documentation."""

from enum import StrEnum

import msgspec

from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible


class FindingWeight(StrEnum):
    """The effect of a finding on a submission."""

    REFUSED = "refused"
    """It contradicts itself, its profile or its signature, or cannot be read."""

    MARKED = "marked"
    """It may be honest, but a person has to examine it."""

    NOTED = "noted"
    """Worth knowing; the submission stays verified."""


class FindingKind(msgspec.Struct, frozen=True):
    """A kind of finding: its weight, and one line of meaning."""

    weight: FindingWeight
    meaning: str


FINDING_KINDS: dict[str, FindingKind] = {
    # --- opening ---
    "unreadable": FindingKind(FindingWeight.REFUSED, "the folder or zip, or a file in it, cannot be read"),
    "not-a-submission": FindingKind(FindingWeight.REFUSED, "a file that every submission has is missing"),
    "unsafe-name": FindingKind(
        FindingWeight.REFUSED, "a name is absolute, leaves the submission, or means a device"
    ),
    "not-a-file": FindingKind(
        FindingWeight.REFUSED, "a link, pipe, device or other thing that is no plain file"
    ),
    "duplicate-name": FindingKind(
        FindingWeight.REFUSED, "two entries have one name, or differ in case alone"
    ),
    "unknown-file": FindingKind(FindingWeight.REFUSED, "a file that is no part of a submission"),
    "too-large": FindingKind(
        FindingWeight.REFUSED, "more bytes, files or compression than any submission needs"
    ),
    "encrypted": FindingKind(
        FindingWeight.REFUSED, "an entry of the zip is encrypted or packed in an unusual way"
    ),
    # --- form ---
    "not-json": FindingKind(
        FindingWeight.REFUSED, "a file or line is not strict JSON: UTF-8, finite numbers, no mark"
    ),
    "duplicate-key": FindingKind(
        FindingWeight.REFUSED, "an object has a key twice, so that readers disagree about it"
    ),
    "other-form": FindingKind(FindingWeight.REFUSED, "a field is unknown, missing or of another type"),
    "other-schema": FindingKind(
        FindingWeight.REFUSED, "the form has another version than this harness reads"
    ),
    # --- digests and signature ---
    "digest": FindingKind(FindingWeight.REFUSED, "a file differs from the digest in the attestation"),
    "not-attested": FindingKind(
        FindingWeight.REFUSED, "the attestation does not name a file of the submission"
    ),
    "attested-missing": FindingKind(
        FindingWeight.REFUSED, "the attestation names a file that is not there, or one twice"
    ),
    "attestation": FindingKind(
        FindingWeight.REFUSED, "the attestation states another result than the records"
    ),
    "unsigned": FindingKind(FindingWeight.MARKED, "there is no signature, but signers were given"),
    "no-signature": FindingKind(
        FindingWeight.NOTED, "there is no signature: nobody answers for the submission"
    ),
    "signature": FindingKind(FindingWeight.REFUSED, "the signature does not belong to the attestation"),
    "unknown-signer": FindingKind(FindingWeight.REFUSED, "the key is of no allowed signer, or is not valid"),
    "signer-unchecked": FindingKind(FindingWeight.NOTED, "the signature is right, but no signers were given"),
    "two-signatures": FindingKind(
        FindingWeight.REFUSED, "there are two signatures, so readers may choose differently"
    ),
    "signature-unchecked": FindingKind(FindingWeight.MARKED, "the signature cannot be checked here"),
    # --- profile ---
    "unknown-profile": FindingKind(
        FindingWeight.REFUSED, "this harness has no profile of this name and version"
    ),
    "profile-edited": FindingKind(
        FindingWeight.REFUSED, "the profile or its archive has another digest than the published"
    ),
    "unknown-claim": FindingKind(
        FindingWeight.REFUSED,
        "a claim is no feature of the profile, or one is missing that others make, or they are unsorted",
    ),
    # --- cases ---
    "case-missing": FindingKind(FindingWeight.REFUSED, "a case of the profile has no record"),
    "case-twice": FindingKind(FindingWeight.REFUSED, "a case has several records"),
    "case-unknown": FindingKind(FindingWeight.REFUSED, "a record is about no case of the profile"),
    "records-unsorted": FindingKind(FindingWeight.REFUSED, "the records are not sorted by cell"),
    "other-target": FindingKind(
        FindingWeight.REFUSED, "a record is of another target, provider, suite or axes"
    ),
    "other-model": FindingKind(
        FindingWeight.REFUSED, "operators or types of a record are not those of the case's model"
    ),
    # --- verdicts and metrics ---
    "outputs": FindingKind(
        FindingWeight.REFUSED, "an output is missing or foreign, or has another form than its golden"
    ),
    "verdict": FindingKind(FindingWeight.REFUSED, "the metrics give another verdict than the record"),
    "excuse": FindingKind(FindingWeight.REFUSED, "a record has a fact that no case of a profile can have"),
    "metrics": FindingKind(
        FindingWeight.REFUSED, "the figures of an output contradict each other, its golden or its noise"
    ),
    "placement": FindingKind(FindingWeight.REFUSED, "the counts of nodes contradict each other or the model"),
    # --- statement ---
    "level": FindingKind(FindingWeight.REFUSED, "the statement has another level than its records give"),
    "totals": FindingKind(FindingWeight.REFUSED, "the statement's totals are not those of its records"),
    "missing-list": FindingKind(
        FindingWeight.REFUSED, "the statement's list of cases that do not pass is wrong"
    ),
    "other-environment": FindingKind(
        FindingWeight.REFUSED, "the statement has another environment than run.json"
    ),
    "run": FindingKind(FindingWeight.REFUSED, "run.json contradicts the records, or itself"),
    "plan": FindingKind(
        FindingWeight.REFUSED, "run.json planned other cells than those of the profile on one target"
    ),
    "matrix": FindingKind(
        FindingWeight.REFUSED, "the matrix of run.json is not that of profile, provider and declared options"
    ),
    "own-program": FindingKind(
        FindingWeight.MARKED,
        "a setting of the run decides which program or library computed",
    ),
    "settings": FindingKind(FindingWeight.NOTED, "a setting of the run that is no default"),
    "unclean-exit": FindingKind(FindingWeight.MARKED, "a process that was asked to end died or hung"),
    "unofficial": FindingKind(FindingWeight.MARKED, "the harness was changed, or nobody can compare it"),
    "time": FindingKind(
        FindingWeight.REFUSED, "a time is unreadable, or a cell starts after the statement was made"
    ),
    "future": FindingKind(FindingWeight.MARKED, "the statement was made in the future"),
    # --- waivers ---
    "waivers": FindingKind(
        FindingWeight.REFUSED, "the waivers are wrong, or the statement has others than waivers.toml"
    ),
    "waiver-expired": FindingKind(FindingWeight.MARKED, "a waiver has expired"),
    "waiver-idle": FindingKind(FindingWeight.MARKED, "a waiver is about cases that pass"),
    # --- plausibility ---
    "timings": FindingKind(FindingWeight.MARKED, "times are missing, zero, or the same in many records"),
    "process": FindingKind(FindingWeight.MARKED, "the order of cells in a process contradicts their times"),
    "too-exact": FindingKind(
        FindingWeight.MARKED, "every rounded output equals the float64 answer to the last bit"
    ),
    "too-many-nodes": FindingKind(
        FindingWeight.MARKED, "far more nodes were placed than the model can become"
    ),
    "hidden-text": FindingKind(
        FindingWeight.MARKED, "a text has control characters or reorders what is read"
    ),
    "copied": FindingKind(FindingWeight.MARKED, "measured times equal those of another submission"),
    "look-alike": FindingKind(
        FindingWeight.MARKED,
        "a vendor or product looks like one of another signer, or of an unsigned submission",
    ),
    "other-signer": FindingKind(FindingWeight.MARKED, "another key signs for this vendor"),
    "outlier": FindingKind(
        FindingWeight.MARKED, "many cases differ from nearly all other devices of the kind; `publish` alone"
    ),
    # --- cases that were run once more ---
    "rerun": FindingKind(
        FindingWeight.MARKED, "a case gives another result here, in the environment that is stated"
    ),
    "rerun-elsewhere": FindingKind(
        FindingWeight.NOTED, "a case gives another result here, in another environment"
    ),
    "rerun-same": FindingKind(FindingWeight.NOTED, "how many of the cases that were run here give the same"),
}
"""Every name of a finding, in the order of the checks."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding.

    Attributes:
        name: A key of ``FINDING_KINDS``.
        where: File and line, or the case; harmless text.
        what: One line: what was found, and what is right; harmless text.
    """

    name: str
    where: str
    what: str

    @property
    def weight(self) -> FindingWeight:
        """The effect on the submission."""
        return FINDING_KINDS[self.name].weight


def finding(name: str, where: object, what: object) -> Finding:
    """Return a finding; both texts may quote hostile input."""
    if name not in FINDING_KINDS:
        raise ValueError(f"no kind of finding: {name}")
    return Finding(name=name, where=one_line(visible(str(where)), 160), what=one_line(visible(str(what))))
