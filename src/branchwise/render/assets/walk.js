// Ways through a tree of arrays; whatever its arrays are read from.

function sum(numbers) {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
}

function childrenOf(node) {
  return range(TREE.firstChild[node], TREE.nChildren[node]);
}

function range(first, length) {
  return Array.from({ length }, (_, at) => first + at);
}

function isLeaf(node) {
  return TREE.nChildren[node] === 0;
}

/** The nodes from the root to a node. */
function wayTo(node) {
  const way = [];
  for (let at = node; at >= 0; at = TREE.parent[at]) way.push(at);
  return way.reverse();
}
