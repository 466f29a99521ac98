"""Provider files that contradict themselves are refused, every problem at once."""

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.catalog.catalog import load_catalog, read_catalog
from harness.catalog.checks import provider_contradictions
from harness.catalog.option import Option
from harness.catalog.provider import Provider
from harness.core.text.errors import Problem, UsageError
from harness.data_files import data_root

FILES = sorted((data_root() / "matrices" / "providers").glob("*.toml"))
Read = Callable[[str], tuple[Problem, ...]]


def test_a_good_file_is_good(good: str, problems_of: Read) -> None:
    assert problems_of(good) == ()


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        ('values = ["low", "high"]\n', "", "option[mode].values", "a choice needs values"),
        ('"low", "high"', '"low", "low", "high"', "option[mode].values", "'low' is listed twice"),
        ('default = "low"', 'default = "lo"', "option[mode].default", "expected one of 2 values"),
        ('default = "False"', 'default = "0"', "option[fast].default", "expected a boolean"),
        ('default = "False"', 'default = "false"', "option[fast].default", "expected a boolean"),
        ('default = "False"\n', "", "option[fast].default", "no default is given"),
        ('default = "False"', 'default = ""', "option[fast].default", "an empty text is not a valid bool"),
        ('default = "1"', 'default = "4"', "option[level].default", "which is out of range"),
        ('default = "1"', 'default = "one"', "option[level].default", "expected a whole number"),
        ('["0", "3"]', '["0"]', "option[level].values", "['0'] is not a range"),
        ('["0", "3"]', '["3", "0"]', "option[level].values", "['3', '0'] is not a range"),
        ('["0", "3"]', '["0", "much"]', "option[level].values", "is not a range"),
        ("ranged = true\n", "", "option[level].values", "values of an int are its range"),
        ('values = ["0", "3"]\n', "", "option[level].values", "a range has two values"),
        ("flags = { FLASH = 1, MATH = 16 }\n", "", "option[kernels].flags", "no flags are named"),
        ("FLASH = 1", "FLASH = -1", "option[kernels].flags", "'FLASH' has a negative value"),
        ('default = "0"', 'default = "2"', "option[kernels].default", "which has bits without a meaning"),
        ('"low", "high"]', '"low", "high"]\nranged = true', "option[mode].ranged", "a choice has no range"),
        (
            '"low", "high"]',
            '"low", "high"]\nflags = { lo = 1 }',
            "option[mode].flags",
            "not one of its values",
        ),
        (
            'type = "bool"',
            'type = "bool"\nvalues = ["a"]',
            "option[fast].values",
            "not used by the type bool",
        ),
        ('type = "bool"', 'type = "bool"\nflags = { A = 1 }', "option[fast].flags", "not used by the type"),
        ('type = "bool"', 'type = "bool"\nflags_by_name = true', "option[fast].flags_by_name", "not used by"),
        (
            'default = "1"',
            'default = "1"\nno_default = "why"',
            "option[level].default",
            "a reason why there is none",
        ),
        ('default = "low"', 'default = "low"\nfaster = ["hi"]', "option[mode].faster", "expected one of 2"),
        ('default = "low"', 'default = "low"\nfaster = ["low"]', "option[mode].faster", "is the default"),
        ('key = "mode"', 'key = "fast"', "option[fast].key", "2 options have this key"),
        ('since = "1.22"', 'since = "lately"', "option[fast].since", "'lately' is not a release"),
        ('since = "1.22"', 'until = "v1"', "option[fast].until", "'v1' is not a release"),
        ('since = "1.22"', 'deprecated_in = "1.x"', "option[fast].deprecated_in", "'1.x' is not a release"),
        ('vendor = "V"', 'vendor = "V"\nlisted_since = "new"', "listed_since", "'new' is not a release"),
        ('vendor = "V"', 'vendor = "V"\ntried.plugin = ["new"]', "tried.plugin", "'new' is not a release"),
        ('["True", "False"]', '["1", "1"]', "true_false", "true and false are both '1'"),
        ('name = "fp16"', 'name = "half precision"', "precision[half precision].name", "is not a valid name"),
        ('mode = "high"', 'moed = "high"', "precision[fp16].options", "has no option 'moed'"),
        (
            'mode = "high"',
            'mode = "highest"',
            "precision[fp16].options",
            "mode: got 'highest', expected one of",
        ),
        ('"float16"', '"float16"\nrunnable = false', "precision[fp16].needs", "the reason is missing"),
        ('options = { fast = "True" }', 'options = { fats = "1" }', "probe[0].options", "no option 'fats'"),
        ('options = { fast = "True" }\n', "", "probe[0]", "this probe changes nothing"),
        ('">=1.22, <1.24"', '"1.22 to 1.24"', "version[0].onnxruntime", "'1.22 to 1.24' is not a release"),
    ],
)
def test_each_contradiction_is_found_at_its_key(
    old: str, new: str, where: str, what: str, good: str, problems_of: Read
) -> None:
    assert old in good
    found = problems_of(good.replace(old, new, 1))
    assert any(re.search(rf"x\.toml: {re.escape(where)}$", p.where) and what in p.what for p in found), found


def test_names_are_suggested(good: str, problems_of: Read) -> None:
    (problem,) = problems_of(good.replace('mode = "high"', 'moed = "high"'))
    assert problem.hint == "did you mean 'mode'? valid: fast, kernels, level, mode"


def test_two_modes_of_one_name_are_refused(good: str, problems_of: Read) -> None:
    mode = good[good.index("[[precision]]") : good.index("[[version]]")]
    (problem,) = problems_of(good + mode)
    assert problem.what == "2 entries have this name"


def test_one_key_may_have_an_entry_for_each_registration(good: str, problems_of: Read) -> None:
    two = good.replace('key = "level"', 'key = "level"\nregistered = "in_build"')
    entry = two[two.index('[[option]]\nkey = "level"') : two.index('[[option]]\nkey = "kernels"')]
    assert problems_of(two + entry.replace("in_build", "plugin")) == ()
    assert [p.what for p in problems_of(two + entry)] == ["2 options have this key"]
    assert [p.what for p in problems_of(two + entry.replace("in_build", "both"))] == [
        "2 options have this key"
    ]


def test_a_mode_cannot_mix_registrations(good: str, problems_of: Read) -> None:
    apart = good.replace('key = "fast"', 'key = "fast"\nregistered = "in_build"')
    assert problems_of(apart) == ()
    apart = apart.replace('key = "mode"', 'key = "mode"\nregistered = "plugin"')
    (problem,) = problems_of(apart)
    assert problem.what == "some of its options are for the plugin only, others for the build only"


def test_all_problems_of_all_files_are_reported(tmp_path: Path, good: str) -> None:
    damaged = good.replace('default = "1"', 'default = "9"').replace('default = "low"', 'default = "no"')
    (tmp_path / "a.toml").write_text(damaged, encoding="utf-8")
    (tmp_path / "b.toml").write_text("schema = 1\n", encoding="utf-8")
    (tmp_path / "c.toml").write_text(good.replace('["True", "False"]', '["T", "T"]'), encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_catalog(tmp_path)
    places = [problem.where.removeprefix(str(tmp_path)).lstrip("/\\") for problem in caught.value.problems]
    assert places[:3] == ["a.toml: option[mode].default", "a.toml: option[level].default", "b.toml"]
    assert "c.toml: true_false" in places
    assert any("both have the name" in problem.what for problem in caught.value.problems)


def test_a_file_that_is_not_text_is_a_problem(tmp_path: Path, good: str) -> None:
    (tmp_path / "a.toml").write_bytes(good.encode() + b"# \xff\xfe\n")
    (tmp_path / "b.toml").mkdir()
    (tmp_path / "c.toml").write_text("a = " + "[" * 100_000, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_catalog(tmp_path)
    assert len(caught.value.problems) == 3


@given(at=st.integers(0, 2000), cut=st.integers(0, 30), put=st.text(max_size=8))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_damaged_file_is_always_an_error_of_use(
    at: int, cut: int, put: str, good: str, problems_of: Read
) -> None:
    try:
        problems = problems_of(good[:at] + put + good[at + cut :])
    except UnicodeEncodeError:  # a lone surrogate cannot be written
        return
    assert all(problem.where and problem.what for problem in problems)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_option_states_its_type_default_and_source(file: Path) -> None:
    table: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    for option in table.get("option", []):
        assert {"key", "type", "meaning", "source"} <= option.keys()
        assert ("default" in option) != bool(option.get("no_default"))
        assert all(source.strip() for source in option["source"])


@pytest.mark.parametrize("missing", ["type", "default", "source"])
def test_no_option_of_the_catalogue_loads_without(missing: str) -> None:
    for provider in load_catalog().providers:
        for option in provider.options:
            table = msgspec.to_builtins(option)
            if missing == "default":
                damaged = msgspec.convert(table | {"default": None, "no_default": ""}, Option)
                alone = msgspec.structs.replace(provider, options=(damaged,), precision_modes=(), probes=())
                (problem,) = provider_contradictions(alone, "file")
                assert problem.where == f"file: option[{option.key}].default"
            else:
                del table[missing]
                with pytest.raises(msgspec.ValidationError, match=missing):
                    msgspec.convert(table, Option)


def test_sources_are_public_documents() -> None:
    for provider in load_catalog().providers:
        named = [*provider.source]
        for part in (provider.options, provider.precision_modes, provider.accuracy, provider.versions):
            named += [source for each in part for source in each.source]
        assert not any("execution_providers.md" in source or source.startswith("/") for source in named)


def test_lines_are_short() -> None:
    for file in FILES:
        long = [line for line in file.read_text(encoding="utf-8").splitlines() if len(line) > 110]
        assert long == [], file.name


def test_a_default_is_what_the_provider_would_accept() -> None:
    for provider in load_catalog().providers:
        for option in provider.options:
            if option.default:
                assert option.problem(option.default, provider.booleans) is None


def test_providers_without_options_say_so(provider: Provider) -> None:
    assert provider.option("fast") is not None
    assert provider.option("slow") is None
    assert provider.precision("fp16") is not None
    assert provider.precision("fp8") is None
