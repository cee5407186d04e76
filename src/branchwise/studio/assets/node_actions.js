// What can be done with the selected node.

/** The buttons of a node, and the choices that few need. */
function actionsOf(node, record) {
  const place = errorPlace();
  const { path, locked } = record;
  const act = (action, words) => () => apply({ node: path, ...action }, place, words);
  const inner = !isLeaf(node);
  const where = inner ? "every leaf below this node" : "this leaf";
  const keys = [
    button("Grow one level", () => growLeaves(path, { levels: 1 }, place), {
      title: `Split ${where} by its best candidate (g)`,
      id: "grow-level",
    }),
    button("Grow the rest", () => growLeaves(path, {}, place), {
      title: `Grow ${where} as far as the recipe goes (Shift+G)`,
      id: "grow-all",
    }),
    inner &&
      button("Regrow", act({ do: "grow" }, "Grown anew."), {
        title: "Replace what is below by automatic growth; locked parts stay",
        id: "regrow",
      }),
    button("Prune", act({ do: "prune" }, "Pruned to a leaf."), {
      title: "Make this node a leaf (Delete)",
      id: "prune",
      disabled: !inner,
    }),
    button(
      locked ? "Unlock" : "Lock",
      act({ do: locked ? "unlock" : "lock" }, locked ? "Unlocked." : "Locked."),
      { title: "Keep this part when growing and refitting (l)", id: "lock" },
    ),
  ];
  return h(
    "div",
    { class: "actions" },
    h("div", { class: "buttons", role: "toolbar", "aria-label": "Change this node" }, keys),
    place,
    folded("Recipe, prediction, missing values, note", (body) => moreActions(body, node, record)),
  );
}

/** Grow the leaves at and below a node in one step; splits that there are stay. */
function growLeaves(path, how, place) {
  const able = TREE.paths.some((each, node) => isBelow(each, path) && canGrow(node));
  if (!able) {
    say("No leaf here can grow: each has one class only, or is locked.");
    return undefined;
  }
  const leaves = !isLeaf(TREE.numbers.get(path));
  return trying(place, async () => {
    const before = TREE.count;
    const action = { do: "grow", node: path, ...how, ...(leaves && { leaves }) };
    takeAnswer(await ask("apply", { action }), null);
    say(`${counted(TREE.count - before, "new node")}.`);
  });
}

/** Whether a node is a leaf with something to tell apart, and not locked. */
function canGrow(node) {
  if (!isLeaf(node) || wayTo(node).some((each) => TREE.records[each].locked)) return false;
  if (NUMBERS) return DATA.deviation[node] > 0;
  return classWeights(node).filter((weight) => weight > 0).length > 1;
}

function moreActions(body, node, record) {
  body.append(
    growWith(record),
    NUMBERS ? setNumber(node, record) : relabel(record),
    isLeaf(node) ? "" : missingRoute(node, record),
    noteOf(record),
  );
}

/** A control with a button beside it, and the place of its error. */
function asked(name, control, verb, action) {
  const place = errorPlace();
  const run = () => action(place);
  const form = h(
    "form",
    { class: "asked", onsubmit: (event) => (event.preventDefault(), run()) },
    field(name, control),
    h("button", { type: "submit", class: "quiet" }, verb),
  );
  return h("div", {}, form, place);
}

function growWith({ path }) {
  const place = errorPlace();
  const form = recipeForm(OPENED.recipes ?? [], algorithmName(), "Grow with");
  const grow = () => {
    const recipe = form.value();
    return apply({ do: "grow", node: path, recipe }, place, `Grown with ${recipe.algorithm}.`);
  };
  const run = (event) => (event.preventDefault(), grow());
  return h(
    "form",
    { class: "asked", onsubmit: run },
    form.element,
    h("button", { type: "submit", class: "quiet" }, "Grow"),
    place,
  );
}

/** The algorithm of the session as the choice of recipes calls it. */
function algorithmName() {
  const { recipes = [], recipe, algorithm } = OPENED;
  const known = [recipe?.algorithm, algorithm];
  return recipes.find(({ name, words }) => known.includes(words) || known.includes(name))?.name;
}

function relabel({ path, prediction, label }) {
  const named = DATA.classes.map((name, at) => [String(at), name]);
  const control = h("select", {}, options(named, String(label)));
  const classes = OPENED.class_values ?? DATA.classes;
  return asked("Prediction", control, "Relabel", (place) => {
    const chosen = classes[Number(control.value)];
    const words = `The prediction was ${prediction} and is now ${chosen}.`;
    return apply({ do: "relabel", node: path, prediction: chosen }, place, words);
  });
}

function setNumber(node, { path, prediction }) {
  const control = h("input", { type: "number", step: "any", required: true });
  control.value = String(DATA.mean[node]);
  return asked("Prediction", control, "Set", (place) => {
    const words = `The prediction was ${prediction} and is now ${control.value}.`;
    return apply({ do: "relabel", node: path, prediction: control.valueAsNumber }, place, words);
  });
}

function missingRoute(node, { path, missing_to: now }) {
  const choices = [
    ["largest", "to the largest branch"],
    ["every", "down every branch, by weight"],
    ["stop", "stop here"],
    ...childrenOf(node).map((child, at) => [String(at), `to the branch ${edgeOf(child)}`]),
  ];
  const control = h("select", {}, options(choices, String(now)));
  const route = () => (/^\d+$/.test(control.value) ? Number(control.value) : control.value);
  return asked("Missing values", control, "Set", (place) =>
    apply({ do: "set_missing", node: path, to: route() }, place, "Missing values go there now."),
  );
}

function noteOf({ path, note }) {
  const control = h("textarea", { rows: 2 });
  control.value = note ?? "";
  return asked("Note", control, "Keep", (place) =>
    apply({ do: "note", node: path, text: control.value }, place, "The note is kept."),
  );
}
