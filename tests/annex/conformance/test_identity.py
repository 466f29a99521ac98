"""A patched harness, and one from elsewhere, are told; run as copies in processes of their own."""

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.annex.conformance.harness_identity import sources_digest

ASK = """
import json, msgspec
from harness.annex.conformance.harness_identity import this_harness
print(json.dumps(msgspec.to_builtins(this_harness())))
"""
PACKAGE = Path(harness.__file__).parent


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the sources."""
    ignored = shutil.ignore_patterns("__pycache__", "_data")
    return shutil.copytree(PACKAGE, tmp_path / "place" / "harness", ignore=ignored)


def asked(package: Path) -> tuple[str, str]:
    """The digest of a harness, and why it is unofficial."""
    env = {**os.environ, "PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", ASK], cwd=package.parent, env=env, capture_output=True, check=True, timeout=60
    )
    told = json.loads(done.stdout)
    return told["sources"], "; ".join(told.get("unofficial", ()))


def installed(package: Path) -> None:
    """Make a copy an installed release, with the RECORD that an installer writes."""
    info = package.parent / "ort_ep_harness-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ort-ep-harness\nVersion: 0.1.0\n")
    lines = []
    for path in sorted(package.rglob("*.*")):
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")
        lines.append(f"{path.relative_to(package.parent).as_posix()},sha256={digest},{path.stat().st_size}")
    (info / "RECORD").write_text("\n".join(lines) + "\n")


def committed(package: Path) -> None:
    """Make a copy a checkout."""
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *who, *command], cwd=package.parent, check=True, capture_output=True)


def test_a_copy_from_elsewhere_is_unofficial(copy: Path) -> None:
    digest, why = asked(copy)
    assert digest == sources_digest(PACKAGE)
    assert "neither an installed release nor a checkout" in why


@pytest.mark.parametrize("place", [installed, committed])
def test_a_patched_copy_is_told_by_the_file(copy: Path, place: object) -> None:
    assert callable(place)
    place(copy)
    clean, why = asked(copy)
    assert why == ""
    rules = copy / "core" / "verdicts" / "rules.py"
    rules.write_text(rules.read_text() + "\n# patched\n")
    (copy / "core" / "added.py").write_text("")
    patched, why = asked(copy)
    assert patched != clean
    assert "harness/core/verdicts/rules.py" in why
    assert "harness/core/added.py" in why


def test_line_endings_do_not_change_the_digest(copy: Path) -> None:
    before = sources_digest(copy)
    rules = copy / "core" / "verdicts" / "rules.py"
    rules.write_bytes(rules.read_bytes().replace(b"\n", b"\r\n"))
    assert sources_digest(copy) == before
