// The open tree as a picture: shapes, written as SVG or painted as PNG.
//
// The policy of the page allows no images, not even of its own, so that a PNG is painted
// shape by shape.

const FRAME = 24; // around the picture
const HEADING = 46;
const MOST_SAVED = 20000; // items of a picture
const PNG = { scale: 2, least: 0.5, side: 16000, area: 6e7 };

/** A colour of the page as it is now, light or dark. */
function ink(name) {
  const named = /^var\((.+)\)$/.exec(name)?.[1] ?? name;
  return getComputedStyle(document.documentElement).getPropertyValue(named).trim();
}

function mixed(colour, other, share) {
  const channels = (hex) => {
    const long = hex.length === 4 ? hex.replace(/\w/g, "$&$&") : hex;
    return [1, 3, 5].map((at) => parseInt(long.slice(at, at + 2), 16));
  };
  const [one, two] = [channels(ink(colour)), channels(ink(other))];
  const parts = one.map((part, at) => Math.round(part * share + two[at] * (1 - share)));
  return `rgb(${parts.join(", ")})`;
}

/** Shapes in the order in which they are painted, moved by (left, top). */
class Shapes {
  constructor() {
    this.all = [];
    this.left = 0;
    this.top = 0;
  }

  box(x, y, width, height, fill, { round = 0, stroke = "none" } = {}) {
    const [left, top] = [x + this.left, y + this.top];
    this.all.push({ kind: "box", x: left, y: top, width, height, fill, round, stroke });
  }

  line(d, stroke, width) {
    this.all.push({ kind: "line", d, stroke, width });
  }

  text(x, y, text, kind, fill, anchor = "start") {
    const [left, top] = [x + this.left, y + this.top];
    this.all.push({ kind: "text", x: left, y: top, text, font: FONTS[kind], fill, anchor });
  }
}

/** All that is open, with the title above and the legend below. */
function picture() {
  const { ids, parents, x, y, size } = state.items;
  const shapes = new Shapes();
  const keys = NUMBERS ? [] : legendKeys();
  const title = byId("heading").querySelector("h1").textContent;
  const keyRoom = sum(keys.map(({ name }) => widthOf(name, "line") + 32));
  const summary = byId("summary").textContent;
  const headRoom = Math.max(widthOf(title, "title"), widthOf(summary, "line"));
  const width = Math.ceil(Math.max(size.width, keyRoom, headRoom) + 2 * FRAME);
  const height = Math.ceil(size.height + 2 * FRAME + HEADING + (keys.length ? 30 : 0));
  shapes.box(0, 0, width, height, ink("--page"));
  shapes.text(FRAME, FRAME + 10, title, "title", ink("--ink"));
  shapes.text(FRAME, FRAME + 28, summary, "line", ink("--muted"));
  shapes.left = FRAME;
  shapes.top = FRAME + HEADING;
  const base = { x: -shapes.left, y: -shapes.top };
  for (let at = 1; at < ids.length; at++) {
    const way = ids[at] >= 0 && state.way.has(ids[at]);
    shapes.line(curve(parents[at], at, base), ink(way ? "--accent" : "--link"), lineWidth(at));
  }
  ids.forEach((item, at) => pictureCard(shapes, item, x[at], y[at]));
  shapes.left = FRAME;
  shapes.top = height - FRAME;
  let from = 0;
  for (const { name, colour } of keys) {
    shapes.box(from, -10, 11, 11, ink(colour), { round: 3 });
    shapes.text(from + 17, 0, name, "line", ink("--ink"));
    from += widthOf(name, "line") + 32;
  }
  return { shapes: shapes.all, width, height };
}

function pictureCard(shapes, item, x, y) {
  const width = cardWidth(item);
  const [[title, kind], [line]] = wordsOf(item);
  const room = width - CARD.sides + 4;
  const leaf = item >= 0 && isLeaf(item);
  const tint = leaf ? tintOf(item) : { colour: "--surface", share: 0 };
  const ground = mixed(tint.colour, "--surface", tint.share / 100);
  shapes.box(x, y, width, CARD.height, ground, { round: 9, stroke: ink("--line") });
  if (leaf) shapes.box(x, y, 5, CARD.height, ink(tint.colour), { round: 2 });
  const said = leaf ? title.slice(0, -1) : title;
  shapes.text(x + 13, y + 21, cutTo(said, kind, room), kind, ink("--ink"));
  shapes.text(x + 13, y + 38, cutTo(line, "line", room), "line", ink("--muted"));
  if (item < 0) return;
  if (NUMBERS) pictureScale(shapes, item, x + 13, y + 45, width - 26);
  else pictureBar(shapes, item, x + 13, y + 46, width - 26);
  if (item > 0) pictureEdge(shapes, item, x, y, width);
  if (!leaf && !state.open[item]) pictureKnob(shapes, item, x, y, width);
}

/** How many nodes are below a closed one. */
function pictureKnob(shapes, node, x, y, width) {
  const below = `+${grouped(TREE.below[node])}`;
  const wide = widthOf(below, "line") + 12;
  const down = state.direction === "down";
  const left = down ? x + (width - wide) / 2 : x + width - 11;
  const top = down ? y + CARD.height - 11 : y + 20;
  shapes.box(left, top, wide, 22, ink("--surface"), { round: 11, stroke: ink("--strong-line") });
  shapes.text(left + wide / 2, top + 15, below, "line", ink("--ink"), "middle");
}

function pictureBar(shapes, node, x, y, width) {
  let from = x;
  for (const { share, colour } of barShares(node)) {
    shapes.box(from, y, Math.max(share * width - 1, 1), 6, ink(colour), { round: 1 });
    from += share * width;
  }
}

function pictureScale(shapes, node, x, y, width) {
  const span = TREE.high - TREE.low || 1;
  const at = (value) => x + (width * (value - TREE.low)) / span;
  const [mean, spread] = [DATA.mean[node], DATA.deviation[node]];
  shapes.box(x, y + 3.5, width, 1, ink("--strong-line"));
  const wide = Math.max(1, at(mean + spread) - at(mean - spread));
  const band = mixed("--number", "--surface", 0.45);
  shapes.box(at(mean - spread), y + 1, wide, 6, band, { round: 3 });
  shapes.box(at(mean) - 2, y - 1, 4, 10, ink("--number"), { round: 2 });
}

/** The name of a branch: beside its card; above it in an outline and where the tree grows down. */
function pictureEdge(shapes, node, x, y, width) {
  const { edges, kind } = state.items;
  const above = namesAbove(kind);
  const lines = edges.get(node) ?? edgeLines(node, kind, width);
  const wide = Math.max(...lines.map((line) => widthOf(line, "edge")));
  const tall = lines.length * EDGE.line;
  const down = state.direction === "down";
  const anchor = down ? "middle" : above ? "start" : "end";
  const at = down ? x + width / 2 : above ? x + 2 : x - 8;
  const left = down ? at - wide / 2 : above ? at : at - wide;
  const top = down || above ? y - tall - 4 : y + (CARD.height - tall) / 2;
  if (!above) shapes.box(left - 4, top, wide + 8, tall, ink("--page"));
  const colour = ink(state.way.has(node) ? "--accent" : "--ink");
  lines.forEach((line, row) => {
    shapes.text(at, top + 12 + row * EDGE.line, line, "edge", colour, anchor);
  });
}

/** Names are set as text of elements, so that nothing in them can be markup. */
function asSvg({ shapes, width, height }) {
  const element = (tag, attributes) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    return made;
  };
  const make = {
    line: ({ d, stroke, width }) =>
      element("path", { d, fill: "none", stroke, "stroke-width": width }),
    box: ({ x, y, width, height, round, fill, stroke }) =>
      element("rect", { x, y, width, height, rx: round, fill, stroke }),
    text: ({ x, y, fill, font, anchor }) =>
      element("text", {
        ...{ x, y, fill, "text-anchor": anchor },
        ...{ "font-size": font.size, "font-weight": font.weight },
      }),
  };
  const viewBox = `0 0 ${width} ${height}`;
  const whole = element("svg", { width, height, viewBox, "font-family": FAMILY });
  for (const shape of shapes) {
    const made = make[shape.kind](shape);
    if (shape.kind === "text") made.textContent = shape.text;
    whole.append(made);
  }
  return new Blob([new XMLSerializer().serializeToString(whole)], { type: "image/svg+xml" });
}

/** A promise of a PNG; null where the picture is too large for one. */
function asPng({ shapes, width, height }) {
  const most = Math.min(PNG.side / Math.max(width, height), Math.sqrt(PNG.area / width / height));
  const scale = Math.min(PNG.scale, most);
  if (scale < PNG.least) return null;
  const size = { width: Math.floor(width * scale), height: Math.floor(height * scale) };
  const canvas = h("canvas", size);
  const paint = canvas.getContext("2d");
  paint.scale(scale, scale);
  for (const shape of shapes) paintShape(paint, shape);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function paintShape(paint, shape) {
  const { kind, x, y, width, height, fill, stroke } = shape;
  paint.fillStyle = fill ?? "none";
  paint.strokeStyle = stroke ?? "none";
  if (kind === "line") {
    paint.lineWidth = width;
    paint.stroke(new Path2D(shape.d));
  } else if (kind === "text") {
    const { size, weight } = shape.font;
    paint.font = `${weight} ${size}px ${FAMILY}`;
    paint.textAlign = shape.anchor === "middle" ? "center" : shape.anchor;
    paint.fillText(shape.text, x, y);
  } else {
    paint.lineWidth = 1;
    paint.beginPath();
    paint.roundRect(x, y, width, height, Math.min(shape.round, width / 2, height / 2));
    paint.fill();
    if (stroke !== "none") paint.stroke();
  }
}

/** Save what is open as a file; the button says where that cannot be. */
async function savePicture(format) {
  const fits = state.items.ids.length <= MOST_SAVED;
  const made = fits ? await (format === "svg" ? asSvg : asPng)(picture()) : null;
  if (!made) {
    const many = "Too many nodes: close some branches first.";
    tellAtMenu(fits ? "Too large for a PNG: save it as SVG." : many);
    return;
  }
  const name = document.title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60);
  const url = URL.createObjectURL(made);
  h("a", { href: url, download: `${name.replace(/^-|-$/g, "") || "tree"}.${format}` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  byId("save").open = false;
}

function tellAtMenu(words) {
  byId("saved").textContent = words;
}

function openSaving() {
  if (byId("save").hidden) return;
  byId("save").open = true;
  byId("save-svg").focus();
}

function buildSaving() {
  const menu = byId("save");
  // A frame in a notebook or a report may not save files.
  menu.hidden = window !== window.parent;
  for (const format of ["svg", "png"]) {
    byId(`save-${format}`).addEventListener("click", () => savePicture(format));
  }
  byId("print").addEventListener("click", () => {
    menu.open = false;
    window.print();
  });
  menu.addEventListener("toggle", () => tellAtMenu(""));
  document.addEventListener("pointerdown", (event) => {
    if (!menu.contains(event.target)) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
}
