// The page in a frame of a notebook: messages go by way of the widget to Python.

const PATIENCE = 10000; // milliseconds until the page says that it waits
const asked = new Map(); // by id: what to do with the response
const view = Math.random().toString(36).slice(2); // all views get all responses
const silence = document.createElement("p");
let count = 0;

/** Send a message and promise its result; an error has the parameter that it is about. */
function ask(method, args = {}) {
  const id = `${view}-${(count += 1)}`;
  const late = method === "score" ? 0 : setTimeout(() => (silence.hidden = false), PATIENCE);
  window.parent.postMessage({ id, method, args }, "*");
  return new Promise((resolve, reject) => asked.set(id, { resolve, reject, late }));
}

function receive({ id, result, error }) {
  const { resolve, reject, late } = asked.get(id);
  asked.delete(id);
  clearTimeout(late);
  silence.hidden = true;
  if (error) reject(Object.assign(new Error(error.message), { parameter: error.parameter }));
  else resolve(result);
}

window.addEventListener("message", ({ source, data }) => {
  if (source !== window.parent) return;
  if (asked.has(data.id)) receive(data);
  else if ("changed" in data) shown.then(({ follow }) => follow(data.changed));
});
const shown = mount(document.body, ask);
silence.hidden = true;
silence.className = "silence";
silence.setAttribute("role", "status");
silence.textContent = "Python does not respond: it is busy, or was started anew; then run the cell again.";
document.body.append(silence);
