"""Jobs that wait for their models."""

from __future__ import annotations

import collections
import contextlib
import functools
import os
from typing import TYPE_CHECKING, Any

from harness.agent.safe_text import clean

if TYPE_CHECKING:
    from harness.agent.model_store import Delivery, ModelStore


class Inbox:
    """Jobs in the order of their arrival, each returned once its model is here.

    If the harness shares no file system with this process, a job lists the files of its model,
    ``{"digest": ..., "files": [[name, bytes, SHA-256], ...]}``, and the agent requests what it lacks.
    """

    def __init__(self, channel: Any) -> None:
        self.channel = channel
        self.jobs: collections.deque[Any] = collections.deque()
        self.deliveries: dict[int, Delivery] = {}

    @functools.cached_property
    def store(self) -> ModelStore:
        """The store of received models; most processes see the harness's own files and need none."""
        from harness.agent.model_store import ModelStore

        return ModelStore()

    def next(self) -> Any:
        """Return the next message that is not a piece of a model.

        Raises:
            EOFError: The channel is closed.
        """
        while not self.jobs:
            self.receive(self.channel.receive())
        if _is_remote(self.jobs[0]):
            with contextlib.suppress(self.channel.TimeoutError):
                while True:  # the models of later jobs can arrive while this one runs
                    self.receive(self.channel.receive(0))
        while self._waits(self.jobs[0]):
            self.receive(self.channel.receive())
        return self.jobs.popleft()

    def receive(self, message: Any) -> None:
        """Queue a job, or store a piece of a model."""
        if message[0] != "model":
            self.jobs.append(message)
            self._waits(message)
            return
        _, job_id, name, offset, content = message
        delivery = self.deliveries.get(job_id)
        if delivery is None or (delivery.name, delivery.offset) != (name, offset):
            return  # it was requested before another process stored the model
        try:
            delivery.take(content)
        except OSError as error:
            self._fail(job_id, error)
        else:
            self._request_more(job_id)

    def _waits(self, message: Any) -> bool:
        """Return whether a message is a job whose model is still to come.

        If so, the model has been requested.
        """
        if not _is_remote(message):
            return False
        _, job_id, job = message
        path = self.store.find(job["model"])
        if path:
            job.update(model=path, folder=os.path.join(os.path.dirname(path), ""))
            self._drop(job_id)  # another process may have stored it first
            return False
        if not any(delivery.model == job["model"] for delivery in self.deliveries.values()):
            from harness.agent.model_store import Delivery

            try:
                self.deliveries[job_id] = Delivery(self.store, job["model"])
            except OSError as error:
                self._fail(job_id, error)
                return False
            self._request_more(job_id)
            return self._waits(message)
        return True

    def _request_more(self, job_id: int) -> None:
        """Request the next piece of a model, or store the model if it is complete."""
        delivery = self.deliveries[job_id]
        try:
            if delivery.lacks_something():
                self.channel.send(("need", job_id, delivery.name, delivery.offset))
                return
            self.store.keep(delivery)
        except OSError as error:
            self._fail(job_id, error)
        else:
            del self.deliveries[job_id]

    def _fail(self, job_id: int, error: OSError) -> None:
        """Let a job fail because its model is missing; other jobs that need the model request it again."""
        self._drop(job_id)
        for message in self.jobs:
            if message[0] == "job" and message[1] == job_id:
                message[2].update(model="", trouble="the model did not arrive: %s" % clean(error))

    def _drop(self, job_id: int) -> None:
        """Discard the received parts of the model that a job requested, if any."""
        delivery = self.deliveries.pop(job_id, None)
        if delivery is not None:
            delivery.discard()


def _is_remote(message: Any) -> bool:
    """Return whether a message is a job whose model is not in a file visible to both sides."""
    return message[0] == "job" and isinstance(message[2]["model"], dict)
