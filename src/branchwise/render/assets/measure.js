// Widths of words: cards and branches get the room that their words need.

const FAMILY = getComputedStyle(document.documentElement).fontFamily;
const FONTS = {
  title: { size: 14, weight: 620 },
  line: { size: 12, weight: 400 },
  edge: { size: 12.5, weight: 400 },
};
const pen = document.createElement("canvas").getContext("2d");
const advances = { title: new Map(), line: new Map(), edge: new Map() };

function fontOf(kind) {
  const { size, weight } = FONTS[kind];
  return `${weight} ${size}px ${FAMILY}`;
}

/** The width of a text, letter by letter, because a tree may have 100,000 of them. */
function widthOf(text, kind) {
  const known = advances[kind];
  let width = 0;
  for (const letter of text) {
    let advance = known.get(letter);
    if (advance === undefined) {
      pen.font = fontOf(kind);
      advance = pen.measureText(letter).width;
      known.set(letter, advance);
    }
    width += advance;
  }
  return width;
}

/** A text that is at most so wide; one that is cut off ends in "…". */
function cutTo(text, kind, most) {
  if (widthOf(text, kind) <= most) return text;
  let width = widthOf("…", kind);
  let kept = "";
  for (const letter of text) {
    width += widthOf(letter, kind);
    if (width > most) break;
    kept += letter;
  }
  return `${kept.trimEnd()}…`;
}

/** A text in at most so many lines, broken between words only. */
function inLines(text, kind, most, nLines) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const last = lines.length - 1;
    const longer = lines[last] ? `${lines[last]} ${word}` : word;
    const full = lines.length === nLines;
    if (full || !lines[last] || widthOf(longer, kind) <= most) lines[last] = longer;
    else lines.push(word);
  }
  return lines.map((line) => cutTo(line, kind, most));
}
