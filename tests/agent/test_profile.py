"""What a profile leaves behind."""

from pathlib import Path

import pytest

from harness.agent.session_profile import SessionProfile, profile_folder


def test_a_profile_leaves_nothing_and_its_folder_serves_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    profile_folder.cache_clear()
    try:
        for _ in range(2):
            profile = SessionProfile()
            for name in ("_1.json", "_2.json"):  # of a session that came to nothing, too
                (Path(profile_folder()) / ("profile" + name)).touch()
            profile.discard()
            (place,) = tmp_path.iterdir()
            assert list(place.iterdir()) == []
    finally:
        profile_folder.cache_clear()
