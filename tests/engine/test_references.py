"""Answers in memory: those used last, of each kind."""

from pathlib import Path

import msgspec
import pytest

from harness.core.lru_cache import Room
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.engine.answers.references import MORE_OF_SMALL, References, Stores
from harness.engine.tasks.task import Question, QuestionKind
from harness.golden.golden_answer import Golden
from harness.golden.golden_cache import GoldenStore
from tests.kit import write_model


@pytest.fixture
def cases(tmp_path: Path) -> list[Case]:
    """More cases than are kept of small answers where one golden is kept."""
    path = tmp_path / "models" / "one.onnx"
    write_model(path)
    case = load_case(open_folder(path.parent), path.name, {})
    return [msgspec.structs.replace(case, digest=f"{number:064x}") for number in range(2 * MORE_OF_SMALL)]


def test_what_has_no_store_is_kept_for_so_many_models(tmp_path: Path, cases: list[Case]) -> None:
    store = GoldenStore({"by": "cpu"}, tmp_path / "goldens")
    references = References(Stores(store, store, store, store), Room(count=1))
    lost = Golden(status="lost")
    question = Question(suite="s", model="m", kind=QuestionKind.REPEATED)
    for case in cases:
        references.keep(question, case, lost)
        references.keep_spread(case, "float32", "it has jumps")
        references.keep_unmade(case, "float16", "no such type")
        references.keep_unnoticed(case, ("Relu",), for_ever=False)
    for case in cases[:MORE_OF_SMALL]:
        assert references.find(question, case) is None
        assert references.spread(case, "float32") is None
        assert references.unmade(case, "float16") == ""
        assert references.unnoticed(case) is None
    for case in cases[MORE_OF_SMALL:]:
        assert references.find(question, case) == lost
        assert references.spread(case, "float32") == "it has jumps"
        assert references.unmade(case, "float16") == "no such type"
        assert references.unnoticed(case) == ("Relu",)
