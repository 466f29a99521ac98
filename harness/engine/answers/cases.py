"""The models of tasks: as they come, and in the forms that cells and questions need."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from harness.core.lru_cache import LruCache, Room
from harness.core.records.precision import AS_IS
from harness.core.records.scenario import GENERATE, PLAIN, SCENARIOS
from harness.core.text.errors import UsageError, one_line
from harness.corpus.case import Case, at_draw
from harness.corpus.decoders.generation_case import GenerationSupport, generation_of
from harness.corpus.derived.composed_model import is_chained
from harness.corpus.derived.converted_models import precision_case, rounded_case
from harness.corpus.derived.inner_outputs import hidden_tensors, read_by_partials, revealed_case
from harness.corpus.derived.noisy import noisy_case
from harness.corpus.derived.scenario_case import Inapplicable, scenario_case
from harness.corpus.derived.shapes import GIVEN
from harness.corpus.derived.upcast import composed_case, float64_case
from harness.corpus.derived.zeroing import zeroed_case
from harness.corpus.inputs.fitting.starts import DRAWS
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import (
    ChangedFileError,
    DamagedError,
    ModelError,
    RefusedModelError,
    SettingsError,
)
from harness.corpus.packages.variant_case import component_case, variant_case
from harness.corpus.suites.model_check import broken_rule
from harness.corpus.suites.suite import Suite
from harness.engine.answers.files_in_use import FilesInUse
from harness.engine.answers.other_inputs_case import with_other_inputs
from harness.engine.answers.references import References
from harness.engine.tasks.task import Question, QuestionKind
from harness.golden.trials import try_inputs
from harness.plan.plan import Plan

NOT_MADE = Inapplicable("it has not been converted yet")
"""A model in a precision to which it has not been converted yet."""

_MOST_WITH_DATA = 1 << 17
"""Largest number of remembered models with test data: more than a run usually has."""

_FIRST = "first"
"""The form of a model with the first attempt at its inputs."""


class NoInput(msgspec.Struct, frozen=True):
    """A model that loads but runs with no generated input: the first attempt, and the CPU EP's error."""

    case: Case
    reason: str


LoadedCase = Case | ModelError | Inapplicable | NoInput
"""A model with its data, or why there is none."""

NoCase = ModelError | Inapplicable | NoInput
"""Why there is no model."""


class _Form(NamedTuple):
    """One form of a model: as the suite has it, or derived from a simpler form."""

    suite: str
    model: str
    precision: str = AS_IS
    scenario: str = PLAIN
    form: str = QuestionKind.ANSWER
    noise_at: str = ""
    others: bool = False
    draw: int = 0


def _settled(case: Case, *, high: bool) -> LoadedCase:
    from harness.corpus.derived.settled import settled_case  # it needs onnx, and few runs ask for it

    return settled_case(case, high=high)


OTHER_FORMS: dict[str, Callable[[Case, _Form], LoadedCase]] = {
    QuestionKind.FLOAT64: lambda case, _: float64_case(case),
    QuestionKind.FLOAT64_EVALUATED: lambda case, _: composed_case(case),
    QuestionKind.NOISE: lambda case, wanted: noisy_case(case, wanted.noise_at),
    QuestionKind.REVEALED: lambda case, _: revealed_case(case, hidden_tensors(case)),
    QuestionKind.ROUNDED: lambda case, _: rounded_case(case),
    QuestionKind.SETTLED_LOW: lambda case, _: _settled(case, high=False),
    QuestionKind.SETTLED_HIGH: lambda case, _: _settled(case, high=True),
    QuestionKind.UNDEFINED: lambda case, _: revealed_case(case, read_by_partials(case)),
    QuestionKind.ZEROED: lambda case, _: zeroed_case(case),
}
"""Kinds of questions about another form of the model -> the function that derives it."""


class Cases:
    """Loads models, and keeps the most recently used ones.

    Targets need the same model at about the same time.

    ``warn`` is called with problems of the caller's settings.
    """

    def __init__(
        self,
        plan: Plan,
        suites: Mapping[str, Suite],
        references: References,
        warn: Callable[[str], None],
        room: Room = Room(),  # noqa: B008 - it is frozen
    ) -> None:
        self._plan = plan
        self._suites = suites
        self._references = references
        self._warn = warn
        self.files = FilesInUse(self._from_files, lambda suite: suites[suite].is_cached)
        self._kept: LruCache[_Form, LoadedCase] = LruCache(room.count, room.nbytes)
        self._generations: LruCache[str, GenerationSupport] = LruCache(room.count, room.nbytes)
        self._refused: dict[tuple[str, str, str], dict[str, str]] = {}
        self._open: dict[tuple[str, str], Case] = {}
        """Suite and model -> the inputs that the CPU provider tries next."""
        self._with_data: LruCache[tuple[str, str], tuple[str, str]] = LruCache(_MOST_WITH_DATA)
        """Suite and model of those that have test data: no inputs are tried for them."""

    def of(self, question: Question) -> LoadedCase:
        """Return the model of a question; for a cell, that of its question ``ANSWER``."""
        return self._find(_form(question))

    def given(self, about: Question) -> Question:
        """Return the question about the model against which a converted one or a variant is held.

        It is the model as its suite has it, or the variant whose golden its component has.
        """
        sibling = self._suites[about.suite].siblings(about.model)
        golden = about.for_golden(AS_IS)
        return msgspec.structs.replace(golden, model=sibling) if sibling else golden

    def is_gone(self, question: Question) -> bool:
        """Return whether the model of a question has vanished from the cache; if so, it is made again."""
        case = self.of(question)
        if not isinstance(case, Case) or case.model_path.is_file():
            return False
        self._kept.drop(_form(question))
        return True

    def has_inputs(self, question: Question) -> bool:
        """Return whether it is known which inputs a model runs with; always true for a model with test data.

        Otherwise the question for the golden of the plain model uses the inputs to try next. Call this only
        while that question is not being asked, because the inputs may change.
        """
        key = (question.suite, question.model)
        if self._with_data.get(key):  # asked three times for each cell
            return True
        if self.files.changed(*key) is not None:
            self._open.pop(key, None)  # all attempts are finished
        plain = Question(suite=question.suite, model=question.model)
        case = self.of(plain)
        if isinstance(case, Case) and case.recipe is None:
            self._with_data.put(key, key, 0)
            return True
        tried = self._open.get(key)
        if tried is not None and self._references.find(plain, tried) is not None:
            del self._open[key]
            self.of(plain)
        return key not in self._open

    def tries(self, question: Question) -> bool:
        """Return whether inputs of a model are being tried."""
        return (question.suite, question.model) in self._open

    def forget(self, question: Question) -> None:
        """Drop all forms of a question's model, which an answer has changed."""
        plain = _Form(question.suite, question.model, question.precision, question.scenario)
        for form in (QuestionKind.ANSWER, *OTHER_FORMS):
            for others in (False, True):
                for draw in range(DRAWS):
                    self._kept.drop(plain._replace(form=form, others=others, draw=draw))

    def is_made(self, question: Question) -> bool:
        """Return whether a model has been converted to the precision of a question, or can never be."""
        if question.precision == AS_IS:
            return True
        made = _Form(question.suite, question.model, question.precision, draw=question.draw)
        if self._find(made) is not NOT_MADE:
            return True
        self._kept.drop(made)
        return False

    def refused(self, suite: str, model: str, scenario: str) -> dict[str, str]:
        """Return data sets of a scenario that the CPU provider refuses: name -> its error."""
        return self._refused.get((suite, model, scenario), {})

    def refuses_shape(self, question: Question) -> bool:
        """Return whether the CPU provider has refused a shape that was only tried."""
        case = self.of(question)
        return isinstance(case, Case) and self._refused_shape(case, question.scenario) is not None

    def generation(self, case: Case) -> GenerationSupport:
        """Return what a case of the scenario ``generate`` plays, as it was made from it.

        Raises:
            ModelError: The model, or a file beside it, has changed meanwhile.
        """
        found = self._generations.get(case.digest)
        if found is None:
            made = generation_of(case, self._plan.matrix.scenarios.generate.text)
            if isinstance(made, str):
                raise ModelError(case.model_path, made)
            self._generations.put(case.digest, made, 0)
            return made
        return found

    def look(self, question: Question, *, fails: bool) -> ChangedFileError | None:
        """Check the files of a question's model again; see ``FilesInUse.look``."""
        return self.files.look(question.suite, question.model, fails=fails)

    def _from_files(self, suite: str, model: str) -> Case:
        """Read a model; make again what the cache has damaged or lost, and warn."""
        opened, dimensions = self._suites[suite], self._plan.matrix.models.dimensions
        settings = self._plan.model_settings(suite, model)
        try:
            return load_case(opened, model, dimensions, settings=settings)
        except DamagedError:
            self._warn(opened.mend(model))
        return load_case(opened, model, dimensions, settings=settings)

    def _find(self, wanted: _Form) -> LoadedCase:
        if (changed := self.files.changed(wanted.suite, wanted.model)) is not None:
            return changed
        case = self._kept.get(wanted)
        if case is None:
            try:
                case = self._load(wanted)
            except ModelError as error:
                case = error
                if isinstance(error, SettingsError):  # the model itself may be good
                    self._warn(error.shown)
            # While inputs are being tried, no form with these inputs is final.
            if (wanted.suite, wanted.model) not in self._open or wanted.form == _FIRST:
                self._kept.put(wanted, case, case.nbytes if isinstance(case, Case) else 0)
        return case

    def _load(self, wanted: _Form) -> LoadedCase:
        """Derive one form from a simpler one."""
        suite, model, precision, scenario, form, *_ = wanted
        if form == _FIRST:
            return self.files.load(suite, model)
        if form != QuestionKind.ANSWER:
            case = self._find(wanted._replace(form=QuestionKind.ANSWER, noise_at=""))
            return self._in_form(case, wanted) if isinstance(case, Case) else case
        if wanted.others:
            case = self._find(wanted._replace(others=False))
            return with_other_inputs(case) if isinstance(case, Case) else case
        if scenario != PLAIN:
            case = self._find(wanted._replace(scenario=PLAIN))
            if scenario == GENERATE and isinstance(case, NoInput) and is_chained(case.case):
                case = case.case  # inputs of one of its sessions are no matter
            return self._play(suite, model, scenario, case) if isinstance(case, Case) else case
        if precision != AS_IS:
            case = self._find(wanted._replace(precision=AS_IS))
            return self._made(case, precision) if isinstance(case, Case) else case
        return self._with_draw(wanted)

    def _with_draw(self, wanted: _Form) -> LoadedCase:
        """Return a model with inputs that it runs with, or with another draw of them."""
        if wanted.draw:
            case = self._find(wanted._replace(draw=0))
            return at_draw(case, wanted.draw) if isinstance(case, Case) else case
        case = self._find(wanted._replace(form=_FIRST))
        if not isinstance(case, Case):
            return case
        sibling = self._suites[wanted.suite].siblings(wanted.model)
        return self._held_against(case, wanted, sibling) if sibling else self._with_inputs(*wanted[:2], case)

    def _held_against(self, own: Case, wanted: _Form, sibling: str) -> LoadedCase:
        """Return a variant, or a component, of a package with the inputs of the one that has the golden."""
        suite = self._suites[wanted.suite]
        reference = self._find(wanted._replace(model=sibling))
        if not isinstance(reference, Case):
            return reference
        if suite.uses[wanted.model].is_component:
            return component_case(reference, suite, wanted.model, sibling)
        return variant_case(own, reference, sibling)

    def _in_form(self, case: Case, wanted: _Form) -> LoadedCase:
        """Return a case in the form that a question needs; a full cache fails the question, not the run."""
        try:
            return OTHER_FORMS[wanted.form](case, wanted)
        except UsageError as error:
            self._warn(str(error))
            return Inapplicable(one_line(error))

    def _with_inputs(self, suite: str, model: str, first: Case) -> Case | NoInput:
        """Return a model with inputs that it runs with, or with the inputs to try next."""
        if first.recipe is None:
            return first
        if (tried := self._open.get((suite, model))) is not None:
            return tried
        plain = Question(suite=suite, model=model)
        trial = try_inputs(first, lambda case: self._references.find(plain, case))
        if trial.is_open:
            self._open[suite, model] = trial.case
        return NoInput(trial.case, trial.failure) if trial.failure else trial.case

    def _made(self, case: Case, precision: str) -> LoadedCase:
        if case.frozen is not None:
            return Inapplicable("a case of a profile is run at its own precision")
        golden = self._references.golden(case)
        if golden is not None and golden.status == "refused":
            # A conversion cannot repair it.
            broken = broken_rule(case.model_path, case.digest)
            kind = ModelError if broken else RefusedModelError
            return kind(case.model_path, broken or golden.message)
        if why := self._references.unmade(case, precision):
            return Inapplicable(why)
        return precision_case(case, precision) or NOT_MADE

    def _play(self, suite: str, model: str, scenario: str, plain: Case) -> Case | Inapplicable:
        if plain.frozen is not None and SCENARIOS[scenario].other_data:
            if scenario == GENERATE:
                return Inapplicable("a case of a profile has no text to generate")
            return plain  # its data sets are those of the scenario
        refused = self._refused.setdefault((suite, model, scenario), {})
        while True:
            text, grid = self._plan.matrix.scenarios.generate.text, self._plan.grid(suite, model)
            case = scenario_case(plain, scenario, refused, text, grid)
            shape = self._refused_shape(case, scenario)
            if shape is None:
                return case
            refused |= shape

    def _refused_shape(self, case: Case | Inapplicable, scenario: str) -> dict[str, str] | None:
        """Return name and error of a shape that the CPU provider is known to refuse.

        A model may declare a dimension as symbolic although its weights fix it; only a run shows that.
        """
        if not SCENARIOS[scenario].tries_shapes or isinstance(case, Inapplicable):
            return None
        golden = self._references.golden(case)
        at = None if golden is None else golden.data_set
        if golden is None or at is None or at >= len(case.data_sets) or case.data_sets[at].name == GIVEN:
            return None
        return {case.data_sets[at].name: golden.message}


def _form(question: Question) -> _Form:
    """Return the form of a model that a question is about."""
    if question.kind is QuestionKind.MADE:
        return _Form(question.suite, question.model, draw=question.draw)
    played = SCENARIOS[question.scenario]
    return _Form(
        question.suite,
        question.model,
        question.precision,
        question.scenario if played.other_data or played.own_case else PLAIN,
        question.kind if question.kind in OTHER_FORMS else QuestionKind.ANSWER,
        question.noise_at,
        question.others,
        question.draw,
    )


def why_no_model(found: NoCase) -> str:
    """Return why there is no model, in one line."""
    return one_line(found if isinstance(found, ModelError) else found.reason)
