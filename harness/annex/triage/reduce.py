"""The smallest model that still fails in the same way.

As in C-Reduce, small transformations each propose smaller models, and a judge decides whether a model is
still interesting. All transformations take turns until none finds anything.
"""

import itertools
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.annex.triage.context import Context
from harness.annex.triage.net import Net, load
from harness.annex.triage.net_size import is_smaller, node_count
from harness.annex.triage.outline import inferred, net_problem
from harness.annex.triage.redeclare import redeclared
from harness.annex.triage.reduction_settings import ReductionProgress, ReductionSettings
from harness.annex.triage.search import NetCandidate, Search
from harness.annex.triage.subject import Subject
from harness.annex.triage.transform.arguments import fewer_arguments
from harness.annex.triage.transform.attributes import default_attributes
from harness.annex.triage.transform.bodies import fewer_body_nodes
from harness.annex.triage.transform.bypass import bypassed_nodes
from harness.annex.triage.transform.constants import constants
from harness.annex.triage.transform.control_flow import inlined_bodies
from harness.annex.triage.transform.fewer_nodes import fewer_nodes, frozen_branches
from harness.annex.triage.transform.function_nodes import fewer_function_nodes
from harness.annex.triage.transform.functions import inlined_functions
from harness.annex.triage.transform.names import anonymous_names
from harness.annex.triage.transform.outputs import fewer_outputs
from harness.annex.triage.transform.shrink import smaller_dimensions
from harness.annex.triage.transform.unused import unused_parts
from harness.annex.triage.transform.values import (
    integer_inputs,
    random_inputs,
    random_weights,
    single_inputs,
    single_weights,
)
from harness.core.values.value import STRING, Tensor, tensor
from harness.corpus.inputs.generated_inputs import generate
from harness.corpus.model.port import Port, model_text, value_type

if TYPE_CHECKING:
    import onnx

_T = TypeVar("_T")

Trials = Generator[tuple[Subject, ...], tuple[bool, ...], _T]

ReductionSteps = Trials[Subject]
"""Yields candidates to try together, receives whether each is interesting, returns the smallest."""

NetTransformation = Callable[[Net, Context], Search]

NET_TRANSFORMATIONS: tuple[NetTransformation, ...] = (
    unused_parts,
    fewer_outputs,
    constants,
    fewer_nodes,
    frozen_branches,
    inlined_functions,
    inlined_bodies,
    bypassed_nodes,
    fewer_body_nodes,
    fewer_function_nodes,
    fewer_outputs,
    fewer_arguments,
    default_attributes,
    smaller_dimensions,
    random_weights,
    single_weights,
    random_inputs,
    integer_inputs,
    single_inputs,
    anonymous_names,
)
"""The transformations in the order of their turns: big steps first."""


def reduction(
    subject: Subject,
    settings: ReductionSettings,
    progress: Callable[[ReductionProgress], None],
    transformations: Sequence[NetTransformation] = NET_TRANSFORMATIONS,
) -> ReductionSteps:
    """Search for the smallest subject that is interesting; the initial one is assumed to be.

    The candidates depend only on the subject, the settings and the answers, so the same answers lead to the
    same candidates. No candidate is yielded twice, and none lacks a node that must stay. onnx's checker
    refuses none, and none has contradictory types, unless this is so for the subject.

    Args:
        subject: The failing subject.
        settings: The settings of the reduction.
        progress: Called after each batch, and once at the end.
        transformations: The transformations in the order of their turns.

    Yields:
        Candidates, all made from the same smaller subject. The generator must be sent whether each is
        interesting. The first interesting one becomes the subject of the next candidates.

    Returns:
        Return the smallest; the subject itself if nothing could be removed.

    Raises:
        ValueError: The subject is not a model.
    """
    run = _Run(subject, settings, progress)
    yield from run.rounds(transformations)
    return run.best


class Reduced(msgspec.Struct, frozen=True, kw_only=True):
    """The remaining model after a number of trials.

    Attributes:
        inputs: Its input values, by the name of the graph input; without inputs that are not dense tensors.
    """

    model: Any
    inputs: dict[str, NDArray[Any]]
    trials: int


def reduce(
    model: "onnx.ModelProto",
    is_interesting: "Callable[[onnx.ModelProto, dict[str, NDArray[Any]]], bool]",
    inputs: dict[str, NDArray[Any]] | None = None,
    **settings: Any,
) -> Reduced:
    """Reduce a model to the smallest one that is interesting.

    Args:
        model: A model that is interesting, with its weights inside.
        is_interesting: Returns whether a model with its inputs shows the wanted behaviour. It must not raise.
        inputs: Input values of the model; invented from the declared types if left out.
        settings: Fields of ``ReductionSettings``, such as ``keep_weights=True``.

    Raises:
        ValueError: The initial model is not interesting, or inputs cannot be invented.
    """
    fed = {name: tensor(np.asarray(array)) for name, array in inputs.items()} if inputs else _made_up(model)
    subject = Subject(model=model.SerializeToString(), inputs=tuple(fed.items()))
    if not is_interesting(subject.proto(), _arrays(subject)):
        raise ValueError("the model is not interesting to begin with: nothing can be reduced")
    trials = 0
    steps = reduction(subject, ReductionSettings(**settings), lambda _: None)
    answers: tuple[bool, ...] | None = None
    while True:
        try:
            batch = next(steps) if answers is None else steps.send(answers)
        except StopIteration as end:
            smallest: Subject = end.value
            return Reduced(model=smallest.proto(), inputs=_arrays(smallest), trials=trials)
        trials += len(batch)
        answers = tuple(is_interesting(one.proto(), _arrays(one)) for one in batch)


class _Run:
    """One reduction: the best result so far, and what was tried."""

    def __init__(
        self, subject: Subject, settings: ReductionSettings, progress: Callable[[ReductionProgress], None]
    ) -> None:
        self.best = subject
        self.settings = settings
        self.report = progress
        self.net = load(subject)
        self.context = Context(self.net, settings)
        self.is_valid = not net_problem(self.net)
        self.is_consistent = inferred(self.net) is not None
        self.trials = 0
        self.cut_short = False
        self.seen = {subject.digest}

    def rounds(self, transformations: Sequence[NetTransformation]) -> Trials[None]:
        """Let all transformations take turns until none of them changes anything."""
        complete = False
        for _ in range(self.settings.most_rounds):
            before = self.best
            # From its bytes, as a second reduction would begin: what fails now will fail then.
            self.net, self.cut_short = load(self.best), False
            for transformation in transformations:
                yield from self.turn(transformation)
            if self.best is before:
                complete = not self.cut_short
                break
        self.tell("", complete=complete)

    def turn(self, transformation: NetTransformation) -> Trials[None]:
        """Run the search of one transformation."""
        search = transformation(self.net, self.context)
        limit = self.trials + self.settings.most_trials
        alternatives = next(search, None)
        while alternatives is not None:
            taken = yield from self.first(iter(alternatives), transformation.__name__, limit)
            if self.trials >= limit:
                self.cut_short = True
                search.close()
                return
            try:
                alternatives = search.send(taken)
            except StopIteration:
                return

    def first(self, alternatives: Iterator[NetCandidate], name: str, limit: int) -> Trials[int | None]:
        """Let alternatives be tried in batches until one is interesting; return its index, or None."""
        worthy = self.worth_trying(alternatives)
        while batch := tuple(itertools.islice(worthy, min(self.settings.batch, limit - self.trials))):
            answers = yield tuple(subject for _, _, subject in batch)
            self.trials += len(batch)
            if True in answers:
                index, self.net, self.best = batch[answers.index(True)]
                # The others may come again, based on this one.
                self.seen -= {one.digest for (_, _, one), fine in zip(batch, answers, strict=True) if fine}
                self.tell(name)
                return index
            self.tell(name)
        return None

    def worth_trying(self, alternatives: Iterator[NetCandidate]) -> Iterator[tuple[int, Net, Subject]]:
        """Yield candidates that are smaller, complete and valid, and were not tried before."""
        for index, made in enumerate(alternatives):
            if made is None or not made.nodes or not is_smaller(made, self.net):
                continue
            net = self.consistent(made) if self.context.is_complete(made) else None
            if net is None or (self.is_valid and net_problem(net)):
                continue
            subject = net.subject()
            if subject.digest not in self.seen:
                self.seen.add(subject.digest)
                yield index, net, subject

    def consistent(self, net: Net) -> NetCandidate:
        """Return the net, with other shapes of outputs if necessary; None if its types are contradictory."""
        if not self.is_consistent or inferred(net) is not None:
            return net
        return redeclared(net)

    def tell(self, name: str, *, complete: bool = False) -> None:
        self.report(
            ReductionProgress(
                transformation=name,
                trials=self.trials,
                nodes=node_count(self.net),
                nbytes=self.best.nbytes,
                complete=complete,
            )
        )


def _made_up(model: "onnx.ModelProto") -> dict[str, Any]:
    weights = {weight.name for weight in model.graph.initializer}
    return {
        info.name: generate("", Port(name=model_text(info.name), type=value_type(info.type, {})), 0)
        for info in model.graph.input
        if info.name not in weights
    }


def _arrays(subject: Subject) -> dict[str, NDArray[Any]]:
    return {
        name: value.array.astype(str).astype(object) if value.dtype == STRING else value.array
        for name, value in subject.inputs
        if isinstance(value, Tensor)
    }
