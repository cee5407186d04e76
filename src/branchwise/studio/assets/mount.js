// The studio in an element: studio/page.py puts its HTML and its scripts in here.

/** Show the studio. `ask(method, args)` sends a message and promises its result. Returns
 * `follow(number)`, for a host whose session can change elsewhere, too. */
export async function mount(element, ask) {
  element.innerHTML = "{{ skeleton }}"; // ours: nothing of a table is in it
  const OPENED = await ask("state");
  "{{ scripts }}";
  return { follow };
}

/** Draw a tree beside another one, in a part of the page of its own: names of elements and of
 * functions are those of the viewer, once for each tree. */
function comparedTree(element, style, OPENED, NAME, MARKS) {
  const part = element.attachShadow({ mode: "open" });
  part.adoptedStyleSheets = [style];
  part.innerHTML = "{{ compared }}"; // ours: nothing of a table is in it
  const document = {
    documentElement: window.document.documentElement,
    hasFocus: () => window.document.hasFocus(),
    getElementById: (id) => part.getElementById(id),
    createElement: (tag) => window.document.createElement(tag),
    createElementNS: (space, tag) => window.document.createElementNS(space, tag),
  };
  "{{ compared scripts }}";
}
