// Which rules hold for a case that is typed in: filled in by ensemble/reading/case_inputs.py.
(() => {
  "use strict";
  const form = document.getElementById("case-form");
  if (!form) return;
  const model = JSON.parse(form.dataset.model);
  const result = document.getElementById("case-result");
  const listed = document.querySelectorAll("#rules ol > li");
  form.hidden = false;

  // A column's value: a position in its list, a number, the text of a date, or null.
  const valueOf = (column, at) => {
    const text = form.elements[`column-${at}`].value.trim();
    if (text === "") return null;
    if (column.kind === "date") return text.replace(" ", "T");
    const number = Number(text);
    return Number.isFinite(number) ? number : null;
  };
  const holds = (condition, value) => {
    if (value === null) return false;
    if (condition.values) return condition.values.includes(value);
    if (condition.from !== undefined && !(value >= condition.from)) return false;
    if (condition.before !== undefined && !(value < condition.before)) return false;
    if (condition.above !== undefined && !(value > condition.above)) return false;
    return condition.most === undefined || value <= condition.most;
  };
  const element = (name, text, kind) => {
    const made = document.createElement(name);
    made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const percent = (share) => `${(100 * share).toFixed(share > 0.0995 && share < 0.9995 ? 1 : 2)} %`;

  const show = () => {
    const values = model.columns.map(valueOf);
    const scores = model.initial.slice();
    const held = [];
    model.rules.forEach((rule, at) => {
      const own = rule.conditions.every((one) => holds(one, values[one.column]));
      if (listed[at]) listed[at].classList.toggle("holds", own);
      if (!own) return;
      held.push(at);
      scores[rule.label] += rule.vote;
    });
    const best = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - best));
    const total = powers.reduce((sum, power) => sum + power, 0);
    const winner = scores.findIndex((score) => score >= best - 1e-9);
    result.replaceChildren();
    const told = element("p", "Prediction: ");
    told.append(element("b", model.classes[winner]));
    told.append(` (${percent(powers[winner] / total)}). `);
    const noun = model.rules.length === 1 ? "rule" : "rules";
    told.append(held.length
      ? `Of ${model.rules.length} ${noun}, ${held.length} hold${held.length === 1 ? "s" : ""}; above they are marked.`
      : `None of ${model.rules.length} ${noun} holds.`);
    result.append(told);
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    ["class", "before", "votes", "score", "probability"].forEach((name, at) =>
      head.append(element("th", name, at ? "" : "words")));
    const body = table.createTBody();
    model.classes.forEach((label, at) => {
      const line = body.insertRow();
      line.append(element("th", label, "words"));
      const votes = held.filter((rule) => model.rules[rule].label === at);
      const added = votes.map((rule) => `${model.rules[rule].vote.toFixed(2)} (${rule + 1})`);
      line.append(element("td", model.initial[at].toFixed(2)));
      line.append(element("td", added.join(" + ") || "0", "words"));
      line.append(element("td", scores[at].toFixed(2)));
      line.append(element("td", percent(powers[at] / total)));
    });
    const scroll = element("div", "", "scroll");
    scroll.append(table);
    result.append(scroll);
    result.append(element("p", "Votes with the numbers of their rules.", "caption"));
  };
  form.addEventListener("input", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
})();
