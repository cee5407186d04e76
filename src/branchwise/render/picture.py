r"""The nodes, texts and colours of a picture, and estimated widths of texts.

All pictures (SVG, Matplotlib, DOT, Mermaid) show the same: a split node has the name
of its column, a leaf its prediction, both their cases; branches have their
conditions. Branches that are left out are counted in a node of their own.

Diagrams for other programs are written here, too:

DOT: labels are plain quoted strings, never HTML-like ones. Graphviz reads backslashes
(``\N`` is the name of a node) and entities (``&lt;``) in them; both are written so
that a name shows as it is.

Mermaid, which GitHub, GitLab and many wikis draw, has no escape character but knows
entities, ``#35;`` for ``#``. Everything that could mean something to it, or to Markdown
or HTML in its labels, is one. What it looks for after entities have become characters
again (line breaks written ``\n``, icons, formulas) is broken up by a mark of no width.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from branchwise.errors import check_limit
from branchwise.text import words
from branchwise.text.as_html import macros
from branchwise.tree.splits import EVERY_BRANCH, STOP

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
    position = {label: colour for colour, label in enumerate(sorted(heaviest))}
    return [position.get(label, OTHERS) for label in classes]


def variables() -> Iterator[str]:
    """Yield the colours as style sheets of pages name them."""
    light = dict(enumerate(CLASS_COLOURS))
    for where, colours, numbers in (
        (":root", light, NUMBER_COLOUR),
        (':root[data-theme="dark"]', ON_DARK, NUMBER_ON_DARK),
    ):
        named = [f"--class-{code}:{colour}" for code, colour in colours.items()]
        yield f"{where}{{{';'.join([*named, f'--number:{numbers}'])}}}"


def class_styles() -> Iterator[str]:
    """Yield the colours as charts and meters of pages name them: ``k0`` and on."""
    every = enumerate(CLASS_COLOURS)
    yield "".join(f".k{code}{{--own:{colour}}}" for code, colour in every)
    on_dark = "".join(f".k{code}{{--own:{c}}}" for code, c in ON_DARK.items())
    yield f"@media screen and (prefers-color-scheme: dark){{{on_dark}}}"


def mixed(colour: str, other: str, share: float) -> str:
    """Mix two colours, with so large a share of the first."""
    pairs = zip(_channels(colour), _channels(other), strict=True)
    return "#" + "".join(f"{round(share * a + (1 - share) * b):02x}" for a, b in pairs)


def _channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


#: Widths of ASCII characters in a wide sans-serif font, as shares of its size.
_WIDTHS = {
    0.34: " ',./:;IJ\\fijl|",
    0.42: '!"()-[]rt',
    0.54: "*?_`csz",
    0.86: "#&+<=>^~DGHMNOQUw",
    1.0: "%@Wm",
}
_WIDTH_OF = {char: width for width, chars in _WIDTHS.items() for char in chars}
_OTHER_ASCII = 0.66
_OTHER = 0.8
_IDEOGRAPH = 1.05
_EMOJI = 1.35
#: Bold letters are wider by this factor.
_BOLD = 1.12
#: The end of a truncated text.
ELLIPSIS = "…"


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Estimate how wide a line of text is, in the unit of its size."""
    width = sum(_WIDTH_OF.get(char) or _char_width(char) for char in text)
    return width * size * (_BOLD if bold else 1.0)


def _char_width(char: str) -> float:
    if char.isascii():
        return _OTHER_ASCII
    category = unicodedata.category(char)
    if category in ("Mn", "Me", "Cf"):
        return 0.0
    if category == "So":
        return _EMOJI
    wide = unicodedata.east_asian_width(char) in "WF"
    return _IDEOGRAPH if wide else _OTHER


def fitted(text: str, space: float, size: float, bold: bool = False) -> str:
    """Truncate a text that is wider than the space."""
    if text_width(text, size, bold) <= space:
        return text
    space -= text_width(ELLIPSIS, size, bold)
    width, end = 0.0, 0
    for char in text:
        width += text_width(char, size, bold)
        if width > space:
            break
        end += 1
    # A mark that belongs to a letter goes where the letter goes.
    while 0 < end < len(text) and not _char_width(text[end]):
        end -= 1
    return text[:end].rstrip() + ELLIPSIS


@dataclass(frozen=True)
class Drawing:
    """The nodes of a picture, numbered level by level, as parallel lists.

    ``node`` is the number in the tree, or for what is left out that of its parent;
    ``left_out`` is how many nodes that is, else 0. ``head`` and ``note`` are the
    words in a node, ``label`` those on the branch to it.
    """

    view: dict[str, Any]
    node: list[int]
    parent: list[int]
    n_children: list[int]
    first_child: list[int]
    left_out: list[int]
    head: list[str]
    note: list[str]
    label: list[str]

    def __len__(self) -> int:
        return len(self.node)

    def get(self, name: str, index: int) -> Any:
        """Return the entry of a list of the view for a drawn node."""
        return self.view["nodes"][name][self.node[index]]

    def is_leaf(self, index: int) -> bool:
        """Whether a drawn node is a leaf, neither a split nor a count of others."""
        return not self.left_out[index] and not self.get("n_children", index)

    def way(self, index: int) -> str:
        """Write the condition of the branch to a drawn node, in full."""
        full = self.view["shortened"].get(str(self.node[index]))
        return full or self.get("branch", index) or "all cases"

    def missing(self, index: int) -> str:
        """Write where a split node sends missing values."""
        if self.view["missing"] == "error":
            return "missing values are refused"
        branch = self.get("missing_to", index)
        if branch == EVERY_BRANCH:
            way = "every branch"
        elif branch == STOP:
            way = f"stop, {self.get('prediction', index)}"
        else:
            way = self.view["nodes"]["edge"][self.get("first_child", index) + branch]
        has_surrogates = str(self.node[index]) in self.view["surrogates"]
        return f"missing values: {'surrogates, else ' if has_surrogates else ''}{way}"

    def share(self, index: int) -> float:
        """Return the share of the training weight that reaches a node."""
        share: float = self.get("weight", index) / self.view["nodes"]["weight"][0]
        return share


def drawing(
    view: dict[str, Any], max_depth: int | None = None, max_nodes: int | None = None
) -> Drawing:
    """Choose the nodes of a picture: so many levels of splits, and so many nodes.

    The branches of a node are shown together or not at all, upper levels first.
    """
    check_limit("max_depth", max_depth, 0)
    check_limit("max_nodes", max_nodes, 1)
    nodes = view["nodes"]
    below = _sizes(nodes)
    picture = Drawing(view, [0], [-1], [], [], [0], [], [], [])
    budget = len(below) if max_nodes is None else max_nodes
    budget -= 1
    for index, node in enumerate(picture.node):  # grows while it is walked
        number = 0 if picture.left_out[index] else nodes["n_children"][node]
        deep = max_depth is not None and nodes["depth"][node] >= max_depth
        picture.first_child.append(len(picture.node))
        _word(picture, index)
        if number and (deep or number > budget):
            number = 1
            _add(picture, index, node, below[node] - 1)
        elif number:
            budget -= number
            first = nodes["first_child"][node]
            for child in range(first, first + number):
                _add(picture, index, child, 0)
        picture.n_children.append(number)
    return picture


def _add(picture: Drawing, parent: int, node: int, left_out: int) -> None:
    picture.node.append(node)
    picture.parent.append(parent)
    picture.left_out.append(left_out)


def _sizes(nodes: dict[str, list[Any]]) -> list[int]:
    """Return how many nodes each subtree has."""
    parents = nodes["parent"]
    sizes = [1] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        sizes[parents[node]] += sizes[node]
    return sizes


def _word(picture: Drawing, index: int) -> None:
    """Put the words of a drawn node into the lists."""
    if picture.left_out[index]:
        head, note, label = f"{ELLIPSIS} {picture.left_out[index]:,} more", "", ""
    else:
        column, label = picture.get("column", index), picture.get("edge", index)
        if column >= 0:
            head = picture.view["columns"][column]["name"]
            note = _split_note(picture, index)
        else:
            head, note = (picture.get(name, index) for name in ("prediction", "tally"))
    picture.head.append(head)
    picture.note.append(note)
    picture.label.append(label)


def _split_note(picture: Drawing, index: int) -> str:
    """Return the cases of a split node; for numbers with their mean."""
    if picture.view["predicts"] == "numbers":
        return str(picture.get("summary", index))
    weighted = picture.view.get("weighted", False)
    return words.cases(picture.get("cases" if weighted else "weight", index))


_WHITE = "#ffffff"
_TINT = 0.2
_THICKEST = 6.0
#: Letters, digits, and marks that mean nothing inside the quotes of a label; a point
#: only between digits, because "1. " begins a list.
_HARMLESS = re.compile(r"[^\W_]|[ ,()/=±…]|(?<=\d)\.(?=\d)")
#: What is broken up after its first character; the last two are Mermaid's own marks
#: around entities.
_READ_LATER = re.compile(r"\\n|:(?=\w)|\$(?=\$)|\ufb02(?=\xb0)|\xb6(?=\xdf)")
_NO_WIDTH = "\u200c"


def dot_picture(
    view: dict[str, Any], max_depth: int | None = None, max_nodes: int | None = None
) -> str:
    """Return a DOT file; the parameters are those of ``svg_picture``."""
    return _diagram("tree.dot", quoted_dot, drawing(view, max_depth, max_nodes))


def mermaid_picture(
    view: dict[str, Any], max_depth: int | None = None, max_nodes: int | None = None
) -> str:
    """Return a flowchart; the parameters are those of ``svg_picture``."""
    return _diagram("tree.mmd", quoted_mermaid, drawing(view, max_depth, max_nodes))


def _diagram(template: str, quoted: Callable[..., str], tree: Drawing) -> str:
    """Fill in a diagram with the styles of nodes and the widths of branches."""
    label_colours = class_colours(tree.view["nodes"]["weights"][0])
    every = range(len(tree))
    styles = [_style(tree, index, label_colours) for index in every]
    shares = [0.0 if tree.left_out[index] else tree.share(index) for index in every]
    widths = [1.0 + (_THICKEST - 1.0) * share for share in shares]
    links: dict[str, list[int]] = {}
    for link, width in enumerate(widths[1:]):
        links.setdefault(f"{width:.1f}", []).append(link)
    strokes = {f"class{code}": colour for code, colour in enumerate(CLASS_COLOURS)}
    strokes["number"] = NUMBER_COLOUR
    grey = ("#8a94a0", "#f4f6f8")
    colours = {
        style: (stroke, mixed(stroke, _WHITE, _TINT))
        for style, stroke in strokes.items()
    }
    diagram = macros(
        f"render/templates/{template}",
        quoted=quoted,
        tree=tree,
        styles=styles,
        colours={"split": grey, "more": grey, **colours},
        widths=widths,
        links=links,
    )
    return str(diagram).rstrip("\n")


def _style(tree: Drawing, index: int, colours: list[int]) -> str:
    if tree.left_out[index]:
        return "more"
    if not tree.is_leaf(index):
        return "split"
    if tree.view["predicts"] == "numbers":
        return "number"
    return f"class{colours[tree.get('label', index)]}"


def quoted_dot(*lines: str) -> str:
    """Write lines as one DOT string, every character standing for itself."""
    return '"' + r"\n".join(_escaped_dot(line) for line in lines) + '"'


def _escaped_dot(text: str) -> str:
    return text.replace("&", "&amp;").replace("\\", r"\\").replace('"', r"\"")


def quoted_mermaid(*lines: str) -> str:
    """Write lines as a label, every character standing for itself."""
    return '"' + "<br/>".join(_escaped_mermaid(line) for line in lines) + '"'


def _escaped_mermaid(text: str) -> str:
    text = _READ_LATER.sub(lambda found: found[0][0] + _NO_WIDTH + found[0][1:], text)
    return "".join(
        char if _HARMLESS.match(text, at) else f"#{ord(char)};"
        for at, char in enumerate(text)
    )
