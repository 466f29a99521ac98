"""Signatures by ssh-keygen: the right bytes, the right namespace, an allowed signer."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.annex.conformance import signing
from harness.annex.conformance.submission import SSH_NAMESPACE
from harness.core.text.errors import UsageError

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs OpenSSH")


def key_in(folder: Path, name: str = "key") -> Path:
    key = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True)
    return key


def signers_of(folder: Path, *keys: Path) -> Path:
    path = folder / "signers"
    path.write_text("".join(f"{key.name}@example.org {key.with_suffix('.pub').read_text()}" for key in keys))
    return path


def test_a_signature_names_its_allowed_signer(tmp_path: Path) -> None:
    key = key_in(tmp_path)
    signature = signing.ssh_sign(b"content", key)
    assert signing.ssh_signer(b"content", signature, signers_of(tmp_path, key)) == "key@example.org"
    assert signing.check_ssh(b"content", signature).startswith("SHA256:")


def test_a_signature_of_other_bytes_is_refused(tmp_path: Path) -> None:
    key = key_in(tmp_path)
    signature = signing.ssh_sign(b"content", key)
    with pytest.raises(signing.SignatureError, match="does not verify"):
        signing.ssh_signer(b"other", signature, signers_of(tmp_path, key))
    with pytest.raises(signing.SignatureError, match="does not verify"):
        signing.check_ssh(b"other", signature)


def test_an_unknown_signer_is_refused(tmp_path: Path) -> None:
    signature = signing.ssh_sign(b"content", key_in(tmp_path))
    signers = signers_of(tmp_path, key_in(tmp_path, "another"))
    with pytest.raises(signing.SignatureError, match="no signer in signers"):
        signing.ssh_signer(b"content", signature, signers)


def test_a_signature_for_another_purpose_is_refused(tmp_path: Path) -> None:
    key = key_in(tmp_path)
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(key)]
    other = subprocess.run(command, input=b"content", capture_output=True, check=True).stdout
    assert SSH_NAMESPACE != "git"
    with pytest.raises(signing.SignatureError, match="does not verify"):
        signing.check_ssh(b"content", other)


def test_garbage_is_no_signature(tmp_path: Path) -> None:
    with pytest.raises(signing.SignatureError):
        signing.check_ssh(b"content", b"garbage")
    with pytest.raises(signing.SignatureError):
        signing.ssh_signer(b"content", b"garbage", signers_of(tmp_path, key_in(tmp_path)))


def test_a_key_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such key"):
        signing.ssh_sign(b"content", tmp_path / "none")
    (tmp_path / "text").write_text("no key")
    with pytest.raises(UsageError, match="ssh-keygen refuses"):
        signing.ssh_sign(b"content", tmp_path / "text")


def test_a_missing_extra_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sigstore.models", None)
    with pytest.raises(UsageError, match="sigstore is not installed"):
        signing.sigstore_sign(b"content")
