"""What is kept in memory: bounded in number and in bytes, and the last entry always there."""

from hypothesis import given
from hypothesis import strategies as st

from harness.core.lru_cache import NBYTES, LruCache

KEYS = st.integers(0, 5)
PUTS = st.lists(st.tuples(KEYS, st.integers(0, 12), st.booleans()), max_size=40)


def test_what_was_used_last_stays() -> None:
    cache: LruCache[str, int] = LruCache(2, nbytes=100)
    cache.put("a", 1, 1)
    cache.put("b", 2, 1)
    assert cache.get("a") == 1
    cache.put("c", 3, 1)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_one_large_entry_is_kept_and_drives_out_all_others() -> None:
    cache: LruCache[str, int] = LruCache(10, nbytes=10)
    for key in "abc":
        cache.put(key, 0, 3)
    assert len(cache) == 3
    cache.put("large", 1, 11)
    assert (len(cache), cache.get("large")) == (1, 1)
    cache.put("d", 2, 10)
    assert (len(cache), cache.get("large"), cache.get("d")) == (1, None, 2)


def test_a_new_value_of_a_key_takes_the_place_of_the_old_one() -> None:
    cache: LruCache[str, str] = LruCache(3, nbytes=10)
    cache.put("a", "large", 9)
    cache.put("a", "small", 1)
    cache.put("b", "fits now", 9)
    assert (cache.get("a"), cache.get("b")) == ("small", "fits now")


def test_a_run_keeps_less_than_a_process_takes() -> None:
    cache: LruCache[int, int] = LruCache(512)
    for key in range(100):
        cache.put(key, key, 100_000_000)
    assert len(cache) * 100_000_000 <= NBYTES < 1 << 29


@given(PUTS)
def test_it_is_a_dict_of_the_newest_entries(puts: list[tuple[int, int, bool]]) -> None:
    cache: LruCache[int, int] = LruCache(3, nbytes=20)
    model: dict[int, tuple[int, int]] = {}
    for number, (key, nbytes, reads) in enumerate(puts):
        if reads:
            assert cache.get(key) == model.get(key, (None,))[0]
            if key in model:
                model[key] = model.pop(key)
            continue
        cache.put(key, number, nbytes)
        model.pop(key, None)
        model[key] = (number, nbytes)
        while len(model) > 3 or (len(model) > 1 and sum(size for _, size in model.values()) > 20):
            del model[next(iter(model))]
    assert len(cache) == len(model)
    assert {key: cache.get(key) for key in range(6) if key in model} == {
        key: value for key, (value, _) in model.items()
    }
