"""What a module holds.

    What is indented is code, behind and beside.
"""


def function(x):
    """x: a number beside others."""
    behind = "What is no docstring."

    def inner():
        """What is within a function."""

    return inner, behind, x


def _private():
    """What is private."""
