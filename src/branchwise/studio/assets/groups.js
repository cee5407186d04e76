// The values of a category in branches: dragged from one to another, moved by the number of
// the branch, merged and split.

const MOST_CHIPS = 60; // values of a branch that are shown

function groupEditor(path, candidate, spread) {
  const { column } = candidate;
  const preview = previewOf(path, column);
  const list = h("div", { class: "groups" });
  const counts = new Map(spread.values.map((value, at) => [value, spread.counts[at]]));
  const every = spread.values.filter((value) => weightOf(counts.get(value)) > 0);
  const suggested = candidate.groups?.length ? candidate.groups : every.map((value) => [value]);
  const editor = { column, counts, groups: suggested.map((group) => [...group]), list };
  editor.changed = (focus = null) => {
    editor.groups = editor.groups.filter((group) => group.length);
    list.replaceChildren(...editor.groups.map((group, at) => branchBox(editor, group, at)));
    list.append(newBranch(editor));
    if (focus !== null) chipOf(list, focus)?.focus();
    commit.textContent = `Split into ${counted(editor.groups.length, "branch", "branches")}`;
    commit.disabled = editor.groups.length < 2;
    if (editor.groups.length > 1) preview.show({ groups: editor.groups });
  };
  const set = (groups) => () => {
    editor.groups = groups.map((group) => [...group]);
    editor.changed();
  };
  const commit = button(
    "Split",
    () => splitBy(path, { column, groups: editor.groups }, preview.place, `Split on ${column} into ${editor.groups.length} branches.`),
    { class: "primary" },
  );
  const tools = h(
    "div",
    { class: "buttons" },
    button("As suggested", set(suggested)),
    button("One branch per value", set(every.map((value) => [value]))),
    !NUMBERS && button("Above and below average", set(aroundAverage(every, counts)), {
      title: `By the share of ${DATA.classes[watchedClass()]}`,
    }),
  );
  const hint = "Drag values between branches, or press the number of a branch (n: a new one).";
  editor.changed();
  return [muted(hint), tools, list, h("div", { class: "exact" }, commit), preview.element];
}

/** Two branches: values whose share of a class is above that of all, and the others. */
function aroundAverage(values, counts) {
  const label = watchedClass();
  const share = (each) => counts.get(each)[label] / weightOf(counts.get(each));
  const all = sum(values.map((each) => weightOf(counts.get(each)))) || 1;
  const average = sum(values.map((each) => counts.get(each)[label])) / all;
  const above = values.filter((each) => share(each) > average);
  return [above, values.filter((each) => !above.includes(each))];
}

function weightOf(counts) {
  return Array.isArray(counts) ? sum(counts) : counts ?? 0;
}

function chipOf(list, value) {
  return [...list.querySelectorAll(".chip")].find((each) => each.dataset.value === String(value));
}

/** Move a value to a branch; a branch that does not exist yet is made. */
function moveValue(editor, value, to) {
  const from = editor.groups.findIndex((group) => group.includes(value));
  if (from < 0 || from === to || to > editor.groups.length) return;
  editor.groups[from] = editor.groups[from].filter((other) => other !== value);
  if (to === editor.groups.length) editor.groups.push([]);
  editor.groups[to].push(value);
  editor.changed(value);
  say(`${value} is in branch ${editor.groups.findIndex((group) => group.includes(value)) + 1}.`);
}

function mergeBranches(editor, from, to) {
  editor.groups[to].push(...editor.groups[from]);
  const [first] = editor.groups[from];
  editor.groups.splice(from, 1);
  editor.changed(first);
  say(`Branches ${from + 1} and ${to + 1} are merged.`);
}

function branchBox(editor, group, at) {
  const total = sum(group.map((value) => weightOf(editor.counts.get(value))));
  const others = editor.groups.map((_, other) => other).filter((other) => other !== at);
  const merge = h(
    "select",
    { "aria-label": `Merge branch ${at + 1} with another`, class: "quiet" },
    h("option", { value: "" }, "Merge with …"),
    others.map((other) => h("option", { value: other }, `branch ${other + 1}`)),
  );
  merge.addEventListener("change", () => mergeBranches(editor, at, Number(merge.value)));
  const apart = () => {
    editor.groups.splice(at, 1, ...group.map((value) => [value]));
    editor.changed(group[0]);
    say(`Branch ${at + 1} is split into its values.`);
  };
  const chips = group.slice(0, MOST_CHIPS).map((value) => chip(editor, value, at));
  const more = group.length - chips.length;
  return h(
    "div",
    { class: "branch", role: "group", "aria-label": `Branch ${at + 1}`, "data-branch": at },
    h(
      "div",
      { class: "line" },
      h("b", {}, `Branch ${at + 1}`),
      h("span", { class: "muted" }, counted(total, "case")),
      others.length > 0 && merge,
      group.length > 1 && button("Split", apart, { class: "quiet", "aria-label": `Split branch ${at + 1} into its values` }),
    ),
    h("div", { class: "chips" }, chips, more > 0 && muted(`and ${counted(more, "value")} more`)),
  );
}

function newBranch(editor) {
  const words = "A new branch: drop a value here";
  return h("div", { class: "branch new", "data-branch": editor.groups.length }, muted(words));
}

function chip(editor, value, at) {
  const weights = editor.counts.get(value);
  const made = h(
    "button",
    {
      type: "button",
      class: "chip",
      "data-value": value,
      "aria-label": `${value}, ${counted(weightOf(weights), "case")}, in branch ${at + 1}; press a number to move it`,
    },
    h("span", {}, nameOnCard(String(value)), h("small", {}, ` ${cases(weightOf(weights))}`)),
    Array.isArray(weights) && !NUMBERS && weightsBar(weights),
  );
  made.addEventListener("keydown", (event) => {
    const to = event.key === "n" ? editor.groups.length : Number(event.key) - 1;
    if (withModifier(event) || !(to >= 0 && to <= editor.groups.length)) return;
    event.preventDefault();
    event.stopPropagation();
    moveValue(editor, value, to);
  });
  dragChip(made, (to) => moveValue(editor, value, to));
  return made;
}

/** Let a chip follow the pointer; dropped on a branch it belongs there. */
function dragChip(made, drop) {
  let start = null;
  const branchAt = (event) => {
    const under = document.elementsFromPoint(event.clientX, event.clientY);
    return under.map((each) => each.closest("[data-branch]")).find(Boolean);
  };
  made.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    start = { x: event.clientX, y: event.clientY };
    made.setPointerCapture(event.pointerId);
  });
  made.addEventListener("pointermove", (event) => {
    if (!start) return;
    const [x, y] = [event.clientX - start.x, event.clientY - start.y];
    if (!made.classList.contains("dragged") && Math.hypot(x, y) < 4) return;
    made.classList.add("dragged");
    made.style.transform = `translate(${x}px, ${y}px)`;
  });
  const end = (event) => {
    const dragged = made.classList.contains("dragged");
    const over = event.type === "pointerup" && dragged ? branchAt(event) : null;
    start = null;
    made.classList.remove("dragged");
    made.style.transform = "";
    if (over && made.closest(".groups")?.contains(over)) drop(Number(over.dataset.branch));
  };
  made.addEventListener("pointerup", end);
  made.addEventListener("pointercancel", end);
}
