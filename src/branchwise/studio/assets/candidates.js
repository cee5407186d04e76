// The candidates of a node, best first: each can be split by at once, or opened to choose
// another threshold or other groups. Those that the recipe would not take say why.

const SHOWN_CANDIDATES = 12; // before the rest is folded away
const offered = new Map(); // path -> candidates; edits clear it

async function candidatesOf(path) {
  if (offered.has(path)) return offered.get(path);
  const asked = session.number;
  const found = await ask("candidates", { node: path });
  if (asked === session.number) offered.set(path, found);
  return found;
}

async function showCandidates(part, path) {
  const place = errorPlace();
  const told = await trying(place, () => candidatesOf(path));
  if (view.path !== path) return; // another node was selected meanwhile
  part.removeAttribute("aria-busy");
  part.replaceChildren(place);
  if (!told) return;
  // Why the recipe would not take a column says much of its gain.
  const found = isHidden(path) ? told.map((each) => ({ ...each, reason: null })) : told;
  if (session.teaching.on) part.append(lesson(path, found));
  const best = Math.max(...found.map(({ score, reason }) => (reason ? 0 : (score ?? 0))), 0);
  part.append(listOf(found.map((candidate) => candidateRow(path, candidate, best)), SHOWN_CANDIDATES));
}

/** A list whose end is folded away where it is long. */
function listOf(rows, few) {
  const list = h("ul", { class: "candidates" }, rows.slice(0, few));
  if (rows.length <= few) return list;
  const words = `Show ${grouped(rows.length - few)} more`;
  const more = button(words, () => (list.append(...rows.slice(few)), more.remove()), { class: "quiet" });
  return h("div", {}, list, more);
}

function candidateRow(path, candidate, best) {
  const { column, reason } = candidate;
  const known = Number.isFinite(candidate.score);
  const editor = h("div", { class: "editor", hidden: true });
  const place = errorPlace();
  const name = h(
    "button",
    { type: "button", class: "column", "aria-expanded": "false" },
    bdi(column),
  );
  name.addEventListener("click", () => {
    editor.hidden = !editor.hidden;
    name.setAttribute("aria-expanded", String(!editor.hidden));
    if (!editor.firstChild) openEditor(editor, path, candidate);
  });
  const split = button(
    "Split",
    () => splitBy(path, { column }, place, `Split on ${column}.`),
    { class: "quiet", "aria-label": `Split on ${column}`, title: "Split as suggested" },
  );
  return h(
    "li",
    { "data-column": column, class: reason ? "out" : false },
    h(
      "div",
      { class: "line" },
      name,
      known && h("b", { class: "number" }, figure(candidate.score)),
      candidate.children?.length > 0 && split,
    ),
    known && scoreBar(candidate.score / (best || 1)),
    h("p", { class: "figures" }, figuresOf(candidate)),
    reason && h("p", { class: "figures" }, `Not by the recipe: ${reason}.`),
    place,
    editor,
  );
}

function scoreBar(share) {
  const bar = h("i", { style: { width: `${100 * Math.max(0, Math.min(1, share))}%` } });
  return h("div", { class: "score", "aria-hidden": "true" }, bar);
}

/** Gain, gain ratio, p-value and branches in words. */
function figuresOf({ gain, gain_ratio: ratio, p_value: p, threshold, shown_threshold: shown, children }) {
  const parts = [];
  if (Number.isFinite(gain)) parts.push(`gain ${figure(gain)}`);
  if (Number.isFinite(ratio)) parts.push(`gain ratio ${figure(ratio)}`);
  if (Number.isFinite(p)) parts.push(`p ${pWords(p)}`);
  // Dates are numbers that nobody reads.
  if (Number.isFinite(threshold)) parts.push(`at ${typeof shown === "string" ? shown : number(threshold)}`);
  else if (children?.length) parts.push(counted(children.length, "branch", "branches"));
  return parts.join(" · ");
}

function pWords(p) {
  if (p > 0.9995) return "1";
  return p < 0.001 ? "< 0.001" : figure(p);
}

function splitBy(path, how, place, words) {
  return apply({ do: "split", node: path, ...how }, place, words);
}

/** The distribution of a column at a node, with what there is to choose. */
async function openEditor(editor, path, candidate) {
  const place = errorPlace();
  editor.append(muted("…"));
  const args = { node: path, column: candidate.column };
  const spread = await trying(place, () => ask("distribution", args));
  editor.replaceChildren(place);
  if (!spread) return;
  const make = spread.edges ? thresholdEditor : groupEditor;
  editor.append(...make(path, candidate, spread));
  editor.scrollIntoView({ block: "nearest" });
}
