"""Colours that also those tell apart who do not see red and green as others do.

The first seven are the colours of Okabe and Ito (2008); the three after them differ
from them in lightness. tests/test_pictures.py looks at them with other eyes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

#: A colour for each class, in the order of the classes.
CLASS_COLOURS = (
    "#e69f00",
    "#0072b2",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#f0e442",
    "#332288",
    "#882255",
    "#bbbbbb",
)
#: What takes the place of those that are too dark on a dark ground.
ON_DARK = {7: "#7766dd", 8: "#a03060"}
#: The colour of the classes for which none is left.
OTHERS = len(CLASS_COLOURS) - 1
#: The colour of numbers; higher ones are stronger.
NUMBER_COLOUR = "#0072b2"
NUMBER_ON_DARK = "#56b4e9"


def class_colours(weights: Sequence[float]) -> list[int]:
    """Return the position in :data:`CLASS_COLOURS` for each class.

    Where there are more classes than colours, those with the most weight at the root
    get one of their own, and the others share the last.
    """
    classes = range(len(weights))
    if len(weights) <= len(CLASS_COLOURS):
        return list(classes)
    heaviest = sorted(classes, key=lambda label: (-weights[label], label))[:OTHERS]
    place = {label: colour for colour, label in enumerate(sorted(heaviest))}
    return [place.get(label, OTHERS) for label in classes]


def variables() -> Iterator[str]:
    """Yield the colours as style sheets of pages name them."""
    light = dict(enumerate(CLASS_COLOURS))
    for where, colours, numbers in (
        (":root", light, NUMBER_COLOUR),
        (':root[data-theme="dark"]', ON_DARK, NUMBER_ON_DARK),
    ):
        named = [f"--class-{code}:{colour}" for code, colour in colours.items()]
        yield f"{where}{{{';'.join([*named, f'--number:{numbers}'])}}}"


def mixed(colour: str, other: str, share: float) -> str:
    """Mix two colours, with so large a share of the first."""
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


def _channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
