"""The lab: trials of small models on one target, in the live processes of one engine.

Each trial is judged like a cell of a run, by limits of noise, so that its record has all facts for any
policy. Results are kept by content in a file: an interrupted triage repeats no trial.
"""

import contextlib
import hashlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from harness.annex.triage.cut import needed, pruned
from harness.annex.triage.net import Net, load
from harness.annex.triage.subject import Subject
from harness.core.comparison.noise_limits import DEFAULT_LIMITS
from harness.core.files.reading import MOST_FILE, read_regular
from harness.core.records.cell import Cell
from harness.core.records.facts import CPU_PROVIDER
from harness.core.records.record import Record, decode_record, encode_record
from harness.core.values.value import NamedValues, Value
from harness.core.verdicts.missing import Need
from harness.corpus.model.port import ValueType, value_type
from harness.corpus.model.protos import encode
from harness.corpus.suites.suite import Suite
from harness.engine.answers.references import Stores
from harness.engine.engine import Engine, StudySettings
from harness.engine.tasks.events import Answered, Event, Finished, Noted, NotRun, TargetReady, Warned
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.plan import Plan
from harness.plan.selector import Selector
from harness.plan.target import Target
from harness.plan.tolerance_entry import ToleranceEntry

_SUITE = "trial"
_CPU = "cpu-of-triage"

NEEDS = frozenset({Need.NOISE, Need.REVEALED, Need.UNDEFINED, Need.OWN_CPU})
"""Questions about a trial: those that distinguish a healthy result from a wrong one.

References show whether golden or EP is right. The run has asked for them for the cell. Trials do not ask for
them, but `ep-harness replay` of a bundle asks for them for its model."""

CellAxes = tuple[tuple[str, str], ...]


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One model that is tried on a target of the lab.

    Attributes:
        axes: Axes of the cell that differ from their defaults, sorted.
        number: Distinguishes repetitions of one trial.
        after: Models that run before it, in one fresh process.
        fresh: Whether it runs in a fresh process even if no models run before it.
        shares_process: Whether it is one of the models that run before another trial, in the process of that
            trial.
    """

    subject: Subject
    target: str
    axes: CellAxes = ()
    number: int = 0
    after: tuple[Subject, ...] = ()
    fresh: bool = False
    shares_process: bool = False

    @property
    def key(self) -> str:
        """Return the SHA-256 (hexadecimal) over everything on which the result depends."""
        earlier = (f"after {one.digest}" for one in self.after)
        parts = (self.subject.digest, self.target, *map(repr, self.axes), str(self.number), *earlier)
        parts = (*parts, "fresh") if self.fresh else parts
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def before(self, index: int) -> "Trial":
        """Return the trial of a model that runs before this one, in the same process."""
        return Trial(
            subject=self.after[index],
            target=self.place,
            axes=self.axes,
            number=index + (self.number << 8),
            after=(*self.after, self.subject),  # no other trial has the same key
            shares_process=True,
        )

    @property
    def place(self) -> str:
        """Name of the target whose process runs it."""
        if self.shares_process or not (self.after or self.fresh):
            return self.target
        return after_target_name(self.target, len(self.after))


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a trial; outputs are empty if they come from an earlier session."""

    record: Record
    printed: str = ""
    outputs: NamedValues = ()


def after_target_name(name: str, earlier: int) -> str:
    """Return the name of the target whose processes end after ``earlier`` models and one more."""
    return f"{name} after {earlier}"


def after_targets(target: Target, most: int) -> Iterator[Target]:
    """Yield a target for each number of models, none included, before another one in a fresh process."""
    for earlier in range(most + 1):
        renew = msgspec.structs.replace(target.renew_after, sessions=earlier + 1)
        yield msgspec.structs.replace(target, name=after_target_name(target.name, earlier), renew_after=renew)


class Lab:
    """Runs trials on targets with unique names.

    The folder keeps the results; files of models are below it while they are needed. ``needs`` are the
    questions about each trial.
    """

    def __init__(
        self,
        targets: Sequence[Target],
        folder: Path,
        tell: Callable[[str], None],
        needs: frozenset[Need] = NEEDS,
    ) -> None:
        self.trials = 0
        """Trials that ran in this session."""
        self.fingerprints: dict[str, dict[str, object]] = {}
        self._tell = tell
        folder = folder.absolute()  # agents run in their own folder
        self._folder = folder
        self._models = folder / "models"
        self._models.mkdir(parents=True, exist_ok=True)
        suite = Suite(name=_SUITE, root=self._models, kind="folder", names=())
        cpu = Target(name=_CPU, provider=(CPU_PROVIDER,))
        entry = ToleranceEntry(selector=Selector(), noise=DEFAULT_LIMITS)
        matrix = Matrix(
            path="triage", schema=1, models=ModelSelection(), targets=(*targets, cpu), tolerance=(entry,)
        )
        self._engine = Engine(
            Plan(matrix=matrix, cells=()),
            {_SUITE: suite},
            gives_outputs=True,
            study=StudySettings(needs=needs, stores=Stores.of_here(folder / "goldens"), is_small=True),
        )
        self._events = self._engine.events()
        self._known = _Known(folder / "trials.jsonl")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._engine.close()
        self._known.close()
        shutil.rmtree(self._models, ignore_errors=True)
        shutil.rmtree(self._folder / "goldens", ignore_errors=True)

    def run(self, trials: Sequence[Trial], *, fresh: bool = False) -> tuple[Seen, ...]:
        """Run trials concurrently, and return their results in their order.

        With ``fresh``, trials with known results run as well; only then are outputs certain to be there.
        """
        known = {} if fresh else {trial.key: self._known.get(trial.key) for trial in trials}
        found = {key: seen for key, seen in known.items() if seen is not None}
        waiting = {trial.key: trial for trial in trials if trial.key not in found}
        for key, seen in self._results(trial for trial in waiting.values() if not trial.after):
            found[key] = self._counted(key, seen)
        for trial in waiting.values():
            # one at a time: a process that dies must not change the models before the next trials
            if trial.after:
                found[trial.key] = self._counted(trial.key, self._run_after(trial))
        return tuple(found[trial.key] for trial in trials)

    def cpu_seconds(self, subject: Subject) -> float | None:
        """Return the time that the CPU EP takes to create a session of a model and run it.

        Return None if it fails.
        """
        for _ in range(2):  # the first time, its process may have to start
            started = time.monotonic()
            if self.golden(subject) is None:
                return None
        return time.monotonic() - started

    def values(self, subject: Subject, names: Sequence[str]) -> dict[str, Value]:
        """Return inner tensors of a model as the CPU EP computes them, as far as it can.

        If it fails in some node, the tensors that do not depend on later nodes are computed without those
        nodes.
        """
        net = load(subject)
        makers = net.makers()
        order = sorted((name for name in names if name in makers), key=makers.__getitem__)
        computed = self._computed(net, order)
        known = dict(subject.inputs) | (computed or {})
        least, most = 0, len(order) - 1
        while computed is None and least < most:
            count = (least + most + 1) // 2
            part = self._computed(net, order[:count])
            if part is None:
                most = count - 1
            else:
                least, known = count, dict(subject.inputs) | part
        return {name: known[name] for name in names if name in known}

    def _computed(self, net: Net, names: Sequence[str]) -> dict[str, Value] | None:
        import onnx

        if not names:
            return {}
        kept = needed(net, names)
        outputs = {name: net.infos.get(name) or onnx.ValueInfoProto(name=name) for name in names}
        nodes = tuple(net.nodes[index] for index in sorted(kept))
        golden = self.golden(pruned(net.replace(nodes=nodes, outputs=outputs)).subject())
        return None if golden is None else dict(golden)

    def golden(self, subject: Subject) -> NamedValues | None:
        """Return the CPU EP's results; None if it has none."""
        trial = Trial(subject=subject, target=_CPU)
        self._write(trial)
        self._engine.ask(_CPU, [(_SUITE, f"{trial.key}/model.onnx")])
        while True:
            event = self._next()
            if isinstance(event, Answered):
                shutil.rmtree(self._models / trial.key, ignore_errors=True)
                golden = event.golden
                return golden.outputs[0] if golden is not None and golden.status == "ok" else None

    def _run_after(self, trial: Trial) -> Seen:
        """Run a trial in a fresh process after other models, and keep no process that has run some of them.

        A process of its target ends after this number of sessions. If one of the models killed it, another
        process was started for the rest, and has sessions left.
        """
        before = map(trial.before, range(len(trial.after)))
        seen = dict(self._results((*before, trial)))[trial.key]
        last = seen
        for number in range(len(trial.after)):
            process = last.record.process
            if process is None or process.session > len(trial.after):
                break
            filler = msgspec.structs.replace(trial, number=-1 - number)
            ((_, last),) = self._results([filler])
        return seen

    def _results(self, trials: Iterable[Trial]) -> Iterator[tuple[str, Seen]]:
        """Run trials in their order, and yield the key and the result of each when it ends."""
        cells = [self._cell(trial) for trial in trials]
        self._engine.submit(cells)
        for _ in cells:
            event = self._next()
            assert isinstance(event, Finished)  # noqa: S101 - nothing else was asked
            key = event.record.model.partition("/")[0]
            shutil.rmtree(self._models / key, ignore_errors=True)
            yield key, Seen(record=event.record, printed=event.printed, outputs=event.outputs)

    def _counted(self, key: str, seen: Seen) -> Seen:
        self.trials += 1
        self._known.put(key, seen)
        return seen

    def _next(self) -> Event:
        for event in self._events:
            if isinstance(event, TargetReady):
                self.fingerprints[event.target] = event.fingerprint
            elif isinstance(event, Finished | Answered):
                return event
            elif isinstance(event, NotRun):
                break
            elif isinstance(event, Warned | Noted):
                self._tell(event.message)
        raise RuntimeError("the engine ended while a trial was open, or has no place left for it")

    def _cell(self, trial: Trial) -> Cell:
        """Write a model, and return its cell."""
        self._write(trial)
        return Cell(suite=_SUITE, model=f"{trial.key}/model.onnx", target=trial.place, axes=trial.axes)

    def _write(self, trial: Trial) -> None:
        """Write a model with its inputs where the engine expects it."""
        home = self._models / trial.key
        data = home / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        subject = trial.subject
        subject.write(home)
        types = {port.name: value_type(port.type, {}) for port in subject.proto().graph.input}
        for number, (name, value) in enumerate(subject.inputs):
            (data / f"input_{number}.pb").write_bytes(encode(value, types.get(name, _ANY), name))


_ANY = ValueType(kind="tensor")


class _Line(msgspec.Struct, frozen=True):
    """One line of ``trials.jsonl``: the result of one trial."""

    key: str
    record: msgspec.Raw
    printed: str


class _Known:
    """Results by key, kept in a file that survives a crash."""

    def __init__(self, path: Path) -> None:
        self._seen: dict[str, Seen] = {}
        torn = False
        with contextlib.suppress(FileNotFoundError):
            for line in BytesIO(read_regular(path, MOST_FILE)):
                torn = not line.endswith(b"\n")
                # A line torn by a crash loses its trial.
                with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
                    read = msgspec.json.decode(line, type=_Line)
                    self._seen[read.key] = Seen(
                        record=decode_record(bytes(read.record)), printed=read.printed
                    )
        self._file = path.open("ab")
        self._file.write(b"\n" if torn else b"")

    def get(self, key: str) -> Seen | None:
        return self._seen.get(key)

    def put(self, key: str, seen: Seen) -> None:
        self._seen[key] = msgspec.structs.replace(seen, outputs=())
        record = msgspec.Raw(encode_record(seen.record))
        self._file.write(msgspec.json.encode(_Line(key, record, seen.printed)) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()
