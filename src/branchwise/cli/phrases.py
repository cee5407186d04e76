"""Library messages in the terms of the command line: options, not parameters."""

from __future__ import annotations

#: What messages of the library say, and what they are to say here.
_PHRASES = (
    (
        (
            "X and y must be the rows that the tree was grown from, with their "
            "sample_weight"
        ),
        (
            "The table must have the rows that the tree was grown from, with their "
            "weights (--weight)"
        ),
    ),
    (
        "X and y must be the rows that it was grown from",
        "The table must have the rows that it was grown from",
    ),
    ("Without X and y branches", "Without --data branches"),
    (
        (
            "unseen='error' allows none. Declare it in categories= or choose another "
            "policy: 'node', 'largest', 'split' or 'branch'."
        ),
        (
            "--unseen-policy error allows none. Fit a tree with the value declared "
            "(--categories), or with another policy: node, largest, split or branch."
        ),
    ),
)


def with_options(message: str) -> str:
    """Write a message of the library with options in place of parameters."""
    for parameters, options in _PHRASES:
        message = message.replace(parameters, options)
    return message
