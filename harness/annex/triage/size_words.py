"""What the sizes with which a model fails have in common, in words."""

from collections.abc import Collection

_ENOUGH = 2
"""Number of sizes on either side from which a rule is stated: with fewer, almost any rule would hold."""

_DIVISORS = (2, 4, 8)


def words_of_sizes(name: str, failing: Collection[int], right: Collection[int]) -> str:
    """Return when a failure appears, such as ``only if the last dimension is odd``.

    Args:
        name: Name of the thing that has the size.
        failing: Sizes with which the model fails, including its own.
        right: Sizes with which it is right.
    """
    if not right:
        return ""
    if len(failing) >= _ENOUGH:
        if max(failing) < min(right):
            return f"only up to {name} = {max(failing)}"
        if min(failing) > max(right):
            return f"only from {name} = {min(failing)} on"
        if len(right) >= _ENOUGH and (rule := _rule(failing, right)):
            return f"only if the {name} is {rule}"
    return f"right with {name} = {', '.join(map(str, sorted(right)))}"


def _rule(failing: Collection[int], right: Collection[int]) -> str:
    for divisor in _DIVISORS:
        fail, pass_ = ({size % divisor == 0 for size in sizes} for sizes in (failing, right))
        if (fail, pass_) == ({False}, {True}):
            return "odd" if divisor == _DIVISORS[0] else f"no multiple of {divisor}"
        if (fail, pass_) == ({True}, {False}):
            return "even" if divisor == _DIVISORS[0] else f"a multiple of {divisor}"
    return ""
