// Predictions in words: the class or the number, its support and what decided.

function predictionOf(node) {
  return NUMBERS ? DATA.prediction[node] : DATA.classes[DATA.label[node]];
}

/** The support of a prediction: "9 of 14 cases, 64.3 %". */
function supportOf(node, write = cases) {
  const all = TREE.cases[node];
  const noun = all === 1 ? "case" : "cases";
  if (NUMBERS) {
    const spread = `standard deviation ${targetNumber(DATA.deviation[node], 3)}`;
    if (WEIGHTED) return `weighted mean of ${write(all)} ${noun}, weighted ${spread}`;
    return `${write(all)} ${noun}, ${spread}`;
  }
  const label = DATA.label[node];
  const right = classCases(node)?.[label];
  const known = right !== undefined;
  const found = known ? `${write(right)} of ${write(all)} cases, ${percent(right, all)}` : "";
  const parts = [found || `${write(all)} ${noun}`];
  if (WEIGHTED) parts.push(`${percent(classWeights(node)[label], TREE.weight[node])} of weight`);
  const reason = reasonOf(node);
  if (reason) parts.push(reason.split(":")[0]);
  return parts.join("; ");
}

/** What decided at a node whose class is not the usual one; else nothing. */
function reasonOf(node) {
  return DATA.reasons?.[node] ?? "";
}

/** What decided for a class of a fractional case that is not the most probable one. */
function costWords(probabilities, label) {
  const usual = firstBest(probabilities);
  if (!DATA.costs || label === usual) return "";
  const expected = [label, usual].map((said) =>
    sum(probabilities.map((probability, truth) => probability * DATA.costs[truth][said])),
  );
  const digits = [3, 6, 9].find((n) => rounded(expected[0], n) !== rounded(expected[1], n)) ?? 3;
  const [least, other] = expected.map((cost) => rounded(cost, digits));
  const name = DATA.classes[usual];
  const beside = least === other ? `, as for ${name}` : ` against ${other} for ${name}`;
  return `decided by costs: expected cost ${least}${beside}`;
}
