"""Another distribution adds a suite by an entry point; a broken one is named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.errors import UsageError
from harness.corpus.suites import open_model, open_suite, suite_lines
from harness.doors import SUITES, behind, load

OURS = """
from pathlib import Path

from harness.corpus.suite import SuiteSource, suite_of_code

def write(name: str, folder: Path) -> None:
    from onnx import TensorProto, helper, save
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Abs", ["x"], ["y"])], name,
        [value("x", TensorProto.FLOAT, [3])], [value("y", TensorProto.FLOAT, [3])])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), folder / "model.onnx")

def open_ours(name: str):
    return suite_of_code(name, ("first", "second"), write, (Path(__file__).parent,))

OURS = SuiteSource(form="ours", line="two models of ours", open=open_ours)
"""


def test_a_suite_from_another_distribution(install: Callable[..., Path]) -> None:
    install("acme", "[ep_harness.suites]\nours = acme_module:OURS\n", OURS)
    assert suite_lines()["ours"] == "two models of ours"
    suite = open_suite("ours")
    assert suite.models() == ("first", "second")
    assert suite.model_path("second").is_file()
    assert open_model("ours/first").models() == ("first",)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise OSError('no device')", "OSError('no device')"),
        ("OURS = 1", "of the type int, not SuiteSource"),
        ("", "has no attribute 'OURS'"),
    ],
)
def test_a_broken_distribution_is_named(install: Callable[..., Path], code: str, said: str) -> None:
    install("acme", "[ep_harness.suites]\nours = acme_module:OURS\n", code)
    with pytest.raises(UsageError) as caught:
        open_suite("ours")
    assert "ep_harness.suites: ours: " in str(caught.value)
    assert said in str(caught.value)
    assert "the distribution acme has registered it" in str(caught.value)
    assert open_suite("onnx-simple").models()  # no other suite is lost


def test_two_distributions_with_one_name(install: Callable[..., Path]) -> None:
    install("acme", "[ep_harness.suites]\nours = acme_module:OURS\n", OURS)
    install("corp", "[ep_harness.suites]\nours = corp_module:OURS\n", OURS)
    with pytest.raises(UsageError, match="registered as corp_module:OURS and as acme_module:OURS"):
        load(SUITES, "ours", object)


def test_what_ships_is_behind_the_same_doors() -> None:
    assert {"zoo", "generate", "fuzz", "profile"} <= set(behind(SUITES))
