import os
import sys
from pathlib import Path

import pytest

from harness.core.text.errors import UsageError
from harness.corpus.suites.model_folder import find_models

links = pytest.mark.skipif(sys.platform == "win32", reason="symbolic links need a privilege on Windows")


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_models_are_found_at_any_depth_in_order(tmp_path: Path) -> None:
    touch(tmp_path, "b.onnx", "a/z.onnx", "a/model.onnx", "a/b/c/model.onnx", "a/readme.txt", "UPPER.ONNX")
    assert find_models(tmp_path) == ("UPPER.ONNX", "a/b/c/model.onnx", "a/model.onnx", "a/z.onnx", "b.onnx")


def test_hidden_and_odd_names_are_models_too(tmp_path: Path) -> None:
    touch(tmp_path, ".hidden.onnx", ".cache/a.onnx", "with space [1].onnx", "ünï.onnx")
    assert find_models(tmp_path) == (".cache/a.onnx", ".hidden.onnx", "with space [1].onnx", "ünï.onnx")


def test_a_folder_that_is_named_like_a_model_is_a_folder(tmp_path: Path) -> None:
    touch(tmp_path, "odd.onnx/inner.onnx")
    assert find_models(tmp_path) == ("odd.onnx/inner.onnx",)


def test_what_macos_keeps_beside_a_file_is_no_model(tmp_path: Path) -> None:
    touch(tmp_path, "a.onnx", "._a.onnx", "deep/._b.onnx")
    assert find_models(tmp_path) == ("a.onnx",)


def test_a_model_in_ort_format_is_one_where_its_onnx_model_is_not_beside_it(tmp_path: Path) -> None:
    touch(tmp_path, "a.onnx", "a.ort", "deep/b.ort")
    assert find_models(tmp_path) == ("a.onnx", "deep/b.ort")


def test_a_folder_of_archives_alone_says_to_unpack_them(tmp_path: Path) -> None:
    touch(tmp_path, "resnet.tar.gz", "deep/bert.tar.gz", "._junk.tar.gz")
    with pytest.raises(UsageError, match=r"there is no \.onnx file") as caught:
        find_models(tmp_path)
    assert caught.value.problems[0].hint == "unpack the .tar.gz files that are there: 2"


@links
def test_loops_end_and_aliases_are_listed_once_by_their_real_name(tmp_path: Path) -> None:
    touch(tmp_path, "z/real.onnx")
    (tmp_path / "a").symlink_to(tmp_path / "z", target_is_directory=True)
    (tmp_path / "z" / "up").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "self").symlink_to(tmp_path / "self", target_is_directory=True)
    assert find_models(tmp_path) == ("z/real.onnx",)


@links
def test_links_lead_outside_and_broken_ones_stay_visible(tmp_path: Path) -> None:
    touch(tmp_path, "store/blob", "store/deep/a.onnx")
    models = tmp_path / "models"
    models.mkdir()
    (models / "file.onnx").symlink_to(tmp_path / "store" / "blob")
    (models / "folder").symlink_to(tmp_path / "store", target_is_directory=True)
    (models / "gone.onnx").symlink_to(tmp_path / "nowhere")
    assert find_models(models) == ("file.onnx", "folder/deep/a.onnx", "gone.onnx")


def test_no_folder_no_models_and_a_file_are_usage_errors(tmp_path: Path) -> None:
    touch(tmp_path, "a.onnx", "empty/readme.txt")
    for path, expected in (
        (tmp_path / "missing", "there is no such folder"),
        (tmp_path / "a.onnx", "this is a file"),
        (tmp_path / "empty", "there is no .onnx file"),
    ):
        with pytest.raises(UsageError, match=expected) as caught:
            find_models(path)
        problem = caught.value.problems[0]
        assert problem.where == str(path)
        assert problem.hint


@pytest.mark.skipif(sys.platform != "linux", reason="other file systems refuse such names")
def test_a_folder_whose_name_is_not_text_is_a_usage_error(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"bad\xff")
    touch(folder, "a.onnx")
    with pytest.raises(UsageError, match="not UTF-8") as caught:
        find_models(folder)
    str(caught.value).encode()
