import pytest

from harness.corpus.model.symbols import computed, free_symbols


@pytest.mark.parametrize(
    ("symbol", "size"),
    [
        ("past + sequence", 7),
        ("past+1", 4),
        ("2*batch", 4),
        ("2 * batch + past * sequence", 16),
        ("past", None),
        ("past + other", None),
        ("past - 1", None),
        ("floor(past/2)", None),
        ("", None),
        ("+", None),
        ("7", None),
        ("past + ", None),
        ("a dimension + another", None),
    ],
)
def test_sums_and_products_of_sizes(symbol: str, size: int | None) -> None:
    assert computed(symbol, {"past": 3, "sequence": 4, "batch": 2}) == size


def test_the_symbols_that_have_a_size_of_their_own() -> None:
    symbols = ["batch", "past + sequence", None, "", "2*batch", "floor(x/2)", "unk__12"]
    assert free_symbols(symbols) == ("batch", "past", "sequence", "floor(x/2)", "unk__12")
