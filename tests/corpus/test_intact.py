"""Files of the cache are checked by their digests, and made again if one is damaged or gone."""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.corpus.caches.cache import fill_intact, fill_once
from harness.corpus.caches.intact import DIGESTS_FILE, find_damaged, mend
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ChangedFileError, DamagedError, MendedError
from harness.corpus.suites.suite import Suite
from harness.engine.answers.files_in_use import FilesInUse

Write = Callable[..., Path]


def build(folder: Path) -> None:
    for name in ("top", "a/model.onnx", "a/data/input_0.pb", "b/model.onnx"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"content of {name}", encoding="utf-8")


def flip(path: Path) -> None:
    """Damage one bit; size and time stay as they are."""
    import os

    status, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.fixture
def entry(tmp_path: Path) -> Path:
    return fill_once(tmp_path / "cache" / "entry", build, with_digests=True)


@pytest.mark.parametrize("name", ["top", "a/model.onnx", "a/data/input_0.pb"])
@pytest.mark.parametrize("harm", [flip, Path.unlink, lambda path: path.write_bytes(b"")])
def test_any_damage_is_found_and_mended(entry: Path, name: str, harm: Callable[[Path], object]) -> None:
    assert find_damaged(entry) is None
    harm(entry / name)
    untouched = (entry / "b/model.onnx").stat()
    assert find_damaged(entry) == entry / name
    assert mend(entry, build) == 1
    assert find_damaged(entry) is None
    assert (entry / "b/model.onnx").stat().st_mtime_ns == untouched.st_mtime_ns
    assert (entry / "b/model.onnx").stat().st_ino == untouched.st_ino
    assert mend(entry, build) == 0


def test_damaged_digests_and_a_removed_folder_are_mended(entry: Path) -> None:
    flip(entry / DIGESTS_FILE)
    assert find_damaged(entry) is not None
    mend(entry, build)
    assert find_damaged(entry) is None
    shutil.rmtree(entry)
    assert find_damaged(entry) == entry / DIGESTS_FILE
    assert mend(entry, build) == 4
    assert find_damaged(entry) is None


def test_only_what_is_about_to_be_read_is_looked_at(entry: Path) -> None:
    flip(entry / "a/data/input_0.pb")
    assert find_damaged(entry, "b") is None
    assert find_damaged(entry, "a", "model.onnx") is None
    assert find_damaged(entry, "a") == entry / "a/data/input_0.pb"
    assert find_damaged(entry, "none") == entry / DIGESTS_FILE


def test_a_derived_folder_with_damage_is_filled_again(tmp_path: Path) -> None:
    entry = fill_intact(tmp_path / "entry", build)
    flip(entry / "a/model.onnx")
    fill_intact(entry, build)
    assert find_damaged(entry) is None
    assert (entry / "a/model.onnx").read_text("utf-8") == "content of a/model.onnx"


@pytest.fixture
def suite(tmp_path: Path, write_model: Write) -> Suite:
    source = write_model("source/one/model.onnx")

    def make_all(folder: Path) -> None:
        (folder / "one").mkdir()
        (folder / "one" / "model.onnx").write_bytes(source.read_bytes())

    root = fill_once(tmp_path / "suites" / "s", make_all, with_digests=True)
    cache = tmp_path / "rows"
    return Suite(name="s", root=root, kind="built_in", names=("one",), cache=cache, make_all=make_all)


def test_a_flipped_bit_of_a_suite_is_never_read_as_a_model(suite: Suite) -> None:
    """Neither from the files nor from the row cache, whose state looks the same."""
    case = load_case(suite, "one", {"N": 2})
    flip(case.model_path)
    with pytest.raises(DamagedError, match="the file in the cache is damaged"):
        load_case(suite, "one", {"N": 2})
    assert suite.mend("one").endswith("are made again: 1")
    assert load_case(suite, "one", {"N": 2}).digest == case.digest


def test_a_cache_that_cannot_be_mended_says_so(suite: Suite, tmp_path: Path) -> None:
    case = load_case(suite, "one", {"N": 2})
    flip(case.model_path)
    (tmp_path / "source" / "one" / "model.onnx").unlink()
    with pytest.raises(DamagedError, match="cannot be made again"):
        suite.mend("one")


def test_a_cache_that_is_removed_under_a_run_is_made_again_and_the_cell_repeated(suite: Suite) -> None:
    warned: list[str] = []

    def load(_: str, model: str) -> object:
        try:
            return load_case(suite, model, {"N": 2})
        except DamagedError:
            warned.append(suite.mend(model))
        return load_case(suite, model, {"N": 2})

    files = FilesInUse(load, lambda _: True)  # type: ignore[arg-type]
    case = files.load("s", "one")
    assert files.look("s", "one", fails=True) is None
    shutil.rmtree(suite.root)
    assert isinstance(files.look("s", "one", fails=True), MendedError)
    assert case.model_path.is_file()
    assert files.look("s", "one", fails=True) is None
    assert len(warned) == 1
    shutil.rmtree(suite.root)
    assert files.look("s", "one", fails=False) is None  # a right answer is right
    changed = msgspec.structs.replace(case, digest="another")
    other = FilesInUse(lambda *_: changed, lambda _: True)
    other.load("s", "one")
    shutil.rmtree(suite.root)
    assert isinstance(other.look("s", "one", fails=True), ChangedFileError)
