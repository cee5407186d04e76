// Small parts that pages are made of. Words are set as text, never read as HTML.

function byId(id) {
  return document.getElementById(id);
}

/** Make an element: attributes, listeners ("onclick"), class and style, and content. */
function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "style") Object.assign(element.style, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  const content = children.flat().filter((child) => child || child === "");
  element.append(...content.map((child) => (typeof child === "string" ? together(child) : child)));
  return element;
}

/** A text in which no line ends between a number and its sign: 72.3 %. */
function together(text) {
  return text.replace(/(?<=\d) (?=[%€$£¥])/g, "\u00a0");
}

/** A name on one line. */
function nameOnCard(text) {
  return h("bdi", {}, text);
}

/** A name, set apart so that its direction changes nothing around it. */
function bdi(text) {
  return h("bdi", {}, ...withBreaks(text));
}

const LONG_WORD = 22;

/** A text that may be broken after the joints of a name, as in marital_status; within a
 * word only where no line could hold it. */
function withBreaks(text) {
  if (text.length <= LONG_WORD / 2) return [text];
  const parts = text.split(/(?<=\p{L}[_./:|+-])(?=[\p{L}\p{N}])/u).flatMap((part) =>
    part.length <= LONG_WORD || part.includes(" ") ? [part] : part.match(/.{1,16}/gsu),
  );
  return parts.flatMap((part, at) => (at ? [h("wbr"), part] : [part]));
}

function muted(...words) {
  return h("p", { class: "muted" }, ...words);
}

function button(words, onclick, props = {}) {
  return h("button", { type: "button", onclick, ...props }, words);
}

/** A button that leads to a node. */
function link(node, words) {
  const props = { type: "button", class: "link", "data-goto": node };
  return h("button", { ...props, title: node ? branchOf(node) : "All cases" }, bdi(words));
}

function swatch(background) {
  return h("span", { class: "swatch", style: { background } });
}

/** A share as a short bar, and what has it. */
function meter(share, background, name) {
  const bar = h("i", { style: { width: `${100 * share}%`, background } });
  const track = h("span", { class: "meter", "aria-hidden": "true" }, bar);
  return h("span", { class: "labelled" }, track, bdi(name));
}

function cell(...content) {
  return h("td", { class: "number" }, ...content);
}

function wordCell(text) {
  return h("td", { class: "word" }, bdi(text));
}

/** A row of a table with its head. */
function tableRow(head, ...cells) {
  return h("tr", {}, h("th", { scope: "row" }, head), ...cells);
}

const FEW = 12; // rows of a table before the rest is folded away

function table(heads, rows) {
  const cells = heads.map((head, at) =>
    h("th", { scope: "col", class: at ? "number" : false }, head),
  );
  const body = h("tbody", {}, rows.slice(0, FEW));
  const whole = h("table", {}, h("thead", {}, h("tr", {}, cells)), body);
  if (rows.length <= FEW) return whole;
  const more = button(
    `Show ${grouped(rows.length - FEW)} more`,
    () => {
      body.append(...rows.slice(FEW));
      more.remove();
    },
    { class: "quiet" },
  );
  return h("div", {}, whole, more);
}
