import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.text.errors import UsageError
from harness.plan.plan import Plan
from harness.plan.shard import parse_shard, shard
from tests.kit import plan_of

TABLE = {
    "schema": 1,
    "models": {"folders": ["m"]},
    "target": [{"name": name, "provider": "CPUExecutionProvider"} for name in ("a", "b")],
}


def plan(models: int) -> Plan:
    return plan_of(TABLE, {"m": [f"{number:03}.onnx" for number in range(models)]})


@given(st.integers(1, 40), st.integers(1, 9), st.data())
def test_shares_make_the_whole_and_are_about_equally_long(
    models: int, count: int, data: st.DataObject
) -> None:
    whole = plan(models)
    ids = [cell.id for cell in whole.cells]
    count = min(count, len(ids))
    durations = data.draw(st.dictionaries(st.sampled_from(ids), st.floats(0.1, 1e5)))
    shares = [shard(whole, index, count, durations) for index in range(1, count + 1)]
    dealt = [cell.id for share in shares for cell in share.cells]
    assert sorted(dealt) == sorted(ids)
    assert all(
        [cell.id for cell in share.cells] == [i for i in ids if i in set(_ids(share))] for share in shares
    )
    known = sorted(durations.values())
    usual = known[len(known) // 2] if known else 1.0
    lengths = [sum(durations.get(cell_id, usual) for cell_id in _ids(share)) for share in shares]
    # Whoever is the longest got its last cell when it was the shortest.
    assert max(lengths) - min(lengths) <= max([usual, *durations.values()]) * (1 + 1e-9)


def _ids(plan: Plan) -> list[str]:
    return [cell.id for cell in plan.cells]


def test_the_order_of_known_durations_does_not_matter() -> None:
    whole = plan(20)
    durations = {cell.id: float(len(cell.target) + index) for index, cell in enumerate(whole.cells)}
    backwards = dict(reversed(durations.items()))
    assert _ids(shard(whole, 2, 3, durations)) == _ids(shard(whole, 2, 3, backwards))


@pytest.mark.parametrize(("text", "read"), [("1/1", (1, 1)), ("2/8", (2, 8)), ("008/8", (8, 8))])
def test_a_shard_is_read(text: str, read: tuple[int, int]) -> None:
    assert parse_shard(text) == read


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "1/0", "-1/4", "a/b", "1/2/3", "1.0/2"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="such as 2/8"):
        parse_shard(text)


def test_an_empty_share_is_refused() -> None:
    with pytest.raises(UsageError, match="use fewer shards"):
        shard(plan(1), 3, 3, {})
