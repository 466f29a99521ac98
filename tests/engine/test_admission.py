"""How many target processes compute at once: processors, and what control groups allow of their time."""

from pathlib import Path

import pytest

from harness.engine.workers.admission import processors

V1 = "5:cpuset:/\n4:cpu,cpuacct:{}\n0::/\n"
V2 = "0::{}\n"


@pytest.fixture(autouse=True)
def _eight_processors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("harness.engine.workers.admission.usable_processors", lambda: 8)
    monkeypatch.setattr("harness.engine.workers.admission.OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr("harness.engine.workers.admission.GROUPS", tmp_path / "groups")


def limit(home: Path, own: str, **files: dict[str, str]) -> None:
    """Control groups as they lie below a folder: folder -> file -> content."""
    (home / "own").write_text(own, encoding="utf-8")
    for folder, contents in files.items():
        for name, text in contents.items():
            path = home / "groups" / folder.replace("__", "/") / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="ascii")


def v1(quota: int) -> dict[str, str]:
    return {"cpu.cfs_quota_us": f"{quota}\n", "cpu.cfs_period_us": "100000\n"}


def v2(quota: object) -> dict[str, str]:
    return {"cpu.max": f"{quota} 100000\n"}


@pytest.mark.parametrize(
    ("own", "files", "count"),
    [
        (V2.format("/"), {"": v2(200_000)}, 2),
        (V2.format("/"), {"": v2("max")}, 8),
        (V2.format("/"), {"": v2(1_600_000)}, 8),
        (V2.format("/"), {"": v2(150_000)}, 2),
        (V2.format("/"), {"": v2(1_000)}, 1),
        # The narrowest of all around it counts, and the root has none.
        (V2.format("/a/b"), {"a": v2(300_000), "a__b": v2("max")}, 3),
        (V2.format("/a/b"), {"a": v2(300_000), "a__b": v2(100_000)}, 1),
        # Of a group outside of the container only the root is there.
        (V2.format("/outside/it"), {"": v2(200_000)}, 2),
        (V2.format("/a"), {"a": {"cpu.max": "nonsense"}}, 8),
        (V1.format("/"), {"cpu": v1(-1)}, 8),
        (V1.format("/"), {"cpu": v1(200_000)}, 2),
        (V1.format("/a"), {"cpu": v1(-1), "cpu__a": v1(400_000)}, 4),
        (V1.format("/"), {"cpuset": v1(200_000)}, 8),
        ("", {}, 8),
    ],
)
def test_no_more_than_a_control_group_allows(
    tmp_path: Path, own: str, files: dict[str, dict[str, str]], count: int
) -> None:
    limit(tmp_path, own, **files)
    assert processors() == count


def test_systems_without_control_groups_have_no_limit() -> None:
    assert processors() == 8
