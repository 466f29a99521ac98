"""Shipped data is found in a checkout and in a wheel."""

from pathlib import Path

import pytest

from harness import data_files


def test_a_checkout_keeps_its_data_at_the_top_level() -> None:
    assert (data_files.data_root() / "matrices" / "providers").is_dir()
    assert (data_files.data_root() / "golden" / "manifest.json").is_file()


def test_a_wheel_keeps_its_data_inside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "_data").mkdir()
    monkeypatch.setattr(data_files, "PACKAGE", tmp_path)
    assert data_files.data_root() == tmp_path / "_data"
