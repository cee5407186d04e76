// The score of the edited tree against the automatic one.

const METHODS = [
  ["hold-out", "hold-out rows"],
  ["cross-validation", "repeated cross-validation"],
];
const scoring = { method: OPENED.validation_fraction ? "hold-out" : "cross-validation", timer: 0 };
const LIVE_AFTER = 500; // milliseconds after an edit

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
    const interval = has ? `${scoreWords(part.low)} to ${scoreWords(part.high)}` : "";
    return tableRow([name, scale], cell(h("b", {}, scoreWords(part.value))), cell(interval));
  };
  const rows = [row("edited tree", edited), row("automatic tree", automatic)];
  return [
    table([metric ?? "score", "score", "interval"], rows),
    difference && h("p", { class: "gain" }, differenceWords(difference)),
    found.misfits?.length && h("ul", { class: "notes" }, found.misfits.map((line) => h("li", {}, bdi(line)))),
  ].filter(Boolean);
}

function scoreWords(value) {
  return rounded(value, 3);
}

function differenceWords({ value, low, high }) {
  const sign = value > 0 ? "+" : "";
  const words = `Difference ${sign}${scoreWords(value)}`;
  if (!Number.isFinite(low)) return `${words}.`;
  const clear = low > 0 || high < 0;
  const verdict = clear ? "" : " The interval holds 0: the rows do not tell them apart.";
  return `${words}, interval ${scoreWords(low)} to ${scoreWords(high)}.${verdict}`;
}

/** The score in the bar, which follows the edits. */
function showLive({ edited, automatic, metric }) {
  const live = byId("live");
  live.hidden = false;
  const [own, other] = [edited, automatic].map(({ value }) => scoreWords(value));
  live.replaceChildren(
    h("span", { class: "muted" }, `${metric ?? "score"} `),
    h("b", {}, own),
    h("span", { class: "muted" }, ` automatic ${other}`),
  );
  live.classList.remove("stale");
}

function followWithScore() {
  byId("live").classList.add("stale");
  clearTimeout(scoring.timer);
  if (!OPENED.validation_fraction || shownTab.name === "score") return;
  scoring.timer = setTimeout(async () => {
    const asked = session.number;
    try {
      const found = await ask("score", { method: "hold-out" });
      if (asked === session.number) showLive(found);
    } catch {
      byId("live").hidden = true;
    }
  }, LIVE_AFTER);
}
