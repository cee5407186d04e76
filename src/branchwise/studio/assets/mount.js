// The studio in an element: studio/page.py puts its HTML and its scripts in here.

/** Show the studio. `ask(method, args)` sends a message and promises its result. Returns
 * `follow(number)`, for a host whose session can change elsewhere, too. */
export async function mount(element, ask) {
  element.innerHTML = "{{ skeleton }}"; // ours: nothing of a table is in it
  const OPENED = await ask("state");
  "{{ scripts }}";
  return { follow };
}
