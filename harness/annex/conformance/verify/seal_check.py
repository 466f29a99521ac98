"""Check digests and signature: the attestation names every file, and a known key signed it."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from harness.annex.conformance.attestation import Attestation
from harness.annex.conformance.signing import SignatureError, check_ssh, ssh_signer
from harness.annex.conformance.submission import ATTESTATION, SIGSTORE_BUNDLE, SSH_SIGNATURE
from harness.annex.conformance.verify.finding import Finding, finding
from harness.annex.conformance.verify.opening import SIGNATURES


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """The signer: an identity, else the fingerprint of a key; empty if nobody signed."""

    signer: str = ""
    findings: tuple[Finding, ...] = ()


def digest_findings(files: Mapping[str, bytes], attestation: Attestation) -> Iterator[Finding]:
    """Yield files whose digest differs, or that only one side has."""
    subjects = {subject.name: subject.digest for subject in attestation.subject}
    counts = Counter(subject.name for subject in attestation.subject)
    for name, count in counts.items():
        if count > 1:
            yield finding("attested-missing", name, f"the attestation names it {count} times")
        if name not in files or name in {ATTESTATION, *SIGNATURES}:
            yield finding("attested-missing", name, "the attestation names it, and it is no file to attest")
    for name, content in files.items():
        if name in {ATTESTATION, *SIGNATURES}:
            continue
        if name not in subjects:
            yield finding("not-attested", name, "the attestation does not name it")
        elif subjects[name] != {"sha256": hashlib.sha256(content).hexdigest()}:
            yield finding("digest", name, "its SHA-256 is not the attested one")


def seal_of(files: Mapping[str, bytes], signers: Path | None) -> Seal:
    """Check the signature over the attestation.

    Raises:
        UsageError: The file of signers is missing, or there is no ``ssh-keygen``.
    """
    content, signature = files[ATTESTATION], files.get(SSH_SIGNATURE)
    if signature is not None and SIGSTORE_BUNDLE in files:
        return Seal(findings=(finding("two-signatures", SSH_SIGNATURE, f"and {SIGSTORE_BUNDLE}"),))
    if signature is None:
        return Seal(findings=(_without(files, signers),))
    owner = SignatureError("")
    if signers is not None:
        try:
            return Seal(signer=ssh_signer(content, signature, signers))
        except SignatureError as error:
            owner = error
    # Last, because each call of ssh-keygen is a process: finding the signer also shows that the signature is
    # right.
    try:
        fingerprint = check_ssh(content, signature)
    except SignatureError as error:
        return Seal(findings=(finding("signature", SSH_SIGNATURE, error),))
    if signers is not None:
        return Seal(findings=(finding("unknown-signer", SSH_SIGNATURE, f"{fingerprint}: {owner}"),))
    what = f"signed by {fingerprint}; give --signers to check whose key that is"
    return Seal(signer=fingerprint, findings=(finding("signer-unchecked", SSH_SIGNATURE, what),))


def _without(files: Mapping[str, bytes], signers: Path | None) -> Finding:
    if SIGSTORE_BUNDLE in files:
        what = "a bundle of sigstore names an identity and issuer; check it with `sigstore verify identity`"
        return finding("signature-unchecked", SIGSTORE_BUNDLE, what)
    if signers is not None:
        return finding("unsigned", ATTESTATION, f"expected {SSH_SIGNATURE}")
    return finding("no-signature", ATTESTATION, "nobody answers for the submission")
