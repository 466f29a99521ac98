"""The input of a cell's measurement: the answers of others, and the rule of the matrix."""

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.catalog.catalog import find_provider
from harness.catalog.provider import Accuracy
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import FLOORS, computing_precision, finest_precision
from harness.core.noise.noise import PRECISIONS
from harness.core.noise.spread import Spread
from harness.core.records.cell import Cell
from harness.core.records.facts import CPU_PROVIDER, Placement
from harness.core.records.precision import CONVERSIONS, IN_MODEL
from harness.corpus.case import Case
from harness.corpus.decoders.generation_case import GenerationSupport
from harness.corpus.derived.noisy import with_allowed
from harness.engine.answers.further import Further, further_of_cell
from harness.engine.tasks.task import QuestionKind
from harness.golden.golden_answer import Golden
from harness.plan.plan import Plan
from harness.plan.runs_entry import RepeatSettings
from harness.plan.target import Target
from harness.plan.tolerance_entry import policy_of

_WRITTEN_BY_CPU = "ort_format"
"""The scenario whose file the CPU EP writes."""

_PRODUCT = "MatMul"
_FUSED = frozenset({"DequantizeLinear", _PRODUCT})
"""The operator that onnxruntime fuses into its product with weights of a few bits."""

_FUSES = {"session.qdq_matmulnbits_accuracy_level": "4", "session.disable_quant_qdq": "0"}
"""Session configuration that makes it do so, and round the other factor to int8: the defaults."""

_FUSES_NOTHING = frozenset({"disabled", "basic"})
"""Levels of graph optimization at which it does not fuse."""


class NotDefined(msgspec.Struct, frozen=True, kw_only=True):
    """What ONNX leaves undefined of an output.

    Attributes:
        why: The reason.
        defined: Which elements are defined all the same, of the output's shape; None if none is, or too few.
    """

    why: str
    defined: NDArray[np.bool_] | None = None


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of the CPU provider and of references; None for what was not asked.

    Attributes:
        golden: For a cell that ran: the answer of the CPU provider of the harness's own runtime.
        full: The golden of the given model, if the cell runs a converted one.
        own_cpu: The answer of the CPU provider of the *target's* runtime.
        broken: What onnx's checker finds in a model that this provider refuses; None if it was not asked.
        noise: The rounding noise of the model, or why it has none.
        wider: Other explanation of an error -> its noise, or why it has none; those asked so far.
        played: The golden's text in the ways of the scenario ``generate``, from the same CPU provider.
        revealed: The golden with the values by which its positions were chosen.
        undefined: Output, with the number of its data set -> what ONNX leaves undefined for this input.
        zeroed: Operators of nodes that could compute zeros unnoticed.
        repeated: Why the golden cannot be repeated; empty if another process computes the same.
        references: Kind of question -> answer of a reference.
        doubts: Kind of question -> why its answer does not count alone.
        answered: The questions that were asked: values of ``harness.core.verdicts.missing.Need``.
    """

    golden: Golden | None = None
    full: Golden | None = None
    own_cpu: Golden | None = None
    broken: str | None = None
    noise: Spread | str | None = None
    wider: Mapping["Wider", Spread | str] = {}
    played: Golden | None = None
    revealed: Golden | None = None
    undefined: Mapping[str, NotDefined] | None = None
    zeroed: tuple[str, ...] | None = None
    repeated: str | None = None
    references: Mapping[QuestionKind, Golden] | None = None
    doubts: Mapping[QuestionKind, str] = {}
    answered: tuple[str, ...] = ()


class Wider(msgspec.Struct, frozen=True, kw_only=True):
    """An explanation of an error beside the noise of a cell: see ``Noise`` in ``output_metrics``.

    Attributes:
        noise_at: The source of the noise: see ``harness.corpus.derived.noisy.with_allowed``.
        delivers: The precision, in the provider's terms, that it may compute in by its own default.
        document: The document that allows larger errors.
        on_cpu: An operator that has to run on the CPU EP for this explanation; empty if it may run anywhere.
    """

    noise_at: str
    delivers: str = ""
    document: str = ""
    on_cpu: str = ""


class CellRule(msgspec.Struct, frozen=True, kw_only=True):
    """The rule that measures and judges a cell.

    Attributes:
        policy: Tolerances, limits of noise, steps.
        delivers: Coarser precisions that the provider may compute in by its own default.
        wider: Explanations of an error beyond the noise, the nearest first.
        most_apart: How far implementations of a converted model may be apart; see ``Conversion``.
        exact_inputs: Whether the provider must not round the inputs.
        rounds_freely: Operators, as ``Accuracy.of`` has them for ``rounding``.
        repeat: How the matrix repeats the cell; None if it does not set it.
        further: What else is done with the session.
        generation: What a cell of the scenario ``generate`` plays; None in any other scenario.
    """

    policy: Policy = Policy()
    delivers: tuple[str, ...] = ()
    wider: tuple[Wider, ...] = ()
    most_apart: float = math.inf
    exact_inputs: bool = True
    rounds_freely: frozenset[str] = frozenset()
    repeat: RepeatSettings | None = None
    further: Further = Further(repeat=None)
    generation: GenerationSupport | None = None


def rule_of(
    plan: Plan,
    cell: Cell,
    case: Case,
    chosen: str = "",
    fingerprints: Collection[Mapping[str, Any]] = (),
) -> CellRule:
    """Return the rule of one cell: the matrix's entry, else the default of the computing precision.

    The rule of a frozen case is frozen with it: neither the matrix nor a provider's documents change it.
    ``chosen`` is the variant that ran, for a component of a package; ``fingerprints`` are those of the places
    of its target.
    """
    further = further_of_cell(plan, cell, case)
    if case.frozen is not None:
        return CellRule(policy=case.frozen.policy, further=further)
    target = _as_selected(plan.target(cell.target), case, chosen)
    mode = target.mode_at(cell)
    precision_axis = cell.axis("precision")
    converted_to = IN_MODEL.get(precision_axis, "") or _of_variant(case, chosen)
    computes = converted_to or (mode.computes if mode else "float32")
    precision = computing_precision(case.facts.float_types, computes)
    converted = bool(converted_to)
    policy = policy_of(plan.tolerance(cell), precision, converted=converted)
    own = _own(case, converted_to)
    finest = precision if converted else _finest(case, computes)
    policy = msgspec.structs.replace(
        policy,
        own_precision=own if own != precision else "",
        finest=finest if finest != precision else "",
    )
    delivers = tuple(one for one in target.delivers(cell, fingerprints) if policy.is_coarser(one))
    wider = (*_coarser(policy, delivers), *_documented(policy, target, cell, case))
    if wider:
        policy = msgspec.structs.replace(policy, remedy=target.remedy(cell, own))
    return CellRule(
        policy=policy,
        delivers=delivers,
        wider=wider,
        most_apart=CONVERSIONS[precision_axis].most_apart if precision_axis in CONVERSIONS else math.inf,
        exact_inputs=FLOORS[computes] == "float32",
        rounds_freely=frozenset(
            name for one in target.accuracy if one.of == "rounding" for name in one.operators
        ),
        repeat=plan.repeat(cell),
        further=further,
    )


def with_placement(rule: CellRule, placement: Placement) -> CellRule:
    """Return the rule of a cell without the explanations that its placement rules out.

    An EP that computes no node delivers no precision of its own.
    """
    computes = placement.ep_nodes > 0 or placement.is_unknown
    wider = tuple(
        one
        for one in rule.wider
        if (computes or not one.delivers) and (not one.on_cpu or one.on_cpu in placement.cpu_ops)
    )
    return rule if len(wider) == len(rule.wider) else msgspec.structs.replace(rule, wider=wider)


def _as_selected(target: Target, case: Case, chosen: str) -> Target:
    """Return a target with the options of a selected variant: the runtime takes those alone."""
    if case.package is None or not chosen:
        return target
    options = {one["name"]: one["options"] for one in case.package.variants}
    return msgspec.structs.replace(target, options=dict(options.get(chosen, {})))


def _of_variant(case: Case, chosen: str) -> str:
    """Return the precision of a variant that is held against another one; empty for any other model."""
    if case.package is not None and chosen:
        return case.package.computes.get(chosen, "float32")
    return "" if case.sibling is None else case.sibling.computes


def _own(case: Case, converted_to: str) -> str:
    """Return a model's own precision: the finest of its types, or the coarsest for a converted model."""
    types = case.facts.float_types
    return computing_precision(types, converted_to) if converted_to else finest_precision(types, "float32")


def _finest(case: Case, computes: str) -> str:
    """Return the precision whose rounding makes the noise of an unconverted model."""
    finest = finest_precision(case.facts.float_types, computes)
    # TF32 rounds like float16, and has a wider range.
    return computes if computes == "tf32" and _own(case, "") == "float32" else finest


def _coarser(policy: Policy, delivers: tuple[str, ...]) -> Iterator[Wider]:
    """Yield the precisions that may explain an error beside the one that the policy asks for."""
    if policy.is_coarser(policy.noise_at):
        # If the model's own precision already destroys the output, the coarser one is not to blame.
        yield Wider(noise_at=policy.own_precision)
    for one in delivers:
        yield Wider(noise_at=one if one in PRECISIONS else FLOORS[one], delivers=one)


def _documented(policy: Policy, target: Target, cell: Cell, case: Case) -> Iterator[Wider]:
    """Yield the errors that documents allow for operators of the model: those of provider and CPU EP."""
    if policy.converted or policy.noise_at not in PRECISIONS:
        return
    used = [one for one in target.accuracy if not case.facts.op_types.keys().isdisjoint(one.operators)]
    used = [one for one in used if one.of == "result"]
    allowed = {name: one.error for one in used for name in one.operators if name in case.facts.op_types}
    if allowed:
        documents = ", ".join(dict.fromkeys(one.document for one in used))
        yield Wider(noise_at=with_allowed(policy.noise_at, allowed.items()), document=documents)
    for one in _made_by_onnxruntime(target, cell, case):
        made = allowed | dict.fromkeys(one.operators, one.error)
        documents = ", ".join(dict.fromkeys(each.document for each in (*used, one)))
        anywhere = (
            not case.facts.op_types.keys().isdisjoint(one.operators)
            or target.provider[0] == CPU_PROVIDER
            or cell.axis("scenario") == _WRITTEN_BY_CPU
        )
        yield Wider(
            noise_at=with_allowed(policy.noise_at, made.items()),
            document=documents,
            on_cpu="" if anywhere else _PRODUCT,
        )


def _made_by_onnxruntime(target: Target, cell: Cell, case: Case) -> Iterator[Accuracy]:
    """Yield the errors of operators that onnxruntime adds to a model for the CPU EP.

    Every session has this EP, for nodes that no other EP takes. A file in ORT format has such operators for
    all EPs.
    """
    runtime = find_provider(CPU_PROVIDER)
    mode = target.mode_at(cell)
    session = mode.session if mode is not None else {}
    fuses = cell.axis("graph_optimization") not in _FUSES_NOTHING and all(
        session.get(key, value) == value for key, value in _FUSES.items()
    )
    operators = case.facts.op_types.keys()
    for one in runtime.accuracy if runtime is not None else ():
        given = not operators.isdisjoint(one.operators)
        if one.of == "first_input" and (given or (fuses and operators >= _FUSED)):
            yield one
