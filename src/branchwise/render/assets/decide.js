// What the model answers to a case: the same arithmetic in the same order.
//
// A row has one cell for each column: null for a missing value, a number for numeric
// columns, else the position of the value among those of the column; -1 is a value
// that training did not have.

const UNSEEN = -1;
const TIE = 1e-9; // amounts this close are equal, and the first wins

/** The branch that a row takes at a node, or STOP or EVERY_BRANCH. */
function branchTaken(node, row) {
  const column = TREE.column[node];
  if (column < 0) return STOP;
  const cell = row[column];
  if (cell === null) return standIn(node, row) ?? TREE.missingTo[node];
  const numeric = DATA.columns[column].kind === "numeric";
  if (!numeric && cell === UNSEEN) return TREE.unseenTo[node];
  const code = numeric ? Number(cell > TREE.cut[node]) : cell;
  for (let branch = 0; branch < TREE.nChildren[node]; branch++) {
    const codes = DATA.codes[TREE.firstChild[node] + branch];
    if (codes === code || (typeof codes !== "number" && codes.includes(code))) {
      return branch;
    }
  }
  return STOP;
}

/** The branch that the first surrogate with an answer names. */
function standIn(node, row) {
  for (const surrogate of DATA.surrogates[node] ?? []) {
    const cell = row[surrogate.column];
    if (cell === null) continue;
    const branch = surrogate.branches.findIndex((met) => meets(cell, met));
    if (branch >= 0) return branch;
  }
  return undefined;
}

function meets(cell, { op, cut, codes }) {
  if (op === "<=") return cell <= cut;
  if (op === ">") return cell > cut;
  return codes.includes(cell);
}

/** Where a row arrives: nodes with shares, in the order of the nodes. */
function arrivalsOf(row) {
  const arrived = [];
  let open = [{ node: 0, share: 1 }];
  while (open.length) {
    const further = [];
    for (const part of open) {
      const branch = branchTaken(part.node, row);
      if (branch === STOP) arrived.push(part);
      else if (branch === EVERY_BRANCH) for (const piece of divided(part)) further.push(piece);
      else further.push({ node: TREE.firstChild[part.node] + branch, share: part.share });
    }
    open = further;
  }
  return arrived.sort((one, other) => one.node - other.node);
}

function divided({ node, share }) {
  const children = childrenOf(node);
  const whole = sum(children.map((child) => TREE.weight[child]));
  return children.map((child) => ({
    node: child,
    share: share * (TREE.weight[child] / whole),
  }));
}

/** Why the model would refuse a row, or null. */
function refusal(row) {
  for (const [at, column] of DATA.columns.entries()) {
    if (!column.used) continue;
    if (DATA.missing === "error" && row[at] === null) {
      return `This model takes no missing values: give “${column.name}” a value.`;
    }
    if (DATA.unseen === "error" && column.kind !== "numeric" && row[at] === UNSEEN) {
      return `This model takes no other values: choose one for “${column.name}”.`;
    }
  }
  return null;
}

/** Answer a row: { arrivals, chances, label } or { arrivals, number }. */
function decide(row) {
  const arrivals = arrivalsOf(row);
  if (NUMBERS) return { arrivals, number: expected(arrivals) };
  const [{ node }] = arrivals;
  if (arrivals.length === 1) {
    return { arrivals, chances: classChances(node), label: DATA.label[node] };
  }
  const chances = new Array(DATA.classes.length).fill(0);
  for (const arrival of arrivals) {
    const own = classChances(arrival.node);
    for (let at = 0; at < own.length; at++) chances[at] += own[at] * arrival.share;
  }
  const label = DATA.costs ? cheapest(chances, DATA.costs) : firstBest(chances);
  return { arrivals, chances, label };
}

function expected(arrivals) {
  if (arrivals.length === 1) return DATA.mean[arrivals[0].node];
  let mean = 0;
  for (const { node, share } of arrivals) mean += DATA.mean[node] * share;
  return mean;
}

/** The first of those that are nearly the best. */
function firstBest(scores) {
  let top = -Infinity;
  for (const score of scores) top = Math.max(top, score);
  const least = top - Math.abs(top) * TIE;
  return scores.findIndex((score) => score >= least);
}

/** The answer that costs least; a row of costs is a true class. */
function cheapest(chances, costs) {
  const price = new Array(costs[0].length).fill(0);
  chances.forEach((chance, truth) => {
    costs[truth].forEach((cost, said) => {
      price[said] += chance * cost;
    });
  });
  return firstBest(price.map((amount) => -amount));
}

/** A row that leads to a node: for each column a value that its way allows. */
function exampleOf(node) {
  const row = DATA.columns.map(() => null);
  for (const condition of mergedConditions(node)) {
    const { column, op, cut, codes } = condition;
    if (op === "in") row[column] = codes[0] ?? null;
    else if (op === "is known") row[column] = 0;
    else if (op === ">") row[column] = beyond(cut);
    else if (op === "<=") row[column] = upTo(cut, row[column]);
  }
  return row;
}

function beyond(cut) {
  const next = Math.floor(cut) + 1;
  return next > cut ? next : cut * (cut > 0 ? 2 : 0.5);
}

/** A number up to a cut, and above another if there is one. */
function upTo(cut, wanted) {
  if (wanted === null || wanted <= cut) return wanted ?? Math.min(cut, Math.floor(cut));
  return cut;
}
