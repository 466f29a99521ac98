"""The border between an agent and the harness: what it may say, and when; see ``harness.engine.messages``.

Whatever else a process sends ends it, with a verdict for the model at work, and harms nothing else.
"""

from typing import Any

import msgspec

from harness.core.errors import one_line
from harness.engine.messages import Done, Envelope, Imported, Needs, OfJob, OfStart, ProtocolError
from harness.engine.worker import Worker


def understood(worker: Worker, message: Any) -> OfStart | OfJob:
    """What a worker's process says, once it is known to be in order.

    Args:
        worker: It.
        message: What came from its process, as ``harness.agent.message.unpack`` gives it.

    Raises:
        ProtocolError: It is no message, or none that may come at this time.
    """
    try:
        said = msgspec.convert((message,), Envelope).said
    except (msgspec.ValidationError, RecursionError) as error:
        raise ProtocolError(f"it sent a message of no known form: {one_line(error)}") from error
    if isinstance(said, OfStart):
        _check_start(worker, said)
    else:
        _check_job(worker, said)
    return said


def _check_start(worker: Worker, said: OfStart) -> None:
    if worker.ready or (worker.imported and isinstance(said, Imported)):
        raise ProtocolError("it started twice")


def _check_job(worker: Worker, said: OfJob) -> None:
    if isinstance(said, Needs):
        if all(said.job != id(task) for task in worker.in_flight):
            raise ProtocolError("it asked for a model that it was not given")
    elif not worker.in_flight or said.job != id(worker.in_flight[0]):
        raise ProtocolError("it spoke of a model that it was not at")
    elif isinstance(said, Done):
        if worker.result is None:
            raise ProtocolError("it was done with a model without a result")
    elif worker.result is not None:
        raise ProtocolError("it went on with a model after the result")
