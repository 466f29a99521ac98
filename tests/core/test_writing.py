"""Files are written aside: a full disk never costs the file that was there before."""

import errno
import re
import stat
import sys
from pathlib import Path

import pytest

from harness.core.files.writing import aside, write_aside, write_new

HARNESS = Path(__file__).parents[2] / "harness"

IN_PLACE = {
    "agent": "travels to the target, and writes only there",
    "annex/agent_check": "temporary folders",
    "core/files/writing.py": "this is it",
    "cli/matrix_text.py": "the name only: it calls write_new",
    "corpus": "the cache and temporary folders, renamed as a whole",
    "engine": "temporary folders and shared memory",
    "golden/recording.py": "new folders; the manifest comes last",
    "golden/spreads.py": "the cache, renamed as a whole",
    "golden/golden_cache.py": "the cache, renamed as a whole",
    "annex/conformance/signing.py": "a temporary folder",
    "annex/conformance/submit.py": "a new folder, which is removed again",
    "annex/triage/histories.py": "only grows",
    "annex/conformance/profiles/profile_suite.py": "the cache, renamed as a whole",
    "run/artifacts.py": "the folder of one cell",
    "run/durable.py": "a file that only grows",
    "run/run_folder.py": "records.jsonl only grows",
    "runtimes": "the cache, renamed as a whole",
    "annex/conformance/freeze.py": "a new folder",
    "annex/pack/package_files.py": "a new folder, which is renamed as a whole",
    "studies/trial.py": "a temporary folder",
    "annex/made": "the cache, renamed as a whole",
    "annex/triage": "faults.jsonl only grows; bundles are renamed as a whole",
}
"""Modules that write without ``aside`` -> why no earlier file can be lost."""

WRITES = re.compile(r"\.write_(?:text|bytes)\(|\.open\(\s*[\"'](?:w|a|x)b?[\"']")


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_aside(path, "old")
    with aside(path) as fresh:
        fresh.write_text("new", encoding="utf-8")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_aside(path, b"old")
    with pytest.raises(OSError, match="No space"):
        write_half(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def write_half(path: Path) -> None:
    with aside(path) as fresh:
        fresh.write_bytes(b"ha")
        raise OSError(errno.ENOSPC, "No space left on device")


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_aside(path, b"x")
    assert path.read_bytes() == b"x"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    real, link = tmp_path / "there" / "report.json", tmp_path / "link"
    write_aside(real, b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    write_aside(link, b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="there is no such device")
def test_a_device_is_written_itself() -> None:
    write_aside(Path("/dev/null"), b"new")
    assert Path("/dev/null").is_char_device()


def test_half_of_a_new_file_does_not_stay(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    with pytest.raises(TypeError):
        write_new(path, "no bytes")  # type: ignore[arg-type] # an error while it is written
    assert not path.exists()
    write_new(path, b"x")
    with pytest.raises(FileExistsError):
        write_new(path, b"y")
    assert path.read_bytes() == b"x"


def test_every_file_that_may_replace_another_is_written_aside() -> None:
    found = set()
    for source in HARNESS.rglob("*.py"):
        lines = source.read_text("utf-8").splitlines()
        if any(WRITES.search(line) for line in lines if "aside(" not in line and "fresh." not in line):
            found.add(source.relative_to(HARNESS).as_posix())
    folders = tuple(f"{name}/" for name in IN_PLACE)
    allowed = {name for name in found if name in IN_PLACE or name.startswith(folders)}
    assert sorted(found - allowed) == []
