// The tabs of the panel. Those that cost time are made when they are shown, and again after
// an edit.

const TABS = [
  ["node", "Node", null],
  ["score", "Score", showScore],
  ["nodes", "Nodes", showNodes],
  ["case", "Case", showCase],
  ["export", "Export", showExports],
  ["script", "Script", showScript],
  ["session", "Session", showSession],
];
const shownTab = { name: "node" };

function buildTabs() {
  const tabs = byId("tabs");
  for (const [name, words] of TABS) {
    tabs.append(
      button(words, () => openTab(name), {
        role: "tab",
        id: `tab-${name}`,
        "aria-controls": `panel-${name}`,
      }),
    );
    byId("panel").append(
      h("section", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, tabindex: 0 }),
    );
  }
  tabs.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    const at = TABS.findIndex(([name]) => name === shownTab.name);
    const [next] = TABS[(at + step + TABS.length) % TABS.length];
    openTab(next);
    byId(`tab-${next}`).focus();
  });
  openTab("node");
}

function openTab(name) {
  shownTab.name = name;
  for (const [each] of TABS) {
    const chosen = each === name;
    byId(`tab-${each}`).setAttribute("aria-selected", String(chosen));
    byId(`tab-${each}`).tabIndex = chosen ? 0 : -1;
    byId(`panel-${each}`).hidden = !chosen;
  }
  refreshTab();
}

/** Make the shown tab anew: the tree has changed, or it was just opened. */
function refreshTab() {
  const [name, , show] = TABS.find(([each]) => each === shownTab.name);
  show?.(byId(`panel-${name}`));
}
