"""Which values an option accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.option import Option, OptionType
from harness.catalog.provider import Provider


def an(kind: OptionType, **more: object) -> Option:
    return Option(key="k", type=kind, meaning="m", source=("s",), **more)  # type: ignore[arg-type]


RANGED = an("int", values=("0", "3"), ranged=True)
SHARE = an("float", values=("0", "1"), ranged=True)
MODE = an("choice", values=("force_fp32", "force_fp16", "allow_mix_precision"))
BITS = an("flags", flags={"FLASH": 1, "EFFICIENT": 2, "MATH": 16})
NAMES = an("flags", flags={"FLASH": 1, "MATH": 16}, flags_by_name=True)


@pytest.mark.parametrize(
    ("option", "good"),
    [
        (an("int"), ["0", "-1", "12345678901234567890"]),
        (RANGED, ["0", "3"]),
        (an("float"), ["0", "-1.5", "1e-3", ".5", "2."]),
        (SHARE, ["0", "0.25", "1"]),
        (an("bytes"), ["0", "18446744073709551615"]),
        (an("bool"), ["0", "1"]),
        (MODE, ["force_fp16"]),
        (BITS, ["0", "1", "19"]),
        (NAMES, ["FLASH", "FLASH|MATH", "FLASH | MATH", "FLASH,MATH"]),
        (an("json"), ["{}", '{"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}']),
        (an("text"), ["", "anything at all"]),
        (an("path"), ["", "C:\\x", "/opt/x"]),
        (an("address"), ["", "0"]),
    ],
)
def test_good_values(option: Option, good: list[str]) -> None:
    assert [option.problem(value) for value in good] == [None] * len(good)


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        (an("int"), "1.5", "expected a whole number"),
        (an("int"), "", "expected a whole number"),
        (an("int"), " 1", "expected a whole number"),
        (an("int"), "٣", "expected a whole number"),
        (an("int"), "9" * 5000, "expected a whole number"),
        (RANGED, "4", "which is out of range"),
        (an("float"), "fast", "expected a number"),
        (an("float"), "nan", "expected a number"),
        (an("float"), "1_0", "expected a number"),
        (an("float"), "1e999", "expected a number"),
        (SHARE, "1.5", "which is out of range"),
        (an("bytes"), "-1", "expected a number of bytes"),
        (an("bytes"), "18446744073709551616", "expected a number of bytes"),
        (an("bytes"), "2GB", "expected a whole number"),
        (an("bool"), "true", "expected a boolean"),
        (MODE, "FORCE_FP16", "expected one of 3 values"),
        (BITS, "4", "which has bits without a meaning"),
        (BITS, "-1", "expected a sum of flags"),
        (BITS, "FAST", "expected a sum of flags"),
        (BITS, "FLASH|MATH|FLASH", "expected their sum, 17, in place of names"),
        (NAMES, "17", "expected names of flags, not '17'"),
        (NAMES, "FLASH|MATHS", "expected names of flags, not 'MATHS'"),
        (NAMES, " | ", "expected names of flags, not ''"),
        (an("json"), "{", "expected JSON: Expecting property name"),
        (an("json"), "[" * 100_000, "which is nested too deeply"),
        (an("text"), "a\0b", "but it holds a null character"),
        (an("address"), "140234", "but a matrix cannot set a pointer"),
    ],
)
def test_bad_values(option: Option, value: str, problem: str) -> None:
    assert (option.problem(value) or "").startswith(problem)


@pytest.mark.parametrize(
    ("option", "value", "valid"),
    [
        (MODE, "force_fp61", "did you mean 'force_fp16'? valid: force_fp32, force_fp16, allow_mix_precision"),
        (RANGED, "4", "valid: a whole number from 0 to 3"),
        (SHARE, "4", "valid: a number from 0 to 1"),
        (an("bytes"), "4k", "valid: a whole number of bytes"),
        (BITS, "4", "valid: the sum of FLASH (1), EFFICIENT (2), MATH (16)"),
        (NAMES, "4", "valid: names of FLASH (1), MATH (16)"),
        (an("bool"), "yes", "valid: 1, 0"),
        (an("json"), "{", ""),
    ],
)
def test_what_would_be_valid(option: Option, value: str, valid: str) -> None:
    assert option.valid(value) == valid


def test_a_long_list_is_shown_whole() -> None:
    many = an("choice", values=tuple(f"value{number}" for number in range(20)))
    assert many.valid("x").count("value") == 20


def test_booleans_are_spelled_as_the_provider_reads_them(provider: Provider) -> None:
    assert provider.booleans == ("True", "False", "true", "false")
    fast = provider.options[0]
    assert fast.problem("true", provider.booleans) is None
    assert fast.problem("1", provider.booleans) == "expected a boolean"
    assert fast.valid("1", provider.booleans) == "valid: True, False, true, false"


@pytest.mark.parametrize(
    "option",
    [
        an("int"),
        RANGED,
        an("float"),
        SHARE,
        an("bytes"),
        an("bool"),
        MODE,
        BITS,
        NAMES,
        an("json"),
        an("path"),
    ],
    ids=lambda option: f"{option.type}-{len(option.values)}-{option.flags_by_name}",
)
@given(value=st.text())
def test_any_text_gets_an_answer(option: Option, value: str) -> None:
    problem = option.problem(value)
    assert problem is None or problem
    assert isinstance(option.valid(value), str)


@given(number=st.integers(-(1 << 63), (1 << 64) - 1))
def test_whole_numbers_are_ints_and_within_the_range_or_not(number: int) -> None:
    assert an("int").problem(str(number)) is None
    assert (RANGED.problem(str(number)) is None) == (0 <= number <= 3)
    assert (an("bytes").problem(str(number)) is None) == (number >= 0)


@given(number=st.floats(allow_nan=False, allow_infinity=False))
def test_floats_are_read_in_any_form(number: float) -> None:
    assert an("float").problem(repr(number)) is None


@given(bits=st.integers(0, 63))
def test_flags_are_sums_of_what_is_named(bits: int) -> None:
    assert (BITS.problem(str(bits)) is None) == (bits & ~19 == 0)
