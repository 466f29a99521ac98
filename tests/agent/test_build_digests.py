"""What an agent tells of the files that its process consists of."""

import base64
import ctypes
import hashlib
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.agent import identity
from harness.agent.identity import FileDigests, altered, describe_build, mapped, own_libraries

OLD_NS = time.time_ns() - 10_000_000_000
PLUGIN = "libep.so"
OWN = ("onnxruntime/__init__.py", "onnxruntime/capi/onnxruntime_pybind11_state.so")


def write(path: Path, content: bytes = b"library", *, settled: bool = True) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    if settled:
        os.utime(path, ns=(OLD_NS, OLD_NS))
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file just written counts as old: its time of change cannot be set."""
    monkeypatch.setattr(identity, "LIBRARY_SETTLED_NS", -10_000_000_000)


@pytest.mark.usefixtures("settled")
def test_a_file_is_read_once_for_each_of_its_states(tmp_path: Path) -> None:
    path = tmp_path / PLUGIN
    digest = write(path)
    first = FileDigests({})
    assert first.of(str(path)) == digest
    state, _ = first.used[str(path)]
    told = {str(path): [state, "as told"]}
    assert FileDigests(told).of(str(path)) == "as told"
    other = write(path, b"another build of the same length"[:7])
    assert FileDigests(told).of(str(path)) == other != digest


def test_the_state_of_a_file_just_written_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / PLUGIN
    digest = write(path, settled=False)
    digests = FileDigests({})
    assert digests.of(str(path)) == digest
    assert digests.used == {str(path): ["", digest]}
    assert digests.of(str(tmp_path / "missing.so")) == ""


def test_what_is_too_large_has_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "MOST_HASHED", 10)
    first, second = tmp_path / "a.so", tmp_path / "b.so"
    digest = write(first)
    write(second)
    assert FileDigests({}).table([str(first), str(second)]) == {"a.so": digest, "b.so": "7 bytes"}


def test_two_files_of_one_name_have_their_folders(tmp_path: Path) -> None:
    paths = [tmp_path / "a" / PLUGIN, tmp_path / "b" / PLUGIN]
    digests = [write(path, path.parent.name.encode()) for path in paths]
    table = FileDigests({}).table(map(str, paths))
    assert table == {PLUGIN: digests[0], f"b/{PLUGIN}": digests[1]}


def wheel(home: Path, changed: str = "") -> SimpleNamespace:
    """An onnxruntime with a RECORD; the content of one file is another one than recorded."""
    lines = []
    for name in OWN:
        digest = hashlib.sha256(name.encode()).digest()
        lines.append(f"{name},sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')},9")
        write(home / name, b"changed" if name == changed else name.encode())
    record = home / "onnxruntime-1.0.dist-info" / "RECORD"
    write(record, "\n".join([*lines, "onnxruntime-1.0.dist-info/RECORD,,"]).encode())
    return SimpleNamespace(__file__=str(home / "onnxruntime" / "__init__.py"))


@pytest.mark.parametrize(
    "changed", ["onnxruntime/__init__.py", "onnxruntime/capi/onnxruntime_pybind11_state.so"]
)
def test_an_altered_onnxruntime_is_told(tmp_path: Path, changed: str) -> None:
    assert altered(wheel(tmp_path / "right"), FileDigests({})) == []
    assert altered(wheel(tmp_path / "wrong", changed), FileDigests({})) == [changed]
    bare = wheel(tmp_path / "bare", changed)
    (tmp_path / "bare" / "onnxruntime-1.0.dist-info" / "RECORD").unlink()
    assert altered(bare, FileDigests({})) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the name of a library to load")
def test_a_library_that_came_into_the_process_is_in_the_fingerprint(tmp_path: Path) -> None:
    before = mapped()
    assert before is not None
    copied = tmp_path / "libcame.so"
    found = min((Path(path) for path in before if "/lib" in path), key=lambda path: path.stat().st_size)
    copied.write_bytes(found.read_bytes())
    ctypes.CDLL(str(copied))
    ort = wheel(tmp_path / "wheel")
    fingerprint: dict[str, object] = {"plugin": {"library": str(copied)}}
    describe_build(ort, fingerprint, before, FileDigests({}))
    digest = hashlib.sha256(copied.read_bytes()).hexdigest()
    assert isinstance(fingerprint["sha256"], dict)
    assert fingerprint["sha256"]["libcame.so"] == digest
    assert fingerprint["sha256"].keys() >= {Path(path).name for path in own_libraries(ort)}
    assert "mapped" not in fingerprint


def test_where_a_system_does_not_show_what_is_loaded_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "_mapped_by_linux", lambda: open(tmp_path / "missing"))  # noqa: SIM115, PTH123
    monkeypatch.setattr(sys, "platform", "linux")
    assert mapped() is None
    fingerprint: dict[str, object] = {}
    describe_build(wheel(tmp_path), fingerprint, None, FileDigests({}))
    assert fingerprint["mapped"] == "not known here"
