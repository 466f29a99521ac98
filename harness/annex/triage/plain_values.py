"""Values in place of a model's own: random ones of the same range, small integers, a single value."""

import hashlib

import numpy as np

from harness.core.values.value import STRING, Array, Tensor, tensor

LARGEST_TENSOR = 64 << 20
"""Largest size in bytes of a tensor that is examined element by element; a larger one stays as it is."""

_SMALL = 3
"""Largest magnitude of small integers: every signed element type holds them, int4 included."""

SINGLE, SMALL_INTEGERS, RANDOM, GIVEN_VALUES = range(4)
"""Levels of how special the elements of a tensor are; a reduction goes downwards."""


def speciality(value: Tensor, *, integers: bool = True) -> int:
    """Return how special the elements of a tensor are.

    Small integers count as plain if ``integers``. In an initializer they may be the real weights of a
    stranger's model; in an input they are as good as any.
    """
    array = value.array
    if array.size <= 1 or array.nbytes > LARGEST_TENSOR:
        return GIVEN_VALUES if array.nbytes > LARGEST_TENSOR else SINGLE
    flat = array.reshape(-1)
    if value.dtype == STRING:
        return SINGLE if all(item == flat[0] for item in flat.tolist()) else GIVEN_VALUES
    raw = np.ascontiguousarray(flat).view(np.uint8).reshape(flat.size, -1)
    if (raw == raw[0]).all():
        return SINGLE
    if integers and _are_small_integers(value):
        return SMALL_INTEGERS
    return RANDOM if randomised(value).array.tobytes() == array.tobytes() else GIVEN_VALUES


def randomised(value: Tensor) -> Tensor:
    """Return seeded random numbers of the same range and signs in the same shape.

    The numbers of negative elements, zeros and positive elements stay the same, at other places. The least
    and the greatest of the negative and of the positive ones are kept, as are NaN and infinities. For bool,
    the number of true elements stays. The result contains nothing else of the original. Applying it twice
    gives the same as once.
    """
    array = value.array
    if array.dtype.kind == "c":
        parts = [randomised(tensor(part)).array for part in (array.real, array.imag)]
        return Tensor(dtype=value.dtype, array=(parts[0] + 1j * parts[1]).astype(array.dtype))
    if value.dtype == STRING:
        return Tensor(dtype=value.dtype, array=np.full(array.shape, "a", dtype=object))
    wide = _wide(value)
    finite = np.isfinite(wide) if wide.dtype.kind == "f" else np.ones(wide.shape, np.bool_)
    special = np.sort(wide[~finite])
    negative, positive = wide[finite & (wide < 0)], wide[finite & (wide > 0)]
    zeros = np.zeros(wide.size - special.size - negative.size - positive.size, wide.dtype)
    random = _random(array, negative, positive, zeros, special)
    drawn = [_drawn(part, random) for part in (negative, positive)]
    whole = random.permutation(np.concatenate([*drawn, zeros, special]))
    return Tensor(dtype=value.dtype, array=whole.astype(array.dtype).reshape(array.shape))


def small_integers(value: Tensor) -> Tensor | None:
    """Return integers with a magnitude of at most 3 within a tensor's range; None if there are none."""
    wide = _finite(value)
    if wide is None:
        return None
    low, high = max(-_SMALL, np.ceil(wide.min())), min(_SMALL, np.floor(wide.max()))
    if low > high:
        return None
    random = _random(value.array, np.array([low, high], wide.dtype))
    drawn = random.integers(int(low), int(high), value.array.size, endpoint=True)
    made = Tensor(dtype=value.dtype, array=drawn.astype(value.array.dtype).reshape(value.array.shape))
    return made if _are_small_integers(made) else None  # float8e8m0 has no 3


def single(value: Tensor) -> Tensor | None:
    """Return a tensor with a single value within another's range, 1 if possible; None if that is empty."""
    if value.dtype == STRING and value.array.size:
        return Tensor(dtype=value.dtype, array=np.full(value.array.shape, "a", dtype=object))
    wide = _finite(value)
    if wide is None:
        return None
    one = 1 if wide.min() <= 1 <= wide.max() else wide.min()
    array = np.full(value.array.shape, one, wide.dtype).astype(value.array.dtype)
    return Tensor(dtype=value.dtype, array=array)


def _finite(value: Tensor) -> Array | None:
    """Return the finite elements in a wide type; None if there are none or the type has no order."""
    if value.dtype == STRING or value.array.dtype.kind == "c":
        return None
    wide = _wide(value)
    finite = wide[np.isfinite(wide)]
    return finite if finite.size else None


def _wide(value: Tensor) -> Array:
    """Return elements in a type that numpy can compute with and that holds each of them."""
    flat = value.array.reshape(-1)
    if flat.dtype.kind in "iu":
        return flat
    # int4 and similar types are not numpy's own integers.
    whole = "int" in value.dtype or value.dtype == "bool"
    return flat.astype(np.int64 if whole else np.float64)


def _drawn(part: Array, random: np.random.Generator) -> Array:
    """Return as many numbers as before, from least to greatest; both ends are included."""
    if not part.size:
        return part
    low, high = part.min(), part.max()
    if part.dtype.kind in "iu":
        drawn = random.integers(low, high, part.size, dtype=part.dtype, endpoint=True)
    else:
        # Not low + (high - low) * x, which overflows for a range as wide as the type.
        share = random.random(part.size)
        drawn = low * (1 - share) + high * share
    drawn[:1], drawn[-1:] = low, high
    clipped: Array = np.clip(drawn, low, high)
    return clipped


def _random(array: Array, *parts: Array) -> np.random.Generator:
    """Draw random numbers that depend only on properties that the result shares with the original."""
    facts = [str(array.dtype), str(array.shape)]
    facts += [f"{part.size} {part.min()} {part.max()}" if part.size else "0" for part in parts]
    return np.random.default_rng(list(hashlib.sha256("\0".join(facts).encode()).digest()))


def _are_small_integers(value: Tensor) -> bool:
    if value.array.dtype.kind == "c":
        return False
    wide = _wide(value)
    return bool(np.isfinite(wide).all() and (abs(wide) <= _SMALL).all() and (wide == np.floor(wide)).all())
