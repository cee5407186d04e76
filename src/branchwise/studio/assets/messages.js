// Messages: what happened, said for all to see and hear; errors beside their controls.

/** Say what happened. */
function say(words) {
  byId("said").textContent = words;
}

/** A place for an error beside a control, which says it at once. */
function errorPlace() {
  return h("p", { class: "refused", role: "alert", hidden: true });
}

function showError(place, error) {
  place.hidden = !error;
  place.textContent = error ? error.message : "";
}

/** Do something that may be refused; its error is shown in a place. */
async function trying(place, action) {
  showError(place, null);
  try {
    return await action();
  } catch (error) {
    showError(place, error);
    return undefined;
  }
}

/** Only the newest of several questions counts: one is under way, one may wait. */
function newestOnly(question) {
  let waiting = null;
  let busy = false;
  return async function next(...args) {
    waiting = args;
    if (busy) return;
    busy = true;
    while (waiting) {
      const now = waiting;
      waiting = null;
      await question(...now);
    }
    busy = false;
  };
}

/** Give a text to the browser as a file to save. */
function download(name, content, type = "text/plain") {
  const address = URL.createObjectURL(new Blob([content], { type }));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/** A button that copies a text and says so. */
function copyButton(textOf) {
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(textOf());
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Not allowed here";
    }
    say(copy.textContent);
    setTimeout(() => (copy.textContent = "Copy"), 1600);
  });
  return copy;
}

/** A control with its name before it. */
function field(name, control, hint = null) {
  return h("label", { class: "field" }, h("span", {}, name, hint && h("small", {}, hint)), control);
}

function options(choices, chosen) {
  return choices.map(([value, words]) =>
    h("option", { value, selected: value === chosen }, words),
  );
}

function section(title, ...children) {
  return h("section", { class: "block" }, h("h3", {}, title), ...children);
}

/** A part that is made when it is opened for the first time. */
function folded(title, make) {
  const body = h("div", { class: "folded" });
  const details = h("details", { class: "block" }, h("summary", {}, title), body);
  details.addEventListener("toggle", () => {
    if (details.open && !body.firstChild) make(body);
  });
  return details;
}
