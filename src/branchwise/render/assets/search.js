// Search: columns, values, predictions and numbers of nodes.

const query = byId("query");
const hits = byId("hits");
let hit = -1;

/** Nodes whose column, branch or prediction holds the text, or which have its number. */
function find(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const numbered = /^#?(\d+)$/.exec(wanted);
  const found = numbered && Number(numbered[1]) < TREE.count ? [Number(numbered[1])] : [];
  if (wanted.startsWith("#")) return found;
  const named = DATA.columns.map((column) => column.name.toLowerCase().includes(wanted));
  const says = DATA.classes.map((label) => label.toLowerCase().includes(wanted));
  for (let node = 0; node < TREE.count; node++) {
    if (node === found[0]) continue;
    if (matches(node, wanted, named, says)) found.push(node);
  }
  return found;
}

function matches(node, wanted, named, says) {
  const column = TREE.column[node];
  if (column >= 0 && named[column]) return true;
  if (isLeaf(node)) {
    const said = NUMBERS ? DATA.prediction[node].toLowerCase().includes(wanted) : says[DATA.label[node]];
    if (said) return true;
  }
  return node > 0 && branchText(node).includes(wanted);
}

function branchText(node) {
  const condition = conditionOf(node);
  if (condition.op !== "in") return edgeOf(node).toLowerCase();
  const { values } = DATA.columns[condition.column];
  return condition.codes.map((code) => values[code]).join("\n").toLowerCase();
}

function search() {
  state.matches = find(query.value);
  state.matching = new Set(state.matches);
  hit = -1;
  tellHits();
  requestDraw();
}

function tellHits() {
  const { length } = state.matches;
  if (!query.value.trim()) hits.textContent = "";
  else if (!length) hits.textContent = "no match";
  else if (hit < 0) hits.textContent = `${grouped(length)} found`;
  else hits.textContent = `${grouped(hit + 1)} of ${grouped(length)}`;
  for (const id of ["previous", "next"]) byId(id).disabled = !length;
}

function goToMatch(step) {
  const { length } = state.matches;
  if (!length) return;
  hit = hit < 0 && step < 0 ? length - 1 : (hit + step + length) % length;
  tellHits();
  select(state.matches[hit]);
}

function listenForSearch() {
  query.addEventListener("input", search);
  query.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      goToMatch(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      query.value = "";
      search();
      focusCard();
    }
  });
  byId("previous").addEventListener("click", () => goToMatch(-1));
  byId("next").addEventListener("click", () => goToMatch(1));
}
