"""The table of verdicts."""

from harness.core.records.verdict import Family, Verdict


def test_every_verdict_has_a_family_and_a_meaning() -> None:
    assert {verdict.family for verdict in Verdict} == set(Family)
    assert all(verdict.meaning for verdict in Verdict)


def test_families_stand_together_in_the_order_of_precedence() -> None:
    families = [verdict.family for verdict in Verdict]
    assert list(dict.fromkeys(families)) == list(Family)
    assert families == sorted(families, key=list(Family).index)


def test_a_fallback_is_never_a_pass() -> None:
    assert Verdict.FALLBACK.family is Family.UNTESTED
    assert [verdict for verdict in Verdict if verdict.family is Family.PASSED] == [
        Verdict.PASS_PARTIAL,
        Verdict.PASS,
    ]


def test_comparison_verdicts_go_from_structure_to_values() -> None:
    order = list(Verdict)
    ranks = [
        order.index(verdict)
        for verdict in (
            Verdict.SHAPE_MISMATCH,
            Verdict.DTYPE_MISMATCH,
            Verdict.NAN_MISMATCH,
            Verdict.MISMATCH,
        )
    ]
    assert ranks == sorted(ranks)
