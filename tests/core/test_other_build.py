"""Another build of a library is told, whatever its version says."""

from typing import Any

import pytest

from harness.core.findings.other_build import other_builds

PLUGIN = {"library": "/opt/a/libep.so", "version": "1.0"}


def side(**digests: str) -> dict[str, Any]:
    names = {name.replace("_so", ".so"): one * 64 for name, one in digests.items()}
    return {"plugin": PLUGIN, "sha256": names}


def change(what: str) -> str:
    return f"other build of {what}sha256 aaaaaaaaaaaa... -> bbbbbbbbbbbb...)"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (side(libep_so="a"), side(libep_so="a"), []),
        (
            side(libep_so="a"),
            side(libep_so="b"),
            [change("the plugin (libep.so, ")],
        ),
        (
            side(libcudart_so="a"),
            side(libcudart_so="b"),
            [change("libcudart.so (")],
        ),
        (
            side(onnxruntime_pybind11_state_so="a"),
            side(onnxruntime_pybind11_state_so="b"),
            [change("onnxruntime (onnxruntime_pybind11_state.so, ")],
        ),
        (side(libep_so="a"), side(libother_so="b"), []),
        (side(libep_so="a"), {"plugin": PLUGIN}, []),
        ({}, side(libep_so="a"), []),
        ({"sha256": "text", "plugin": 3}, side(libep_so="a"), []),
    ],
)
def test_other_builds(old: dict[str, Any], new: dict[str, Any], told: list[str]) -> None:
    assert [*other_builds(old, new)] == told
