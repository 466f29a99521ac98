"""Pictures and voices for inputs that take such by shape and name, where noise leaves a network silent.

A network that looks for letters, faces or speech answers to noise with probabilities near zero everywhere,
and so does a wrong one.
"""

from harness.corpus.inputs.fitting.starts import CHANNELS, PICTURE_RANKS, SOUND, SOUND_RANK, may_be_picture
from harness.corpus.inputs.recipes.recipe_parts import FromRecipe
from harness.corpus.model.port import Port

_COLOURS = 3


def natural(port: Port) -> FromRecipe | None:
    """Return the recipe of a picture or a voice; None for any other input. The port has its sizes."""
    shape, dtype = port.type.shape or (), port.type.dtype
    if len(shape) in PICTURE_RANKS and may_be_picture(dtype):
        channels = next((size for size in (shape[-3], shape[-1]) if size in CHANNELS), None)
        if channels is not None:
            kind = "rgb" if channels == _COLOURS else "gray"
            scale = "" if dtype == "uint8" else "-imagenet" if kind == "rgb" else "-signed"
            return FromRecipe(recipe=kind + scale)
    if 0 < len(shape) <= SOUND_RANK and dtype.startswith("float") and SOUND.search(port.name):
        return FromRecipe(recipe="audio")
    return None
