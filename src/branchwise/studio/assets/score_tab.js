// The score of the edited tree against the automatic one.

const METHODS = [
  ["hold-out", "hold-out rows"],
  ["cross-validation", "repeated cross-validation"],
];
const scoring = { method: OPENED.validation_fraction ? "hold-out" : "cross-validation", timer: 0 };
// Milliseconds after an edit; cross-validation grows many trees, of short tables only.
const LIVE_AFTER = { "hold-out": 500, "cross-validation": 1500 };
const LIVE_CASES = 5000;

function showScore(panel) {
  const choice = h("select", {}, options(METHODS, scoring.method));
  const place = errorPlace();
  const body = h("div", { "aria-live": "polite", "aria-busy": "true" }, muted("Scoring …"));
  choice.addEventListener("change", () => {
    scoring.method = choice.value;
    showScore(panel);
    panel.querySelector("select").focus();
  });
  panel.replaceChildren(
    h("h2", {}, "Edited against automatic"),
    muted("Both trees on rows that neither was grown from, with 95 % intervals."),
    field("Rows", choice),
    place,
    body,
  );
  fillScore(body, place);
}

async function fillScore(body, place) {
  const asked = session.number;
  const found = await trying(place, () => ask("score", { method: scoring.method }));
  if (asked !== session.number) return; // an edit has made the tab anew
  body.removeAttribute("aria-busy");
  body.replaceChildren(...(found ? scoreParts(found) : []));
  if (found) showLive(found);
}

function scoreParts(found) {
  const { edited, automatic, difference, metric } = found;
  const words = scoreWriter(found);
  const all = [edited, automatic].flatMap((part) => [part.low, part.high, part.value]);
  const known = all.filter(Number.isFinite);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const span = high - low || 1;
  const at = (value) => `${(100 * (value - low)) / span}%`;
  const row = (name, part) => {
    const has = Number.isFinite(part.low);
    const width = has ? `${(100 * (part.high - part.low)) / span}%` : "0";
    const scale = h(
      "div",
      { class: "scale", "aria-hidden": "true" },
      has && h("i", { class: "band", style: { left: at(part.low), width } }),
      h("i", { class: "mean", style: { left: at(part.value) } }),
    );
    const interval = has ? `${words(part.low)} to ${words(part.high)}` : "";
    return tableRow([name, scale], cell(h("b", {}, words(part.value))), cell(interval));
  };
  const rows = [row("edited tree", edited), row("automatic tree", automatic)];
  return [
    table([metric ?? "score", "score", "interval"], rows),
    difference && h("p", { class: "gain" }, differenceWords(difference, words)),
    found.rows && muted(`${found.rows[0].toUpperCase()}${found.rows.slice(1)}.`),
    found.misfits?.length && h("ul", { class: "notes" }, found.misfits.map((line) => h("li", {}, bdi(line)))),
  ].filter(Boolean);
}

/** How scores are written: shares in per cent, others with three digits. */
function scoreWriter({ edited }) {
  if (!edited.words?.includes("%")) return (value) => rounded(value, 3);
  return (value) => `${(100 * value).toFixed(1)} %`;
}

function differenceWords({ value, low, high }, written) {
  const signed = (number) => `${number > 0 ? "+" : ""}${written(number)}`;
  const words = `Difference ${signed(value)}`;
  if (!Number.isFinite(low)) return `${words}.`;
  const clear = low > 0 || high < 0;
  const verdict = clear ? "" : " It holds 0: these rows do not tell the trees apart.";
  return `${words}, interval ${signed(low)} to ${signed(high)}.${verdict}`;
}

/** The score in the bar, which follows the edits. */
function showLive(found) {
  const live = byId("live");
  live.hidden = false;
  const [own, other] = [found.edited, found.automatic].map(({ value }) => scoreWriter(found)(value));
  live.replaceChildren(
    h("span", { class: "muted" }, `${found.metric ?? "score"} `),
    h("b", {}, own),
    h("span", { class: "muted" }, ` automatic ${other}`),
  );
  live.classList.remove("stale");
}

const scoreLive = newestOnly(async (method) => {
  const asked = session.number;
  try {
    const found = await ask("score", { method });
    if (asked === session.number) showLive(found);
  } catch {
    if (asked === session.number) byId("live").hidden = true; // the tab tells why
  }
});

function followWithScore() {
  byId("live").classList.add("stale");
  clearTimeout(scoring.timer);
  const method = OPENED.validation_fraction ? "hold-out" : "cross-validation";
  if (shownTab.name === "score" || TREE.count < 2) return;
  if (method === "cross-validation" && TREE.cases[0] > LIVE_CASES) return;
  scoring.timer = setTimeout(() => scoreLive(method), LIVE_AFTER[method]);
}
