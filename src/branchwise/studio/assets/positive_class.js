// The class that the user watches: its share of a node, and that as a multiple of all cases.

/** The position of the positive class; without one, of the last. */
function watchedClass() {
  const at = (OPENED.class_values ?? []).indexOf(OPENED.positive);
  return at < 0 ? DATA.classes.length - 1 : at;
}

/** The name of the positive class; null where there is none. */
function positiveName() {
  const known = !NUMBERS && (OPENED.class_values ?? []).includes(OPENED.positive);
  return known ? DATA.classes[watchedClass()] : null;
}

function positiveShare(node) {
  return classWeights(node)[watchedClass()] / TREE.weight[node];
}

/** How many times as frequent the positive class is at a node as among all cases. */
function liftOf(node) {
  const whole = positiveShare(0);
  return whole > 0 ? (positiveShare(node) / whole).toFixed(2) : "–";
}

function positiveWords(node) {
  return `${positiveName()}: ${percent(positiveShare(node), 1)}, lift ${liftOf(node)}`;
}
