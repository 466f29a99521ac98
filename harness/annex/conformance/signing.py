"""Signatures of an attestation: by ``ssh-keygen -Y`` without a network, or by sigstore with one."""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.annex.conformance.submission import SSH_NAMESPACE
from harness.core.text.errors import HarnessError, UsageError, one_line

_LIMIT_S = 60.0
"""Limit of a call of ``ssh-keygen``; a key with a touch or a passphrase waits for a person."""


class SignatureError(HarnessError):
    """A signature cannot be checked, or does not belong to these bytes and this signer."""


def ssh_sign(content: bytes, key: Path) -> bytes:
    """Return the signature of ``ssh-keygen -Y sign`` over some bytes.

    The key is a private one, or the public half of a key in ``ssh-agent``.

    Raises:
        UsageError: There is no such key, no ``ssh-keygen``, or it refuses.
    """
    if not key.is_file():
        hint = "make one: ssh-keygen -t ed25519 -f KEY"
        raise UsageError.at(f"--sign {key}", "there is no such key", hint)
    done = _ssh_keygen(f"--sign {key}", "sign", "-n", SSH_NAMESPACE, "-f", str(key), content=content)
    if done.returncode != 0:
        what = f"ssh-keygen refuses: {_last(done)}"
        raise UsageError.at(f"--sign {key}", what, "name a private key of OpenSSH")
    return done.stdout


def ssh_signer(content: bytes, signature: bytes, signers: Path) -> str:
    """Return the identity of the signer, as given in a file of allowed signers.

    ``ssh-keygen`` reads that file (ALLOWED SIGNERS): an identity and its public key per line.

    Raises:
        SignatureError: The signature does not belong to these bytes, or its key belongs to no allowed signer.
        UsageError: There is no such file, or no ``ssh-keygen``.
    """
    if not signers.is_file():
        raise UsageError.at(f"--signers {signers}", "there is no such file")
    where = f"--signers {signers}"
    with _signature_file(signature) as file:
        found = _ssh_keygen(where, "find-principals", "-f", str(signers), "-s", file)
        identity = found.stdout.decode("utf-8", "replace").strip().partition("\n")[0]
        if found.returncode != 0 or not identity:
            raise SignatureError(f"the key is of no signer in {signers.name}")
        arguments = ("-f", str(signers), "-I", identity, "-n", SSH_NAMESPACE, "-s", file)
        done = _ssh_keygen(where, "verify", *arguments, content=content)
    if done.returncode != 0:
        raise SignatureError(f"the signature does not verify: {_last(done)}")
    return identity


def check_ssh(content: bytes, signature: bytes) -> str:
    """Return the fingerprint of the key that signed, whoever owns it.

    Raises:
        SignatureError: The signature does not belong to these bytes.
        UsageError: There is no ``ssh-keygen``.
    """
    with _signature_file(signature) as file:
        arguments = ("-n", SSH_NAMESPACE, "-s", file)
        done = _ssh_keygen("signature", "check-novalidate", *arguments, content=content)
    if done.returncode != 0:
        raise SignatureError(f"the signature does not verify: {_last(done)}")
    words = done.stdout.decode("utf-8", "replace").split()
    return next((word for word in words if word.startswith("SHA256:")), "")


def sigstore_sign(content: bytes) -> bytes:
    """Return a bundle of sigstore over some bytes: a signature by an OpenID identity, in a public log.

    A CI system's own identity is used if there is one; elsewhere a browser opens.

    Raises:
        UsageError: The extra is not installed, there is no network, or the identity is refused.
    """
    where = "--sigstore"
    try:
        from sigstore.models import ClientTrustConfig
        from sigstore.oidc import IdentityToken, Issuer, detect_credential
        from sigstore.sign import SigningContext
    except ImportError as error:
        hint = "pip install 'ort-ep-harness[sigstore]'; without a network: --sign KEY"
        raise UsageError.at(where, "sigstore is not installed", hint) from error
    try:
        trust = ClientTrustConfig.production()
        found = detect_credential()
        issuer = Issuer(trust.signing_config.get_oidc_url())
        token = IdentityToken(found) if found else issuer.identity_token()
        with SigningContext.from_trust_config(trust).signer(token) as signer:
            bundle: str = signer.sign_artifact(content).to_json()
            return bundle.encode()
    except Exception as error:
        # sigstore raises errors of its own, of TUF, of requests and of the identity's provider.
        what = f"sigstore cannot sign: {one_line(error) or type(error).__name__}"
        hint = "it needs the network; without one: --sign KEY"
        raise UsageError.at(where, what, hint) from error


@contextlib.contextmanager
def _signature_file(signature: bytes) -> Iterator[str]:
    """Yield the path of a file with a signature: ``ssh-keygen`` cannot read it from a pipe."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "signature")
        path.write_bytes(signature)
        yield str(path)


def _ssh_keygen(
    where: str, action: str, *arguments: str, content: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    command = ["ssh-keygen", "-Y", action, *arguments]
    try:
        return subprocess.run(command, input=content, capture_output=True, check=False, timeout=_LIMIT_S)  # noqa: S603 - no shell
    except FileNotFoundError as error:
        hint = "install OpenSSH 8.2 or newer"
        raise UsageError.at(where, "there is no ssh-keygen here", hint) from error
    except subprocess.TimeoutExpired as error:
        what = f"ssh-keygen gave no answer in {_LIMIT_S:.0f} s"
        raise UsageError.at(where, what, "put the key into ssh-agent") from error


def _last(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
    return one_line(lines[-1]) if lines else f"exit code {done.returncode}"
