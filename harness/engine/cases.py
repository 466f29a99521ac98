"""The models that tasks are about: as they come, and in the forms that cells and questions need."""

from collections.abc import Callable, Mapping

import msgspec

from harness.core.errors import UsageError, one_line
from harness.core.precision import AS_IS
from harness.core.scenario import PLAIN, SCENARIOS
from harness.corpus.case import Case, load_case
from harness.corpus.errors import ModelError, SettingsError
from harness.corpus.noisy import noisy_case
from harness.corpus.precision import precision_case, rounded_case
from harness.corpus.revealed import hidden, read_by_partials, revealed_case
from harness.corpus.scenario import Inapplicable, scenario_case
from harness.corpus.shapes import GIVEN
from harness.corpus.suites import Suite
from harness.corpus.upcast import float64_case
from harness.corpus.zeroed import zeroed_case
from harness.engine.question import Kind, Question
from harness.engine.recent import Recent
from harness.engine.references import References
from harness.engine.trials import try_inputs
from harness.plan.plan import Plan

CASES_KEPT = 4096
"""Models kept in memory at most; targets come to the same model at about the same time."""

OTHER_FORMS = frozenset(
    {
        Kind.FLOAT64,
        Kind.FLOAT64_EVALUATED,
        Kind.NOISE,
        Kind.REVEALED,
        Kind.ROUNDED,
        Kind.UNDEFINED,
        Kind.ZEROED,
    }
)
"""Kinds of questions about another form of the model."""

NOT_MADE = Inapplicable("nobody has converted it yet")
"""What there is of a model in a precision until somebody makes it."""

FIRST = "first"
"""The form of a model with the first attempt at its inputs."""


class NoInput(msgspec.Struct, frozen=True):
    """A model that loads, but runs with no generated input.

    Attributes:
        case: With the first attempt.
        reason: What the CPU provider says about that.
    """

    case: Case
    reason: str


Found = Case | ModelError | Inapplicable | NoInput
"""A model with its data, or what is wrong with it, or why there is none in this form."""

Untold = ModelError | Inapplicable | NoInput
"""Why there is no model."""

_Key = tuple[str, str, str, str, str, str]
"""Suite, model, precision, scenario, form, precision of the noise."""


class Cases:
    """Models by what tasks say of them.

    Args:
        plan: What it says of models counts.
        suites: Suite name -> suite.
        references: What is known of the CPU provider's answers.
        warn: Called with a line about a slip in somebody's settings.
    """

    def __init__(
        self, plan: Plan, suites: Mapping[str, Suite], references: References, warn: Callable[[str], None]
    ) -> None:
        self._plan = plan
        self._suites = suites
        self._references = references
        self._warn = warn
        self._kept: Recent[_Key, Found] = Recent(CASES_KEPT)
        self._refused: dict[tuple[str, str, str], dict[str, str]] = {}
        self._open: dict[tuple[str, str], Case] = {}
        """Suite and model -> the inputs that the CPU provider has to try next. They stay until it has."""

    def of(self, question: Question) -> Found:
        """The model that a question is about; that of a cell is the one of its question ``ANSWER``."""
        if question.kind is Kind.MADE:
            return self._find(question.suite, question.model, AS_IS, PLAIN, Kind.ANSWER)
        played = SCENARIOS[question.scenario]
        scenario = question.scenario if played.other_data or played.other_files else PLAIN
        form = question.kind if question.kind in OTHER_FORMS else Kind.ANSWER
        return self._find(
            question.suite, question.model, question.precision, scenario, form, question.noise_at
        )

    def has_inputs(self, question: Question) -> bool:
        """Whether it is known which inputs a model runs with; always true of a model with test data.

        Where it is not, the question for the golden of the plain model is about the inputs to be tried next.
        Call this only while nobody answers that question, since it may change what the question is about.
        """
        key = (question.suite, question.model)
        plain = Question(suite=question.suite, model=question.model)
        self.of(plain)
        tried = self._open.get(key)
        if tried is not None and self._references.find(plain, tried) is not None:
            del self._open[key]
            self.of(plain)
        return key not in self._open

    def tries(self, question: Question) -> bool:
        """Whether inputs of a model are being tried."""
        return (question.suite, question.model) in self._open

    def forget(self, question: Question) -> None:
        """What a question has been answered about takes another form from now on."""
        for form in (Kind.ANSWER, *OTHER_FORMS):
            self._drop(question.suite, question.model, question.precision, question.scenario, form)

    def is_made(self, question: Question) -> bool:
        """Whether a model is there in the precision of a question, or will never be."""
        if question.precision == AS_IS:
            return True
        if self._find(question.suite, question.model, question.precision, PLAIN, Kind.ANSWER) is not NOT_MADE:
            return True
        self._drop(question.suite, question.model, question.precision, PLAIN, Kind.ANSWER)
        return False

    def refused(self, suite: str, model: str, scenario: str) -> dict[str, str]:
        """Data sets of a scenario that the CPU provider refuses, by name, with what it says."""
        return self._refused.get((suite, model, scenario), {})

    def refuses_shape(self, question: Question) -> bool:
        """Whether the CPU provider has refused a shape that was only tried."""
        case = self.of(question)
        return isinstance(case, Case) and self._refused_shape(case, question.scenario) is not None

    def _find(
        self, suite: str, model: str, precision: str, scenario: str, form: str, noise_at: str = ""
    ) -> Found:
        key = (suite, model, precision, scenario, form, noise_at)
        case = self._kept.get(key)
        if case is None:
            try:
                case = self._load(*key)
            except ModelError as error:
                case = error
                if isinstance(error, SettingsError):  # somebody's slip, which costs a model that may be good
                    self._warn(str(error))
            # As long as inputs are tried, nothing that is made of them counts.
            if (suite, model) not in self._open or form == FIRST:
                self._kept.put(key, case, case.nbytes if isinstance(case, Case) else 0)
        return case

    def _drop(self, suite: str, model: str, precision: str, scenario: str, form: str) -> None:
        self._kept.drop((suite, model, precision, scenario, form, ""))

    def _load(self, suite: str, model: str, precision: str, scenario: str, form: str, noise_at: str) -> Found:
        """One form made of a simpler one."""
        if form == FIRST:
            dimensions = self._plan.matrix.models.dimensions
            settings = self._plan.model_settings(suite, model)
            return load_case(self._suites[suite], model, dimensions, settings=settings)
        if form != Kind.ANSWER:
            case = self._find(suite, model, precision, scenario, Kind.ANSWER)
            return self._in_form(case, form, noise_at) if isinstance(case, Case) else case
        if scenario != PLAIN:
            case = self._find(suite, model, precision, PLAIN, Kind.ANSWER)
            return self._play(suite, model, scenario, case) if isinstance(case, Case) else case
        if precision != AS_IS:
            case = self._find(suite, model, AS_IS, PLAIN, Kind.ANSWER)
            return self._made(case, precision) if isinstance(case, Case) else case
        case = self._find(suite, model, AS_IS, PLAIN, FIRST)
        return self._with_inputs(suite, model, case) if isinstance(case, Case) else case

    def _in_form(self, case: Case, form: str, noise_at: str) -> Found:
        """A case as some question needs it; a full cache costs the question, not the run."""
        try:
            return _in_form(case, form, noise_at)
        except UsageError as error:
            self._warn(str(error))
            return Inapplicable(one_line(error))

    def _with_inputs(self, suite: str, model: str, first: Case) -> Case | NoInput:
        """A model with inputs that it runs with, or with those to be tried next."""
        if first.recipe is None:
            return first
        if (tried := self._open.get((suite, model))) is not None:
            return tried
        plain = Question(suite=suite, model=model)
        trial = try_inputs(first, lambda case: self._references.find(plain, case))
        if trial.is_open:
            self._open[suite, model] = trial.case
        return NoInput(trial.case, trial.failure) if trial.failure else trial.case

    def _made(self, case: Case, precision: str) -> Found:
        golden = self._references.golden(case)
        if golden is not None and golden.status == "refused":
            return ModelError(case.model_path, golden.message)  # no converter can make it a better one
        if why := self._references.unmade(case, precision):
            return Inapplicable(why)
        return precision_case(case, precision) or NOT_MADE

    def _play(self, suite: str, model: str, scenario: str, plain: Case) -> Case | Inapplicable:
        refused = self._refused.setdefault((suite, model, scenario), {})
        while True:
            case = scenario_case(plain, scenario, refused)
            shape = self._refused_shape(case, scenario)
            if shape is None:
                return case
            refused |= shape

    def _refused_shape(self, case: Case | Inapplicable, scenario: str) -> dict[str, str] | None:
        """Name and message of a shape that the CPU provider refuses, if it has been asked and does.

        A model may call a dimension symbolic that its weights fix; nothing but a run tells.
        """
        if not SCENARIOS[scenario].tries_shapes or isinstance(case, Inapplicable):
            return None
        golden = self._references.golden(case)
        at = None if golden is None else golden.data_set
        if golden is None or at is None or at >= len(case.data_sets) or case.data_sets[at].name == GIVEN:
            return None
        return {case.data_sets[at].name: golden.message}


def _in_form(case: Case, form: str, noise_at: str) -> Found:
    """A case as some question needs it."""
    if form == Kind.ROUNDED:
        return rounded_case(case)
    if form == Kind.REVEALED:
        return revealed_case(case, hidden(case))
    if form == Kind.ZEROED:
        return zeroed_case(case)
    if form == Kind.UNDEFINED:
        return revealed_case(case, read_by_partials(case))
    if form == Kind.NOISE:
        return noisy_case(case, noise_at)
    return float64_case(case)


def why_not(found: Untold) -> str:
    """Why there is no model, in one line."""
    return one_line(found if isinstance(found, ModelError) else found.reason)
