"""Options are checked with the catalogue before a device is used."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.catalog import load_catalog
from harness.catalog.check_options import OptionRemark, check_options
from harness.catalog.option import Option
from harness.catalog.provider import Provider


def found(
    provider: Provider, options: Mapping[str, str], *, plugin: bool = True, release: str = ""
) -> list[OptionRemark]:
    return list(check_options(provider, options, plugin=plugin, release=release))


def changed(provider: Provider, key: str, **fields: object) -> Provider:
    """Return the provider with one option changed."""
    options = tuple(
        msgspec.structs.replace(option, **fields) if option.key == key else option
        for option in provider.options
    )
    return msgspec.structs.replace(provider, options=options)


def shipped(name: str) -> Provider:
    provider = load_catalog().find(name)
    assert provider is not None
    return provider


def test_good_options_have_no_findings(provider: Provider) -> None:
    assert found(provider, {"fast": "true", "mode": "low", "level": "2", "kernels": "17"}) == []
    assert found(provider, {}) == []


def test_an_unknown_key_is_refused_with_the_nearest_one(provider: Provider) -> None:
    (finding,) = found(provider, {"fsat": "1"})
    assert finding == OptionRemark(
        key="fsat",
        wrong=True,
        what="XExecutionProvider has no option 'fsat'",
        hint="did you mean 'fast'? valid: fast, mode, level, kernels",
    )


def test_a_wrong_value_is_refused_with_the_valid_ones(provider: Provider) -> None:
    (finding,) = found(provider, {"mode": "hihg"})
    assert finding.wrong
    assert finding.what == "XExecutionProvider, mode: got 'hihg', expected one of 2 values"
    assert finding.hint == "did you mean 'high'? valid: low, high"


def test_all_problems_are_found_in_the_order_written(provider: Provider) -> None:
    findings = found(provider, {"z": "1", "level": "9", "fast": "True", "mode": ""})
    assert [finding.key for finding in findings] == ["z", "level", "mode"]


def test_hostile_text_stays_on_one_short_line(provider: Provider) -> None:
    (finding,) = found(provider, {"mode": "x\n\x1b[31m" * 1000})
    assert len(finding.what) < 200
    assert "\n" not in finding.what
    assert "\x1b" not in finding.what
    (finding,) = found(provider, {"x\n" * 1000: "1"})
    assert len(finding.what) < 200
    assert "\n" not in finding.what


def test_an_option_of_the_other_registration_is_refused(provider: Provider) -> None:
    in_build = changed(provider, "fast", registered="in_build")
    (finding,) = found(in_build, {"fast": "True"}, plugin=True)
    assert finding.what == "XExecutionProvider takes 'fast' only in the build, and here it is as a plugin"
    assert finding.wrong
    assert found(in_build, {"fast": "True"}, plugin=False) == []
    plugin = changed(provider, "fast", registered="plugin")
    (finding,) = found(plugin, {"fast": "True"}, plugin=False)
    assert finding.what == "XExecutionProvider takes 'fast' only as a plugin, and here it is in the build"


def test_each_registration_has_its_own_entry_of_a_key(provider: Provider) -> None:
    entries = (
        msgspec.structs.replace(provider.options[1], registered="in_build"),
        msgspec.structs.replace(provider.options[1], registered="plugin", values=("a", "b"), default="a"),
    )
    both = msgspec.structs.replace(provider, options=entries)
    assert found(both, {"mode": "low"}, plugin=False) == []
    assert found(both, {"mode": "a"}, plugin=True) == []
    assert len(found(both, {"mode": "low"}, plugin=True)) == 1


def test_an_option_of_other_languages_is_refused(provider: Provider) -> None:
    (finding,) = found(changed(provider, "fast", from_python=False), {"fast": "True"})
    assert finding.wrong
    assert finding.what == "XExecutionProvider takes fast in other languages only, not from Python"


@pytest.mark.parametrize(
    ("fields", "release", "refused", "noted"),
    [
        ({"since": "1.22"}, "1.21.1", "fast needs onnxruntime 1.22 or newer, and this is 1.21.1", ""),
        ({"since": "1.22"}, "1.22.0", "", ""),
        ({"since": "1.22.1"}, "1.22", "", ""),
        ({"since": "1.22"}, "", "", ""),
        ({"until": "1.22"}, "1.23", "fast was removed after 1.22, and this is 1.23", ""),
        ({"until": "1.22"}, "1.22.2.post1", "", ""),
        ({"until": "1.22"}, "", "", "fast was removed after 1.22"),
        ({"deprecated_in": "1.22"}, "1.22.1", "", "fast is deprecated since 1.22"),
        ({"deprecated_in": "1.22"}, "1.9", "", ""),
        ({"deprecated_in": "1.22"}, "", "", "fast is deprecated since 1.22"),
    ],
)
def test_releases_count(
    fields: dict[str, str], release: str, refused: str, noted: str, provider: Provider
) -> None:
    aged = changed(provider, "fast", **{"since": "", **fields})
    findings = found(aged, {"fast": "True"}, plugin=False, release=release)
    assert [finding.what for finding in findings if finding.wrong] == [refused] * bool(refused)
    assert [finding.what for finding in findings if not finding.wrong] == [noted] * bool(noted)


def test_a_plugin_counts_releases_of_its_own(provider: Provider) -> None:
    assert (
        found(changed(provider, "fast", since="2.0"), {"fast": "True"}, plugin=True, release="1.31.1") == []
    )


def test_what_is_passed_on_unchecked_is_noted(provider: Provider) -> None:
    passing = msgspec.structs.replace(provider, unknown_options="passed_on")
    (finding,) = found(passing, {"fsat": "1"})
    assert not finding.wrong
    assert finding.hint.startswith("did you mean 'fast'?")


def test_without_known_options_all_or_none_are_accepted(provider: Provider) -> None:
    unconfirmed = msgspec.structs.replace(provider, options=(), unknown_options="unconfirmed")
    assert found(unconfirmed, {"anything": "1"}) == []
    ignored = msgspec.structs.replace(provider, options=(), unknown_options="ignored")
    (finding,) = found(ignored, {"anything": "1"})
    assert finding.wrong
    assert finding.what == "XExecutionProvider has no options, got 'anything'"


@pytest.mark.parametrize(
    ("name", "options", "plugin", "words"),
    [
        ("CPU", {"arena": "1"}, False, "CPUExecutionProvider has no options"),
        ("CUDA", {"use_tf23": "0"}, False, "did you mean 'use_tf32'?"),
        ("CUDA", {"sdpa_kernel": "MATH"}, False, "expected their sum, 16, in place of names"),
        ("CUDA", {"cudnn_conv_algo_search": "exhaustive"}, False, "valid: EXHAUSTIVE, HEURISTIC, DEFAULT"),
        ("CUDA", {"min_num_runs_before_cuda_graph_capture": "2"}, False, "only as a plugin"),
        ("TensorRT", {"trt_fp16_enable": "1"}, False, "valid: True, False, true, false"),
        ("TensorRT", {"trt_builder_optimization_level": "6"}, False, "valid: a whole number from 0 to 5"),
        ("TensorRT", {"trt_load_user_initializer": "True"}, False, "not from Python"),
        ("DML", {"device_filter": "cpu"}, False, "valid: gpu, npu, any"),
        ("NvTensorRtRtx", {"device_id": "0"}, True, "only in the build"),
    ],
)
def test_wrong_options_of_shipped_providers(
    name: str, options: dict[str, str], *, plugin: bool, words: str
) -> None:
    (finding,) = found(shipped(name), options, plugin=plugin)
    assert finding.wrong
    assert words in f"{finding.what} {finding.hint}"


@pytest.mark.parametrize("name", load_catalog().names)
def test_defaults_of_the_shipped_catalogue_are_fine(name: str) -> None:
    provider = shipped(name)
    for plugin in (False, True):
        known: list[Option] = [option for option in provider.options if option.taken(plugin=plugin)]
        given = {option.key: option.default for option in known if option.default and option.from_python}
        assert [finding for finding in found(provider, given, plugin=plugin) if finding.wrong] == []


@pytest.mark.parametrize("name", load_catalog().names)
def test_runnable_precision_modes_pass_the_check(name: str) -> None:
    provider = shipped(name)
    for mode in provider.precision_modes:
        if mode.runnable:
            checked = [found(provider, mode.options, plugin=plugin) for plugin in (False, True)]
            assert any(not any(finding.wrong for finding in findings) for findings in checked), mode.name


@given(options=st.dictionaries(st.text(), st.text(), max_size=4), plugin=st.booleans())
def test_anything_gets_findings_for_its_own_keys(options: dict[str, str], plugin: bool) -> None:  # noqa: FBT001
    for provider in load_catalog().providers:
        for finding in check_options(provider, options, plugin=plugin):
            assert finding.key in options
            assert finding.what
            assert "\n" not in finding.what
