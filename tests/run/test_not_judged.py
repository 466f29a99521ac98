"""What is not judged is named, each cause in one line."""

import itertools

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.run.not_judged import MOST_CAUSES, ModelGroup, SharedCause, add_to, not_judged, says_nothing_yet
from tests.kit import bare_record


def record(model: str, verdict: Verdict, reason: str, target: str = "npu") -> Record:
    return bare_record(model, verdict, target=target, reason=reason)


def lines(*records: Record) -> list[tuple[str, str]]:
    targets: dict[str, dict[SharedCause, ModelGroup]] = {}
    for each in records:
        assert says_nothing_yet(each)
        add_to(targets.setdefault(each.target, {}), each)
    return [*not_judged(targets.values())]


def test_reasons_that_differ_by_a_name_or_a_figure_alone_are_one_cause() -> None:
    missing = "NotImplemented: Could not find an implementation for %s node with name '%s'"
    found = lines(
        *(record(f"m{at}", Verdict.NO_GOLDEN, missing % (f"Op{at}({at})", f"n{at}")) for at in range(70)),
        record("m0", Verdict.NO_GOLDEN, missing % ("Op0(0)", "n0"), "other"),
    )
    assert found == [
        (
            "no_golden",
            f"s/m0, s/m1, s/m10 and 67 more: {missing % ('Op0(0)', 'n0')}",
        )
    ]


def test_what_can_be_mended_comes_first_and_the_lines_are_bounded() -> None:
    words = ("alpha", "beta", "gamma", "delta", "eta", "theta", "iota")
    found = lines(
        *(record(f"{word}{at}", Verdict.NO_INPUT, word) for word, at in itertools.product(words, range(2))),
        *(
            record(f"kind{at}", Verdict.NO_GOLDEN, f"the CPU EP refuses it, too: Kind{at}: x")
            for at in range(9)
        ),
        record("typo", Verdict.NO_INPUT, "m.onnx.toml: its settings name the dimension 'bacth'"),
        record("slow", Verdict.TIMEOUT, "still at work; give it more: timeouts_s = { run = 600 }"),
    )
    assert [word for word, _ in found] == ["timeout", *["no_input"] * 4, "not judged"]
    assert len(found) == MOST_CAUSES + 1
    assert found[0][1].endswith("timeouts_s = { run = 600 }")
    assert found[-1][1] == "16 more for 13 other causes, in the report"
    found = lines(*(record(f"kind{at}", Verdict.NO_GOLDEN, f"Kind{at}: x") for at in range(9)))
    assert [word for word, _ in found] == ["no_golden", "no_golden", "not judged"]


def test_disputes_differ_in_every_figure_and_are_one_cause() -> None:
    reasons = ("output y: 3 of 60 differ", "another shape", "it draws numbers")
    found = lines(*(record(f"m{at}", Verdict.REFERENCE_DISPUTED, why) for at, why in enumerate(reasons)))
    assert found == [("reference_disputed", "s/m0, s/m1, s/m2: output y: 3 of 60 differ")]


def test_what_was_not_tried_is_not_listed() -> None:
    assert not says_nothing_yet(record("m", Verdict.UNAVAILABLE, "no device"))
    assert not says_nothing_yet(record("m", Verdict.UNSUPPORTED, "no"))
