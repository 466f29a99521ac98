"""What a text must not tell of its machine, and what it may."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.annex.triage.scrub import Scrubber

SCRUB = Scrubber(
    folders=("/home/zaphod b", "/tmp"),  # noqa: S108 - a folder to hide
    users=("zaphod",),
    hosts=("heartofgold",),
    names=frozenset({"/encoder/layer.0/MatMul"}),
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("at /opt/ort/core/session.cc:42", "at <path>/session.cc:42"),
        ("/home/zaphod b/net.py fails", "<path>/net.py fails"),
        ("in '/tmp'", "in '<path>'"),
        ("/srv/a/b/c.onnx", "<path>/c.onnx"),
        ("~/models/x.onnx", "<path>/x.onnx"),
        ("file:///srv/x/y.txt", "<path>/y.txt"),
        ("C:\\Users\\zaphod\\x.dll", "<path>/x.dll"),
        ("\\\\server\\share\\x.dll", "<path>/x.dll"),
        ('{"dir": "/srv/cache/"}', '{"dir": "<path>"}'),
        ("-L/opt/lib -I/opt/inc", "-L<path>/lib -I<path>/inc"),
        ("zaphod@heartofgold: hello", "<user>@<host>: hello"),
        ("GPU=0 ; hostname=vm ; line=7", "GPU=0 ; hostname=<host> ; line=7"),
        ("hostname=heartofgold", "hostname=<host>"),
        ("node /encoder/layer.0/MatMul failed", "node /encoder/layer.0/MatMul failed"),
    ],
)
def test_what_is_hidden(text: str, told: str) -> None:
    assert SCRUB(text) == told
    assert SCRUB(told) == told


@pytest.mark.parametrize(
    "text",
    [
        "1/2 and a/b, CPU/GPU",
        "https://github.com/microsoft/onnxruntime/issues/1",
        "a / b",
        "zaphodian, heartofgolden",
        "root mean square",
        "INFERENCE_PRECISION_HINT: f32",
        "x[:, ::-1]",
    ],
)
def test_what_stays(text: str) -> None:
    assert SCRUB(text) == text


def test_this_process_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "deepthought.example.org")
    monkeypatch.setenv("USER", "arthurdent")
    told = Scrubber.of_here()("arthurdent on deepthought, deepthought.example.org")
    assert told == "<user> on <host>, <host>"


def test_a_generic_account_is_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("USER", "USERNAME", "LOGNAME"):
        monkeypatch.setenv(variable, "root")
    assert "root" not in Scrubber.of_here().users


@given(st.lists(st.text("abc.-_ ", min_size=1, max_size=6), min_size=2, max_size=5))
def test_no_folder_of_ours_is_left(parts: list[str]) -> None:
    text = "x " + "/tmp/" + "/".join(parts)  # noqa: S108 - a folder to hide
    assert "/tmp" not in SCRUB(text)  # noqa: S108
