"""The results of a reproduction: their exit codes, and the line that tells one."""

GONE, THERE, CANNOT = 0, 1, 2
CHILD = 40  # added to the exit code of the child, so that a provider's own exit code is not taken for it


def tell(code, why):
    """Print the result, and return its exit code."""
    print("{}: {}".format(("FAULT GONE", "FAULT THERE", "CANNOT BE JUDGED HERE")[code], why), flush=True)
    return code
