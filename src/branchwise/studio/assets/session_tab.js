// The session: its history, saving, comparing, teaching, and another table.

function showSession(panel) {
  const place = errorPlace();
  panel.replaceChildren(
    h("h2", {}, "Session"),
    h(
      "div",
      { class: "buttons" },
      button("Save the session", () => saveSession(place)),
      OPENED.table && button("Another table", () => anotherTable()),
    ),
    place,
    section("History", historyList()),
    OPENED.table ? section("Compare", ...comparison()) : "",
    section("Teaching", ...teachingSwitch()),
  );
}

function historyEntries() {
  const given = session.history;
  return Array.isArray(given) ? given : (given.entries ?? []);
}

/** The steps of the session; the one that the tree is at is marked, each can be gone to. */
function historyList() {
  const entries = historyEntries();
  if (!entries.length) return muted("No step yet.");
  const items = entries.map((entry, at) => {
    const words = entry.text ?? entry.words;
    const current = entry.current ?? entry.number === session.history.at;
    const from = entry.parent !== null && entry.parent !== undefined && entry.parent !== entries[at - 1]?.number && at > 0
      ? ` (from step ${entry.parent})`
      : "";
    const go = button([bdi(words), from], () => goTo(entry.number), {
      class: "step",
      "aria-current": current ? "step" : undefined,
    });
    return h("li", { value: entry.number }, go);
  });
  return h("ol", { class: "history" }, items);
}

async function goTo(number) {
  await step("goto", `At step ${number}.`, { number });
  byId("panel-session").querySelector("[aria-current]")?.focus();
}

function saveSession(place) {
  return trying(place, async () => {
    const found = await ask("save");
    const content = found.content ?? found;
    download(found.name ?? "session.actions.json", content, "application/json");
    say("The session is saved.");
  });
}

function anotherTable() {
  shownScreen("setup");
  showSetup(OPENED.table ?? null);
}

/** Compare with a session that was saved. */
function comparison() {
  const place = errorPlace();
  const result = h("div", { "aria-live": "polite" });
  const file = h("input", { type: "file", accept: ".json" });
  file.addEventListener("change", () =>
    trying(place, async () => {
      if (!file.files.length) return;
      const found = await ask("diff", { other: await file.files[0].text() });
      result.replaceChildren(
        h("div", { class: "buttons" }, button("Show both trees", () => showSideBySide(found), { id: "both-trees" })),
        textBox(found.words, "Differences"),
      );
    }),
  );
  return [field("Another session of this table", file), place, result];
}
