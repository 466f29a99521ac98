"""Facts of derived models, kept by content: a later run does not parse a model again."""

from pathlib import Path

import msgspec

from harness.corpus.caches.row_cache import open_row_cache
from harness.corpus.model.model_facts import ModelFacts, model_facts
from harness.corpus.model.model_file import load_lean
from harness.corpus.suites.suite import suites_cache


def derived_facts(path: Path, digest: str) -> ModelFacts:
    """Return the facts of a model in the cache; ``digest`` derives from all that its content depends on.

    Raises:
        ModelError, ValueError, OSError: It has to be read, and cannot be.
    """
    kept, name = open_row_cache(suites_cache()), f"facts of {digest}"
    content = kept.get(name, digest)
    if content is not None:
        return _decoder.decode(content)
    facts = model_facts(load_lean(path))
    kept.put(name, digest, msgspec.msgpack.encode(facts))
    return facts


_decoder = msgspec.msgpack.Decoder(ModelFacts)
