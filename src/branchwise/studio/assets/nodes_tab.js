// All nodes as a table.

let nodeOrder = "leaves";

/** The orders of the table; by the share of the positive class if there is one. */
function nodeOrders() {
  const positive = positiveName();
  return [
    ["leaves", "leaves, most cases first"],
    ...(positive ? [["positive", `leaves, highest share of ${positive} first`]] : []),
    ["all", "all nodes, level by level"],
  ];
}

function sortedNodes() {
  const nodes = range(0, TREE.count).filter((node) => nodeOrder === "all" || isLeaf(node));
  if (nodeOrder === "all") return nodes;
  const first = nodeOrder === "positive" ? positiveShare : (node) => TREE.cases[node];
  return nodes.sort((a, b) => first(b) - first(a) || TREE.cases[b] - TREE.cases[a] || a - b);
}

function showNodes(panel) {
  if (!positiveName() && nodeOrder === "positive") nodeOrder = "leaves";
  const choice = h("select", {}, options(nodeOrders(), nodeOrder));
  choice.addEventListener("change", () => {
    nodeOrder = choice.value;
    showNodes(panel);
    panel.querySelector("select").focus();
  });
  const nodes = sortedNodes();
  const positive = positiveName();
  const shown = nodes.slice(0, 200);
  const rows = shown.map((node) =>
    tableRow(
      link(node, node ? branchOf(node) : "All cases"),
      cell(String(node)),
      cell(cases(TREE.cases[node])),
      wordCell(isLeaf(node) ? predictionOf(node) : `${columnOf(node).name}?`),
      positive && cell(percent(positiveShare(node), 1)),
      positive && cell(liftOf(node)),
    ),
  );
  const rest = nodes.length - shown.length;
  panel.replaceChildren(
    h("h2", {}, counted(TREE.count, "node")),
    field("Show", choice),
    table(
      ["branch", "node", "cases", "prediction", ...(positive ? [bdi(positive), "lift"] : [])],
      rows,
    ),
    rest > 0 ? muted(`and ${grouped(rest)} more, which search finds`) : "",
  );
}
