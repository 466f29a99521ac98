"""Jobs on their way to be served."""

from __future__ import annotations

import collections
import contextlib
import functools
import os
from typing import TYPE_CHECKING, Any

from harness.agent.text import clean

if TYPE_CHECKING:
    from harness.agent.model_store import Delivery, ModelStore


class Inbox:
    """Jobs in the order of their coming, each handed out once its model is here.

    A harness that shares no file system with this process says what a model is made of,
    ``{"digest": ..., "files": [[name, bytes, SHA-256], ...]}``, and sends of it what is asked for.
    """

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.jobs: collections.deque[Any] = collections.deque()
        self.deliveries: dict[int, Delivery] = {}

    @functools.cached_property
    def store(self) -> ModelStore:
        """Where models are kept that came from elsewhere: most processes see the harness's own files."""
        from harness.agent.model_store import ModelStore

        return ModelStore()

    def next(self) -> Any:
        """The next job, or whatever else the harness says.

        Raises:
            EOFError: It is gone.
        """
        while not self.jobs:
            self.hear(self.channel.receive())
        if self.travels(self.jobs[0]):
            with contextlib.suppress(self.channel.TimeoutError):
                while True:  # the models of later jobs can come while this one runs
                    self.hear(self.channel.receive(0))
        while self.waits(self.jobs[0]):
            self.hear(self.channel.receive())
        return self.jobs.popleft()

    def hear(self, message: Any) -> None:
        """Take a message: a job in its turn, a piece of a model at once."""
        if message[0] != "model":
            self.jobs.append(message)
            if self.travels(message):
                self.waits(message)
            return
        _, job_id, name, offset, content = message
        delivery = self.deliveries.get(job_id)
        if delivery is None or (delivery.name, delivery.offset) != (name, offset):
            return  # it was asked for before another process brought the model
        try:
            delivery.take(content)
        except OSError as error:
            self.fail(job_id, error)
        else:
            self.go_on(job_id)

    def travels(self, message: Any) -> bool:
        """Whether it is a job whose model is not in a file that both sides see."""
        return message[0] == "job" and isinstance(message[2]["model"], dict)

    def waits(self, message: Any) -> bool:
        """Whether a job's model is still to come; if so, somebody has asked for it."""
        if not self.travels(message):
            return False
        _, job_id, job = message
        path = self.store.find(job["model"])
        if path:
            job.update(model=path, folder=os.path.join(os.path.dirname(path), ""))
            self.drop(job_id)  # another process may have been quicker
            return False
        if not any(delivery.model == job["model"] for delivery in self.deliveries.values()):
            try:
                self.deliveries[job_id] = self.store.expect(job["model"])
            except OSError as error:
                self.fail(job_id, error)
                return False
            self.go_on(job_id)
            return self.waits(message)
        return True

    def go_on(self, job_id: int) -> None:
        """Ask for the next piece of a model, or keep it where it is whole."""
        delivery = self.deliveries[job_id]
        try:
            if delivery.lacks_something():
                self.channel.send(("need", job_id, delivery.name, delivery.offset))
                return
            self.store.keep(delivery)
        except OSError as error:
            self.fail(job_id, error)
        else:
            del self.deliveries[job_id]

    def fail(self, job_id: int, error: OSError) -> None:
        """A model cannot be had: its job's result says so, and those of others that need it ask again."""
        self.drop(job_id)
        for message in self.jobs:
            if message[0] == "job" and message[1] == job_id:
                message[2].update(model="", trouble="the model did not arrive: %s" % clean(error))

    def drop(self, job_id: int) -> None:
        """Take in no more of the model that a job asked for, if any is still to come."""
        delivery = self.deliveries.pop(job_id, None)
        if delivery is not None:
            delivery.discard()
