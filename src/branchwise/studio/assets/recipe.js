// A recipe: the algorithm, and those of its parameters that are not as usual.

/** A choice of the algorithm with a form of its parameters; `value()` is what is chosen. */
function recipeForm(choices, chosen, name = "Algorithm") {
  const control = h("select", {}, options(choices.map((one) => [one.name, one.words ?? one.name]), chosen));
  const form = { controls: new Map() };
  const body = h("div", { class: "folded" });
  const details = h("details", { class: "parameters" }, h("summary", {}, "Parameters"), body);
  const fill = () => {
    const own = parametersOf(control.value);
    form.controls = new Map(own.map((parameter) => [parameter, parameterControl(parameter)]));
    body.replaceChildren(...own.map((each) => parameterField(each, form.controls.get(each))));
    details.hidden = !own.length;
  };
  control.addEventListener("change", fill);
  fill();
  return {
    element: h("div", { class: "recipe" }, field(name, control), details),
    value: () => recipeValue(control.value, form.controls),
  };
}

function parametersOf(algorithm) {
  const all = OPENED.parameters ?? {};
  return (NUMBERS && all[`${algorithm} --regression`]) || all[algorithm] || [];
}

function parameterControl({ kind, choices, default: usual }) {
  const unset = ["", `as usual: ${usual}`];
  if (kind === "flag") return h("select", {}, options([unset, ["true", "yes"], ["false", "no"]], ""));
  if (kind === "choice") return h("select", {}, options([unset, ...choices.map((one) => [one, one])], ""));
  return h("input", { type: "text", autocomplete: "off", placeholder: usual });
}

function parameterField({ name, help }, control) {
  return h("div", {}, field(name, control), h("p", { class: "hint" }, help));
}

function recipeValue(algorithm, controls) {
  const given = algorithm ? { algorithm } : {};
  for (const [{ name, kind }, control] of controls) {
    const text = control.value.trim();
    if (!text) continue;
    if (kind === "flag") given[name] = text === "true";
    else if (kind === "choice" || Number.isNaN(Number(text))) given[name] = text;
    else given[name] = Number(text);
  }
  return given;
}
