"""The processor's features that an agent reports, from what Linux lists."""

from pathlib import Path

import pytest

from harness.agent.system import features, processor
from harness.run.resume import check_same_environment

pytestmark = pytest.mark.skipif("sys.platform != 'linux'", reason="reads what Linux lists")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "processor\t: 0\nflags\t\t: fpu avx2 amx_bf16 amx_tile\n",
            ["amx_tile", "amx_bf16", "avx2"],
        ),
        ("processor : 0\nFeatures : fp asimd bf16 i8mm sve\n", ["asimd", "bf16", "i8mm", "sve"]),
        ("flags : fpu\n", []),
        ("processor : 0\nisa : rv64imafdc\n", None),
        ("", None),
    ],
)
def test_features_that_change_numerics(text: str, found: list[str] | None, tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(text, encoding="utf-8")
    assert features(str(cpuinfo)) == found
    assert processor(str(cpuinfo)).get("features") == found


def test_without_a_list_nothing_is_claimed(tmp_path: Path) -> None:
    assert "features" not in processor(str(tmp_path / "none"))


def test_a_run_that_an_older_version_began_can_be_continued() -> None:
    then = {"onnxruntime": "1.31.1", "processor": {"model": "x", "count": 2}}
    now = {**then, "processor": {"model": "x", "count": 2, "features": ["avx2"]}, "drivers": {"i915": "1"}}
    check_same_environment("t", then, now, "run")
    with pytest.raises(Exception, match="has changed"):
        check_same_environment("t", now, {**now, "processor": then["processor"]}, "run")
