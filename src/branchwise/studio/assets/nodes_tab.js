// All nodes as a table.

const NODE_ORDERS = [
  ["leaves", "leaves, most cases first"],
  ["all", "all nodes, level by level"],
];
let nodeOrder = "leaves";

function showNodes(panel) {
  const choice = h("select", {}, options(NODE_ORDERS, nodeOrder));
  choice.addEventListener("change", () => {
    nodeOrder = choice.value;
    showNodes(panel);
    panel.querySelector("select").focus();
  });
  const nodes = range(0, TREE.count).filter((node) => nodeOrder === "all" || isLeaf(node));
  if (nodeOrder === "leaves") nodes.sort((a, b) => TREE.cases[b] - TREE.cases[a] || a - b);
  const shown = nodes.slice(0, 200);
  const rows = shown.map((node) =>
    tableRow(
      link(node, node ? branchOf(node) : "All cases"),
      cell(String(node)),
      cell(cases(TREE.cases[node])),
      wordCell(isLeaf(node) ? predictionOf(node) : `${columnOf(node).name}?`),
    ),
  );
  const rest = nodes.length - shown.length;
  panel.replaceChildren(
    h("h2", {}, counted(TREE.count, "node")),
    field("Show", choice),
    table(["branch", "node", "cases", "prediction"], rows),
    rest > 0 ? muted(`and ${grouped(rest)} more, which search finds`) : "",
  );
}
