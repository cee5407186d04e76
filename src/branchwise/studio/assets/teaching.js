// Teaching: the class chooses a column, gains stay hidden until they are revealed.

function teachingSwitch() {
  const place = errorPlace();
  const { on } = session.teaching;
  const control = h("input", { type: "checkbox", checked: on });
  control.addEventListener("change", () =>
    trying(place, async () => {
      takeLesson(await ask("teaching", { on: control.checked }), control.checked);
      showSession(byId("panel-session"));
      say(control.checked ? "Gains are hidden until they are revealed." : "Gains are shown.");
    }),
  );
  const hint = "The class chooses the column of each split; gains and order are hidden until they are revealed.";
  return [
    h("label", { class: "check" }, control, " Teaching mode"),
    muted(hint),
    place,
    on ? h("p", {}, pointsWords()) : "",
  ];
}

/** Take what the server says of the lesson, and ask for candidates anew. */
function takeLesson(answer, on = session.teaching.on) {
  session.teaching = { ...session.teaching, ...(answer ?? {}), on };
  offered.clear();
  refreshNode();
}

function pointsWords() {
  const { points } = session.teaching;
  return `Points: class ${cases(points?.class ?? 0)}, machine ${cases(points?.machine ?? 0)}.`;
}

/** Whether the gains of a node are hidden. */
function isHidden(path) {
  return session.teaching.on && !(session.teaching.revealed ?? []).includes(path);
}

/** A round at a node: the class chooses a column, then the gains are revealed. */
function lesson(path, found) {
  const { guesses = {} } = session.teaching;
  if (!isHidden(path)) return verdict(guesses[path], found);
  const place = errorPlace();
  const usable = found.filter(({ children }) => children?.length).map(({ column }) => [column, column]);
  const control = h("select", {}, options(usable, guesses[path]));
  const send = (method, args, words) =>
    trying(place, async () => {
      takeLesson(await ask(method, { node: path, ...args }));
      say(words);
    });
  const guess = () => {
    const column = control.value;
    return send("guess", { column }, `The class chooses ${column}.`);
  };
  const reveal = () => send("reveal", {}, "The gains are revealed.");
  const chosen = guesses[path];
  return h(
    "div",
    { class: "lesson result" },
    h("div", { class: "asked" }, field("The class chooses", control), button("Choose", guess, { class: "quiet", id: "choose" })),
    chosen ? h("p", {}, "Chosen: ", h("b", {}, bdi(chosen))) : "",
    h("div", { class: "buttons" }, button("Reveal the gains", reveal, { id: "reveal", disabled: !chosen })),
    place,
    muted(pointsWords()),
  );
}

/** The choice of the class against that of the machine. */
function verdict(guess, found) {
  const usable = found.filter(({ children }) => children?.length);
  const [best] = usable;
  const place = usable.findIndex(({ column }) => column === guess) + 1;
  const words = best?.column === guess ? "the best column" : `column ${place} of ${usable.length}`;
  return h(
    "div",
    { class: "lesson result" },
    h("p", {}, "The class chose ", h("b", {}, bdi(guess ?? "nothing")), `, ${words}.`),
    h("p", {}, "The machine chooses ", h("b", {}, bdi(best?.column ?? "nothing")), "."),
    h("p", {}, pointsWords()),
  );
}
