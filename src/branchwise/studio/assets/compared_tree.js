// One of two trees beside each other. With the scripts of the viewer it has a scope of its own:
// they are about one tree. `MARKS` says by path what differs there.

byId("name").textContent = NAME;
byId("summary").textContent = [
  counted(TREE.nLeaves, "leaf", "leaves"),
  `depth ${grouped(TREE.maxDepth)}`,
].join(" · ");
byId("cards").setAttribute("aria-label", `${NAME}: decision tree`);

/** Say what differs at a node, or above it. */
function showNode(node) {
  const marked = wayTo(node).findLast((each) => MARKS.has(TREE.paths[each]));
  const words = marked === undefined ? "" : MARKS.get(TREE.paths[marked]).join("; ");
  const above = marked === node ? "" : "Below a node that differs: ";
  byId("differs").textContent = words ? `${above}${words}` : "This node is the same in both trees.";
}

/** A card of a node that differs has a sign, and says why. */
function markDifference(card, node) {
  const words = MARKS.get(TREE.paths[node]);
  if (!words) return;
  const told = `differs: ${words.join("; ")}`;
  card.classList.add("differs");
  card.append(h("span", { class: "sign", title: told, "aria-hidden": "true" }, "≠"));
  card.setAttribute("aria-label", `${card.getAttribute("aria-label")}; ${told}`);
}

function onComparedKey(event) {
  if (withModifier(event)) return;
  onTreeKey(event);
  const zoom = { "+": 1.25, "=": 1.25, "-": 0.8 }[event.key];
  if (zoom) zoomBy(zoom);
  if (event.key === "0") fit(true);
}

function listenForCards() {
  host.addEventListener("click", (event) => {
    const item = event.target.closest(".card")?.dataset.item;
    if (item === undefined) return;
    if (Number(item) < 0 || event.target.closest(".knob")) openOrClose(Number(item), true);
    else select(Number(item), true);
  });
  host.addEventListener("keydown", onComparedKey);
  byId("path").addEventListener("click", (event) => {
    const to = event.target.closest("[data-goto]");
    if (to) select(Number(to.dataset.goto));
  });
  const zooms = { smaller: () => zoomBy(0.8), larger: () => zoomBy(1.25), scale: () => fit(true) };
  for (const [id, zoom] of Object.entries(zooms)) byId(id).addEventListener("click", zoom);
}

state.decorate = markDifference;
showFirst();
draw();
tellWhere(0);
showNode(0);
for (const listen of [listenForMoves, listenForSize, listenForCards]) listen();
return { goTo: (path) => select(nearestOf(path)) };

/** The node at a path, or the nearest one above that there is. */
function nearestOf(path) {
  let at = path;
  while (!TREE.numbers.has(at)) at = parentPath(at);
  return TREE.numbers.get(at);
}
