"""Checks of models that travel in pieces."""

from harness.annex.agent_check.bench import Bench, floats
from harness.annex.agent_check.bitwise import same
from harness.annex.agent_check.check_group import CheckGroup
from harness.annex.agent_check.dialogue import Dialogue
from harness.annex.agent_check.early_ends import FaultError
from harness.annex.agent_check.models import MODELS, model, with_external_weights
from harness.engine.processes.messages import NotFed, PieceNeeded

UPLOAD = CheckGroup("models in pieces")

_X, _Y = floats(-1.0, -4.0), floats(1.0, 2.0)


def _files(name: str) -> dict[str, bytes]:
    """Return a separate model for a check, so that none is kept from an earlier one."""
    content = model(MODELS["negated"])
    content.doc_string = name
    return {f"{name}.onnx": content.SerializeToString()}


def _ask(bench: Bench, dialogue: Dialogue, manifest: object, number: int = 1) -> None:
    bench.send_job(dialogue, number, bench.path("negated"), {"x": _X}, model=manifest)


@UPLOAD.check("a model arrives in pieces")
def _arrives(bench: Bench) -> None:
    dialogue = bench.made_ready()
    _ask(bench, dialogue, bench.manifest(_files("arrives")))
    same(bench.answer(dialogue, 1).output, _Y)


@UPLOAD.check("pieces are asked for in order, each once")
def _in_order(bench: Bench) -> None:
    dialogue = bench.made_ready()
    bench.needs.clear()
    _ask(bench, dialogue, bench.manifest(_files("order")))
    same(bench.answer(dialogue, 1).output, _Y)
    offsets = [offset for _, offset in bench.needs]
    if offsets != sorted(set(offsets)):
        raise FaultError("upload", f"it asked for the offsets {offsets[:8]}")


@UPLOAD.check("weights in a file of a folder arrive, too")
def _with_weights(bench: Bench) -> None:
    content = model(MODELS["weighted"])
    data = with_external_weights(content, "weights/w.bin")
    files = {"external.onnx": content.SerializeToString(), "weights/w.bin": data}
    dialogue = bench.made_ready()
    manifest = bench.manifest(files)
    bench.send_job(dialogue, 1, bench.path("weighted"), {"x": floats(1, 1, 1, 1)}, model=manifest)
    same(bench.answer(dialogue, 1).output, floats(2, 3, 4, 5))


@UPLOAD.check("two jobs may wait for their models")
def _two_at_once(bench: Bench) -> None:
    dialogue = bench.made_ready()
    for number in (1, 2):
        _ask(bench, dialogue, bench.manifest(_files(f"both{number}")), number)
    for number in (1, 2):
        same(bench.answer(dialogue, number).output, _Y)


@UPLOAD.check("a piece that cannot be read makes the job unfeedable")
def _unreadable(bench: Bench) -> None:
    dialogue = bench.made_ready()
    _ask(bench, dialogue, bench.manifest(_files("unreadable")))
    message = dialogue.receive("need")
    if not isinstance(message, PieceNeeded):
        raise FaultError("upload", "it did not ask for the model")
    dialogue.send(("model", 1, message.name, message.offset, None))
    _must_be_unfed(bench, dialogue, "a piece that cannot be read")


@UPLOAD.check("content with another SHA-256 makes the job unfeedable")
def _other_content(bench: Bench) -> None:
    dialogue = bench.made_ready()
    files = _files("changed")
    manifest = bench.manifest(files)
    for name, data in files.items():
        bench.files[name] = data[:-1] + bytes([data[-1] ^ 1])
    _ask(bench, dialogue, manifest)
    _must_be_unfed(bench, dialogue, "content with another SHA-256")


@UPLOAD.check("a name outside of the model's folder is not written")
def _hostile_names(bench: Bench) -> None:
    aim = bench.folder("outside")
    up = "../" * 40
    for number, name in enumerate((f"{up}{aim.relative_to('/')}/1", f"{aim}/2", f"a/{up}{aim}/3"), 1):
        dialogue = bench.made_ready()
        _ask(bench, dialogue, bench.manifest({**_files(f"hostile{number}"), name: b"hostile"}))
        try:
            _must_be_unfed(bench, dialogue, "a name that leads out of the folder", may_die=True)
        finally:
            if any(aim.iterdir()):
                raise FaultError("written", "it wrote a file outside of the folder of the model")


def _must_be_unfed(bench: Bench, dialogue: Dialogue, what: str, *, may_die: bool = False) -> None:
    try:
        answer = bench.answer(dialogue, 1)
    except FaultError as error:
        if may_die and error.word == "died":
            return
        raise
    if not isinstance(answer.result, NotFed):
        raise FaultError("upload", f"{what}: the job is not unfeedable")
