"""Suites of models that code makes: the zoo, decoders of language models, generated models by seed."""

from pathlib import Path

from harness.annex.made.decoders.roster import FOLDERS, decoder_names, write_decoder
from harness.annex.made.fuzz_suite import fuzz_maker, fuzz_name, fuzz_suite_name, parse_fuzz
from harness.annex.made.zoo.roster import write_zoo_model, zoo_models
from harness.corpus.suites.suite import Suite, SuiteSource, suite_of_code
from harness.corpus.suites.suites import operator_tests


def _packages(*names: str) -> tuple[Path, ...]:
    return tuple(Path(__file__).parent / name for name in names)


def _zoo(name: str) -> Suite:
    return suite_of_code(name, tuple(sorted(zoo_models())), write_zoo_model, _packages("zoo"))


def _decoders(name: str) -> Suite:
    names = tuple(sorted((*decoder_names(), *FOLDERS)))
    return suite_of_code(name, names, write_decoder, _packages("decoders", "zoo"))


def _fuzz(name: str) -> Suite:
    """Return the first models of a seed; the cache keeps a model for all suites of that seed."""
    seed, count = parse_fuzz(name)
    names = tuple(fuzz_name(seed, number) for number in range(count))
    packages = _packages("forms", "grown", "variants", "zoo")
    return suite_of_code(fuzz_suite_name(seed), names, fuzz_maker(seed, operator_tests), packages)


ZOO_SUITE = SuiteSource(form="zoo", line="CNNs, transformers, quantized ...; seeded weights", open=_zoo)
DECODER_SUITE = SuiteSource(
    form="generate", line="decoders of language models with a cache, as shipped", open=_decoders
)
FUZZ_SUITES = SuiteSource(form="fuzz:SEED:COUNT", line="generated operators and graphs, by seed", open=_fuzz)
