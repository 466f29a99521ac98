"""What a cell is measured with: the answers of others, and the rule of the matrix."""

from collections.abc import Iterator, Mapping

import msgspec

from harness.core.cell import Cell
from harness.core.noise import PRECISIONS
from harness.core.policy import Policy
from harness.core.precision import IN_MODEL
from harness.core.spread import Spread
from harness.core.tolerance import FLOORS, computing_precision, finest_precision
from harness.corpus.case import Case
from harness.corpus.generation import Generation
from harness.corpus.noisy import with_allowed
from harness.engine.further import Further, further_of_cell
from harness.engine.task import Kind
from harness.golden.golden import Golden
from harness.plan.plan import Plan
from harness.plan.runs_entry import RepeatSettings
from harness.plan.target import Target
from harness.plan.tolerance_entry import policy_of


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of the CPU provider and of references; None for what has not been asked.

    Attributes:
        golden: Of a cell that ran: the answer of the CPU provider of the harness's own runtime.
        full: The golden of the given model, if the cell runs a converted one.
        own_cpu: The answer of the CPU provider of the *target's* runtime.
        broken: What onnx's checker finds against a model that this one refuses; None if it was not asked.
        noise: The rounding noise of the model, or why it has none.
        wider: What else may explain an error -> its noise, or why it has none; those asked so far.
        played: The golden's text in the ways of the scenario ``generate``, by the same CPU provider.
        revealed: The golden with the values that its positions were chosen by.
        undefined: Output -> why ONNX leaves its values undefined for this input.
        zeroed: Operators of nodes that could compute zeros unnoticed.
        repeated: Why the golden cannot be repeated; empty if another process gives it, too.
        references: Kind of question -> answer of a reference.
        doubts: Kind of question -> why its answer does not count alone.
        answered: What has been asked: values of ``harness.core.missing.Need``.
    """

    golden: Golden | None = None
    full: Golden | None = None
    own_cpu: Golden | None = None
    broken: str | None = None
    noise: Spread | str | None = None
    wider: Mapping["Wider", Spread | str] = {}
    played: Golden | None = None
    revealed: Golden | None = None
    undefined: Mapping[str, str] | None = None
    zeroed: tuple[str, ...] | None = None
    repeated: str | None = None
    references: Mapping[Kind, Golden] | None = None
    doubts: Mapping[Kind, str] = {}
    answered: tuple[str, ...] = ()


class Wider(msgspec.Struct, frozen=True, kw_only=True):
    """What may explain an error beside the noise of a cell: see ``harness.core.output_metrics.Noise``.

    Attributes:
        noise_at: What the noise is of: see ``harness.corpus.noisy.with_allowed``.
        delivers: The precision, in the provider's terms, that it may compute in by its own default.
        document: The document that allows larger errors.
    """

    noise_at: str
    delivers: str = ""
    document: str = ""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell is measured and judged by.

    Attributes:
        policy: Tolerances, limits of noise, steps.
        delivers: Coarser precisions that the provider may compute in by its own default.
        wider: What may explain an error that the noise does not, the nearest first.
        exact_inputs: Whether the provider must not round the inputs.
        repeat: How the matrix says that the cell is repeated; None if it does not say it.
        further: How much was done with the session.
        generation: What a cell of the scenario ``generate`` plays; None in any other scenario.
    """

    policy: Policy = Policy()
    delivers: tuple[str, ...] = ()
    wider: tuple[Wider, ...] = ()
    exact_inputs: bool = True
    repeat: RepeatSettings | None = None
    further: Further = Further(repeat=None)
    generation: Generation | None = None


def rule_of(plan: Plan, cell: Cell, case: Case) -> Rule:
    """Return the rule of one cell: the matrix's entry, else the default of what computes.

    That of a frozen case is frozen with it: neither the matrix nor what a provider documents changes it.
    """
    further = further_of_cell(plan, cell, case)
    if case.frozen is not None:
        return Rule(policy=case.frozen.policy, further=further)
    target = plan.target(cell.target)
    mode = target.mode_at(cell)
    precision_axis = cell.axis("precision")
    computes = IN_MODEL.get(precision_axis, mode.computes if mode else "float32")
    precision = computing_precision(case.facts.float_types, computes)
    converted = precision_axis in IN_MODEL
    policy = policy_of(plan.tolerance(cell), precision, converted=converted)
    own = _own(case, IN_MODEL[precision_axis] if converted else "")
    finest = precision if converted else _finest(case, computes)
    policy = msgspec.structs.replace(
        policy,
        own_precision=own if own != precision else "",
        finest=finest if finest != precision else "",
    )
    delivers = tuple(one for one in target.delivers(cell) if policy.is_coarser(one))
    wider = (*_coarser(policy, delivers), *_documented(policy, target, case))
    if wider:
        policy = msgspec.structs.replace(policy, remedy=target.remedy(cell, own))
    return Rule(
        policy=policy,
        delivers=delivers,
        wider=wider,
        exact_inputs=FLOORS[computes] == "float32",
        repeat=plan.repeat(cell),
        further=further,
    )


def _own(case: Case, converted_to: str) -> str:
    """Return the precision of a model itself: the finest of its types, of a converted one the coarsest."""
    types = case.facts.float_types
    return computing_precision(types, converted_to) if converted_to else finest_precision(types, "float32")


def _finest(case: Case, computes: str) -> str:
    """Return the precision whose rounding makes the noise of a model that is not converted."""
    finest = finest_precision(case.facts.float_types, computes)
    # TF32 rounds like float16, and reaches further.
    return computes if computes == "tf32" and _own(case, "") == "float32" else finest


def _coarser(policy: Policy, delivers: tuple[str, ...]) -> Iterator[Wider]:
    """Yield the precisions that may explain an error beside the one that the policy asks for."""
    if policy.is_coarser(policy.noise_at):
        # That the model's own precision leaves nothing shows that the coarser one is not to blame.
        yield Wider(noise_at=policy.own_precision)
    for one in delivers:
        yield Wider(noise_at=one if one in PRECISIONS else FLOORS[one], delivers=one)


def _documented(policy: Policy, target: Target, case: Case) -> Iterator[Wider]:
    """Yield the errors that documents allow the provider for operators of the model."""
    if policy.converted or policy.noise_at not in PRECISIONS:
        return
    used = [one for one in target.accuracy if not case.facts.op_types.keys().isdisjoint(one.operators)]
    allowed = {name: one.error for one in used for name in one.operators if name in case.facts.op_types}
    if allowed:
        documents = ", ".join(dict.fromkeys(one.document for one in used))
        yield Wider(noise_at=with_allowed(policy.noise_at, allowed.items()), document=documents)
