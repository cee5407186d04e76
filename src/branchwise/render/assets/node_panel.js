// The panel about a node: its prediction, counts, split, gain and rule.

const MOST_CONDITIONS = 36; // of a rule that are listed

function showNode(node) {
  const parts = [head(node), rule(node), NUMBERS ? numbersOf(node) : countsOf(node)];
  if (!isLeaf(node)) {
    parts.push(splitOf(node), candidates(node), otherValues(node), surrogatesOf(node));
  }
  const about = byId("about");
  about.replaceChildren(...parts.filter(Boolean));
  about.scrollTop = 0;
}

function section(title, ...children) {
  return h("section", { class: "block" }, h("h3", {}, title), ...children);
}

function head(node) {
  const leaf = isLeaf(node);
  const dot = NUMBERS ? null : swatch(colourOf(DATA.label[node]));
  return h(
    "div",
    { class: "head" },
    h("p", { class: "kicker" }, `${leaf ? "Leaf" : "Node"} ${node}`),
    h("p", { class: "prediction" }, dot, bdi(predictionOf(node))),
    muted(supportOf(node), leaf ? "" : ", if it stopped here"),
    decision(reasonOf(node)),
  );
}

/** What decided, as a sentence; nothing where there is nothing to say. */
function decision(reason) {
  return reason ? muted(bdi(`${reason[0].toUpperCase()}${reason.slice(1)}.`)) : null;
}

/** The rule, condition by condition, with a button that copies it as a sentence. */
function rule(node) {
  const conditions = mergedConditions(node);
  const copy = button("Copy", () => copyText(ruleOf(node), copy), { class: "quiet", id: "copy" });
  const prediction = h("b", {}, bdi(predictionOf(node)));
  if (!conditions.length) return section(["Rule", copy], h("p", {}, "Always ", prediction));
  const list = h("ul", { class: "rule" });
  for (const condition of conditions.slice(0, MOST_CONDITIONS)) {
    list.append(h("li", {}, bdi(phrase(condition, 40))));
  }
  const more = conditions.length - MOST_CONDITIONS;
  if (more > 0) list.append(h("li", { class: "muted" }, `${counted(more, "condition")} more`));
  return section(["Rule", copy], h("p", {}, "If"), list, h("p", {}, "then ", prediction));
}

async function copyText(text, from) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    done = copyBySelection(text); // frames without permission have only this way
  }
  from.textContent = done ? "Copied" : "Not allowed here";
  setTimeout(() => (from.textContent = "Copy"), 1600);
}

function copyBySelection(text) {
  const area = h("textarea", { class: "offscreen" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

function countsOf(node) {
  const weights = classWeights(node);
  const probabilities = classProbabilities(node);
  const smoothed = Boolean(DATA.probabilities);
  const whole = TREE.weight[node];
  const counts = classCases(node);
  const rows = largestFirst(weights).map((label) =>
    tableRow(
      meter(weights[label] / whole, colourOf(label), DATA.classes[label]),
      counts && cell(cases(counts[label])),
      counts && cell(percent(counts[label], TREE.cases[node])),
      WEIGHTED && cell(percent(weights[label], whole)),
      smoothed && cell(percent(probabilities[label], 1)),
    ),
  );
  const heads = [bdi(DATA.target), ...(counts ? ["cases", "share"] : [])];
  if (WEIGHTED) heads.push("share of weight");
  if (smoothed) heads.push("probability");
  return section("Cases", table(heads, rows));
}

/** Positions of amounts, the largest first; zeros only where amounts are few. */
function largestFirst(amounts) {
  return range(0, amounts.length)
    .filter((at) => amounts[at] > 0 || amounts.length <= FEW)
    .sort((one, other) => amounts[other] - amounts[one] || one - other);
}

function numbersOf(node) {
  const [low, high] = [TREE.low, TREE.high].map((end) => h("span", {}, targetNumber(end, 4)));
  const weighted = WEIGHTED ? "weighted " : "";
  const rows = [
    tableRow(`${weighted}mean`, cell(DATA.prediction[node])),
    tableRow(`${weighted}standard deviation`, cell(targetNumber(DATA.deviation[node], 4))),
    tableRow("cases", cell(cases(TREE.cases[node]))),
    tableRow("share of all cases", cell(percent(TREE.cases[node], TREE.cases[0]))),
  ];
  if (WEIGHTED) {
    const part = percent(TREE.weight[node], TREE.weight[0]);
    rows.push(tableRow("share of all weight", cell(part)));
  }
  const ends = h("div", { class: "ends muted" }, low, high);
  return section("Numbers", scaleBar(node), ends, h("table", {}, h("tbody", {}, rows)));
}

/** The branches with their counts, and the gain of the split. */
function splitOf(node) {
  const rows = childrenOf(node).map((child) =>
    tableRow(
      link(child, edgeOf(child)),
      cell(cases(TREE.cases[child])),
      cell(figure(impurityOf(child))),
      wordCell(predictionOf(child)),
    ),
  );
  const stopped = stoppedAt(node);
  if (stopped) {
    const words = h("span", { class: "muted" }, "no branch: stop here");
    rows.push(tableRow(words, cell(cases(stopped)), cell("–"), wordCell(predictionOf(node))));
  }
  const title = ["Splits on ", bdi(columnOf(node).name)];
  const heads = ["branch", "cases", DATA.impurity.replace(" impurity", ""), "prediction"];
  return section(title, table(heads, rows), gainOf(node));
}

function gainOf(node) {
  const gain = TREE.gain[node];
  const before = impurityOf(node);
  const left = before - gain;
  const after = left > 1e-6 * before ? left : 0; // not what rounding leaves
  const [first, ...others] = DATA.impurity;
  const strong = (value) => h("b", {}, figure(value));
  return h(
    "p",
    { class: "gain" },
    `${first.toUpperCase()}${others.join("")} `,
    strong(before),
    " before, ",
    strong(after),
    " after: gain ",
    strong(gain),
    DATA.impurity === "entropy" ? " bits." : ".",
  );
}

/** The candidate columns, best first, where the view has them. */
function candidates(node) {
  const found = DATA.candidates?.[node];
  if (!found?.length) return null;
  const ranked = [...found].sort((one, other) => other.score - one.score);
  const rows = ranked.map(({ column, score, chosen, note }) => {
    const name = typeof column === "number" ? DATA.columns[column].name : column;
    const words = [bdi(name), chosen ? " ✓" : "", note ? h("small", {}, ` ${note}`) : ""];
    const line = tableRow(words, cell(figure(score)));
    line.classList.toggle("chosen", Boolean(chosen));
    return line;
  });
  return section("Candidates", table(["column", "score"], rows));
}

/** Where missing, unseen and empty values go. */
function otherValues(node) {
  const refused = "refused by this model";
  const missing = DATA.missing === "error" ? refused : routeWords(node, TREE.missingTo[node]);
  const items = [["Missing", missing]];
  if (columnOf(node).kind !== "numeric") {
    const unseen = DATA.unseen === "error" ? refused : routeWords(node, TREE.unseenTo[node]);
    items.push(["Another value", unseen]);
    const codes = valuesWithoutBranch(node);
    if (codes.length) {
      const values = listed({ column: TREE.column[node], codes }, 12);
      items.push(["Without a branch", `${values}: ${routeWords(node, STOP)}`]);
    }
  }
  const list = items.flatMap(([term, words]) => [h("dt", {}, term), h("dd", {}, bdi(words))]);
  return section("Missing and other values", h("dl", {}, list));
}

/** Values that had no case at a node, unless a split further up excludes them. */
function valuesWithoutBranch(node) {
  const index = TREE.column[node];
  let codes = new Set(DATA.columns[index].values.keys());
  for (const child of childrenOf(node)) codesOf(child).forEach((code) => codes.delete(code));
  for (let at = node; at > 0 && codes.size; at = TREE.parent[at]) {
    if (TREE.column[TREE.parent[at]] !== index) continue;
    const allowed = new Set(codesOf(at));
    codes = new Set([...codes].filter((code) => allowed.has(code)));
  }
  return [...codes];
}

function surrogatesOf(node) {
  const found = DATA.surrogates[node];
  if (!found) return null;
  const [one, other] = childrenOf(node).map((child) => bdi(edgeOf(child)));
  const name = bdi(columnOf(node).name);
  const lead = muted(
    ...["Where ", name, " is missing, the first of these that is known decides. "],
    "The first condition leads to “",
    ...[one, "”, the second to “", other, "”."],
  );
  const steps = found.map((surrogate) => h("li", {}, bdi(surrogate.words)));
  return section("Surrogates", lead, h("ol", {}, steps));
}
