"""How wide text is, without a font: an estimate on the safe side."""

from __future__ import annotations

import unicodedata

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
#: What stands for the end of a text that was cut short.
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


def fitted(text: str, room: float, size: float, bold: bool = False) -> str:
    """Cut a text short that is wider than there is room."""
    if text_width(text, size, bold) <= room:
        return text
    room -= text_width(ELLIPSIS, size, bold)
    width, end = 0.0, 0
    for char in text:
        width += text_width(char, size, bold)
        if width > room:
            break
        end += 1
    # A mark that belongs to a letter goes where the letter goes.
    while 0 < end < len(text) and not _char_width(text[end]):
        end -= 1
    return text[:end].rstrip() + ELLIPSIS
