"""Goldens held against what others make of the same models: expected data, onnx.reference, the CPU EP in another way."""

from collections.abc import Callable, Iterator, Mapping

from harness.core.errors import one_line
from harness.core.tolerance import computing_precision, default_tolerance
from harness.corpus.case import Case
from harness.corpus.errors import ModelError
from harness.corpus.suites import Suite
from harness.engine.answer import forgiving, natures_of
from harness.engine.ask import Models, answers, planned_case
from harness.engine.compare_sets import compare_sets
from harness.engine.events import Answered
from harness.engine.question import ANSWER, EVALUATED, HOME, UNOPTIMIZED, Question
from harness.engine.references import References, Stores
from harness.engine.witnesses import EXPECTED, NAMES
from harness.golden.cross_check import CrossCheck
from harness.golden.golden import Golden
from harness.plan.plan import Plan

KINDS = (EVALUATED, UNOPTIMIZED)
"""What is asked of a model besides its golden."""
