"""Names are compared as people read them."""

import pytest

from harness.annex.conformance.look_alikes import LOOK_ALIKES
from harness.annex.conformance.lookalike_names import as_read, same_name


@pytest.mark.parametrize(
    "other",
    [
        "ACME Inc",
        "acme  inc ",
        "Acme\u00a0Inc",
        "\uff21cme \uff29nc",
        "\u0410cme Inc",
        "Acm\u0435 Inc",
        "\u0391cme Inc",
        "Acm\u00e9 Inc",
        "Acme, Inc.",
        "Acme\u200b Inc",
        "Acrne Inc",
        "Acme lnc",
        "Acme 1nc",
        "\U0001d400cme Inc",
        "Ac\u0336me Inc",
    ],
)
def test_names_that_people_take_for_each_other(other: str) -> None:
    assert as_read(other) == as_read("Acme Inc")


@pytest.mark.parametrize("other", ["Acne Inc", "Acme Ltd", "Acm Inc", "Acme Inc 2", ""])
def test_other_names(other: str) -> None:
    assert as_read(other) != as_read("Acme Inc")


def test_what_is_the_same_name() -> None:
    assert same_name(" \uff21cme  INC\t") == same_name("acme inc") == "acme inc"
    assert same_name("\u0410cme inc") != "acme inc"


def test_every_character_of_the_table_reads_as_it_says() -> None:
    for read, chars in LOOK_ALIKES.items():
        for char in chars:
            assert as_read(char) == as_read(read), (read, hex(ord(char)))
