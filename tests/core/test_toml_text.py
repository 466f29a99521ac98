"""TOML of strangers: a key of a million parts would take days."""

import tomllib

import pytest

from harness.core.files.toml_text import MOST_DOTS, toml_table


@pytest.mark.parametrize("key", ["a.", '"a".', "a . ", "'a'\t.\t", '"=".', "'[' . a . "])
@pytest.mark.parametrize("around", ["{}a = 1", "[{}a]", "[[{}a]]", "x = {{ {}a = 1 }}", "x = 1\n{}a = 1 # ="])
def test_a_key_of_many_parts_is_refused_before_it_is_read(key: str, around: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="a key of more than 200 parts"):
        toml_table(around.format(key * 100_000).encode())
    toml_table(around.format(key * MOST_DOTS).encode())


def test_numbers_and_sentences_have_as_many_dots_as_they_like() -> None:
    numbers = ", ".join(["0.5"] * 10_000)
    table = toml_table(f'\ufeffx = [{numbers}]\ny = """{"One. " * 30}\n{"Two. " * 100}"""'.encode())
    assert len(table["x"]) == 10_000
    assert table["y"].count(".") == 130


def test_what_is_no_text_is_a_value_error() -> None:
    with pytest.raises(UnicodeDecodeError):
        toml_table(b"\xff")
