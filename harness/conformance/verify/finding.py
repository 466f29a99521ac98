"""Findings: the results of a verification, by name; the table of the documentation."""

from enum import StrEnum

import msgspec

from harness.core.errors import one_line
from harness.core.text import visible


class Weight(StrEnum):
    """The effect of a finding on a submission."""

    REFUSED = "refused"
    """It contradicts itself, its profile or its signature, or cannot be read."""

    MARKED = "marked"
    """It may be honest, but a person has to examine it."""

    NOTED = "noted"
    """Worth knowing; the submission stays verified."""


class Kind(msgspec.Struct, frozen=True):
    """A kind of finding: its weight, and one line of meaning."""

    weight: Weight
    meaning: str


KINDS: dict[str, Kind] = {
    # --- opening ---
    "unreadable": Kind(Weight.REFUSED, "the folder or zip, or a file in it, cannot be read"),
    "not-a-submission": Kind(Weight.REFUSED, "a file that every submission has is missing"),
    "unsafe-name": Kind(Weight.REFUSED, "a name is absolute, leaves the submission, or means a device"),
    "not-a-file": Kind(Weight.REFUSED, "a link, pipe, device or other thing that is no plain file"),
    "duplicate-name": Kind(Weight.REFUSED, "two entries have one name, or differ in case alone"),
    "unknown-file": Kind(Weight.REFUSED, "a file that is no part of a submission"),
    "too-large": Kind(Weight.REFUSED, "more bytes, files or compression than any submission needs"),
    "encrypted": Kind(Weight.REFUSED, "an entry of the zip is encrypted or packed in an unusual way"),
    # --- form ---
    "not-json": Kind(Weight.REFUSED, "a file or line is not strict JSON: UTF-8, finite numbers, no mark"),
    "duplicate-key": Kind(Weight.REFUSED, "an object has a key twice, so that readers disagree about it"),
    "other-form": Kind(Weight.REFUSED, "a field is unknown, missing or of another type"),
    "other-schema": Kind(Weight.REFUSED, "the form has another version than this harness reads"),
    # --- digests and signature ---
    "digest": Kind(Weight.REFUSED, "a file differs from the digest in the attestation"),
    "not-attested": Kind(Weight.REFUSED, "the attestation does not name a file of the submission"),
    "attested-missing": Kind(Weight.REFUSED, "the attestation names a file that is not there, or one twice"),
    "attestation": Kind(Weight.REFUSED, "the attestation states another result than the records"),
    "unsigned": Kind(Weight.MARKED, "there is no signature, but signers were given"),
    "no-signature": Kind(Weight.NOTED, "there is no signature: nobody answers for the submission"),
    "signature": Kind(Weight.REFUSED, "the signature does not belong to the attestation"),
    "unknown-signer": Kind(Weight.REFUSED, "the key is of no allowed signer, or is not valid"),
    "signer-unchecked": Kind(Weight.NOTED, "the signature is right, but no signers were given"),
    "two-signatures": Kind(Weight.REFUSED, "there are two signatures, so readers may choose differently"),
    "signature-unchecked": Kind(Weight.MARKED, "the signature cannot be checked here"),
    # --- profile ---
    "unknown-profile": Kind(Weight.REFUSED, "this harness has no profile of this name and version"),
    "profile-edited": Kind(
        Weight.REFUSED, "the profile or its archive has another digest than the published"
    ),
    "unknown-claim": Kind(
        Weight.REFUSED,
        "a claim is no feature of the profile, or one is missing that others make, or they are unsorted",
    ),
    # --- cases ---
    "case-missing": Kind(Weight.REFUSED, "a case of the profile has no record"),
    "case-twice": Kind(Weight.REFUSED, "a case has several records"),
    "case-unknown": Kind(Weight.REFUSED, "a record is about no case of the profile"),
    "records-unsorted": Kind(Weight.REFUSED, "the records are not sorted by cell"),
    "other-target": Kind(Weight.REFUSED, "a record is of another target, provider, suite or axes"),
    "other-model": Kind(Weight.REFUSED, "operators or types of a record are not those of the case's model"),
    # --- verdicts and metrics ---
    "outputs": Kind(Weight.REFUSED, "an output is missing or foreign, or has another form than its golden"),
    "verdict": Kind(Weight.REFUSED, "the metrics give another verdict than the record"),
    "excuse": Kind(Weight.REFUSED, "a record has a fact that no case of a profile can have"),
    "metrics": Kind(
        Weight.REFUSED, "the figures of an output contradict each other, its golden or its noise"
    ),
    "placement": Kind(Weight.REFUSED, "the counts of nodes contradict each other or the model"),
    # --- statement ---
    "level": Kind(Weight.REFUSED, "the statement has another level than its records give"),
    "totals": Kind(Weight.REFUSED, "the statement's totals are not those of its records"),
    "missing-list": Kind(Weight.REFUSED, "the statement's list of cases that do not pass is wrong"),
    "other-environment": Kind(Weight.REFUSED, "the statement has another environment than run.json"),
    "run": Kind(Weight.REFUSED, "run.json contradicts the records, or itself"),
    "plan": Kind(Weight.REFUSED, "run.json planned other cells than those of the profile on one target"),
    "matrix": Kind(
        Weight.REFUSED, "the matrix of run.json is not that of profile, provider and declared options"
    ),
    "own-program": Kind(
        Weight.MARKED,
        "a setting of the run decides which program or library computed",
    ),
    "settings": Kind(Weight.NOTED, "a setting of the run that is no default"),
    "unclean-exit": Kind(Weight.MARKED, "a process that was asked to end died or hung"),
    "unofficial": Kind(Weight.MARKED, "the harness was changed, or nobody can compare it"),
    "time": Kind(Weight.REFUSED, "a time is unreadable, or a cell starts after the statement was made"),
    "future": Kind(Weight.MARKED, "the statement was made in the future"),
    # --- waivers ---
    "waivers": Kind(Weight.REFUSED, "the waivers are wrong, or the statement has others than waivers.toml"),
    "waiver-expired": Kind(Weight.MARKED, "a waiver has expired"),
    "waiver-idle": Kind(Weight.MARKED, "a waiver is about cases that pass"),
    # --- plausibility ---
    "timings": Kind(Weight.MARKED, "times are missing, zero, or the same in many records"),
    "process": Kind(Weight.MARKED, "the order of cells in a process contradicts their times"),
    "too-exact": Kind(Weight.MARKED, "every rounded output equals the float64 answer to the last bit"),
    "too-many-nodes": Kind(Weight.MARKED, "far more nodes were placed than the model can become"),
    "hidden-text": Kind(Weight.MARKED, "a text has control characters or reorders what is read"),
    "copied": Kind(Weight.MARKED, "measured times equal those of another submission"),
    "look-alike": Kind(
        Weight.MARKED, "a vendor or product looks like one of another signer, or of an unsigned submission"
    ),
    "other-signer": Kind(Weight.MARKED, "another key signs for this vendor"),
    # --- cases that were run once more ---
    "rerun": Kind(Weight.MARKED, "a case gives another result here, in the environment that is stated"),
    "rerun-elsewhere": Kind(Weight.NOTED, "a case gives another result here, in another environment"),
    "rerun-same": Kind(Weight.NOTED, "how many of the cases that were run here give the same"),
}
"""Every name of a finding, in the order of the checks."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding.

    Attributes:
        name: A key of ``KINDS``.
        where: File and line, or the case; harmless text.
        what: One line: what was found, and what is right; harmless text.
    """

    name: str
    where: str
    what: str

    @property
    def weight(self) -> Weight:
        """The effect on the submission."""
        return KINDS[self.name].weight


def finding(name: str, where: object, what: object) -> Finding:
    """Return a finding; both texts may quote hostile input."""
    if name not in KINDS:
        raise ValueError(f"no kind of finding: {name}")
    return Finding(name=name, where=one_line(visible(str(where)), 160), what=one_line(visible(str(what))))
