"""Another distribution adds a suite by an entry point; a broken one is named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.text.errors import UsageError
from harness.corpus.suites.suites import open_model, open_suite, suite_lines
from harness.doors import SUITES, behind, load_registered

EXTENSION = Path(__file__).parent / "extension"


def test_a_suite_from_another_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXTENSION)
    assert suite_lines()["acme"] == "models of our own products"
    suite = open_suite("acme")
    assert suite.models() == ("camera", "radio")
    assert suite.model_path("radio").is_file()
    assert open_model("acme/camera").models() == ("camera",)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise OSError('no device')", "OSError: no device"),
        ("OURS = 1", "is of the type int"),
        ("", "has no attribute 'OURS'"),
    ],
)
def test_a_broken_distribution_is_named(install: Callable[..., Path], code: str, said: str) -> None:
    install("acme", "[ep_harness.suites]\nours = acme_module:OURS\n", code)
    with pytest.raises(UsageError) as caught:
        open_suite("ours")
    assert str(caught.value).startswith("ours: acme_module:OURS of acme 1.0 ")
    assert said in str(caught.value)
    assert open_suite("onnx-simple").models()  # no other suite is lost


def test_two_distributions_with_one_name(install: Callable[..., Path]) -> None:
    install("acme", "[ep_harness.suites]\nours = acme_module:OURS\n")
    install("corp", "[ep_harness.suites]\nours = corp_module:OURS\n")
    with pytest.raises(UsageError, match=r"several packages have this name: corp 1\.0, acme 1\.0"):
        load_registered(SUITES, "ours", object)


def test_what_ships_is_behind_the_same_doors(install: Callable[..., Path]) -> None:
    install("acme", "[ep_harness.suites]\nzoo = acme_module:OURS\n")
    assert len(open_suite("zoo").models()) > 2  # nobody replaces one of ours
    assert {"zoo", "generate", "fuzz", "profile"} <= set(behind(SUITES))
