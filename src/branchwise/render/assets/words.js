// Conditions in words, as branchwise.text.conditions writes them.

const SHOWN_VALUES = 8;
const LONG_LIST = 3;

/** The condition of a branch: { column, op } with codes or a threshold. */
function conditionOf(node) {
  const parent = TREE.parent[node];
  const column = TREE.column[parent];
  const codes = codesOf(node);
  if (!codes.length) return { column, op: "is missing" };
  if (DATA.columns[column].kind !== "numeric") return { column, op: "in", codes };
  if (codes.length > 1) return { column, op: "is known" };
  return { column, op: codes[0] === 0 ? "<=" : ">", threshold: TREE.threshold[parent] };
}

/** Ordered values that follow one another: { above, upTo }, where there is a bound. */
function orderedBounds({ column, codes }) {
  const { kind, values } = DATA.columns[column];
  if (kind !== "ordinal" || !(codes?.length > 1)) return null;
  if (!codes.every((code, at) => code === codes[0] + at)) return null;
  const end = codes[0] + codes.length;
  return { above: values[codes[0] - 1], upTo: end < values.length ? values[end - 1] : undefined };
}

/** The same without the column: "≤ m", "> m", "> s and ≤ l", "known". */
function boundWords({ above, upTo }, sign = "≤") {
  const bounds = [];
  if (above !== undefined) bounds.push(`> ${above}`);
  if (upTo !== undefined) bounds.push(`${sign} ${upTo}`);
  return bounds.join(" and ") || "known";
}

/** A condition in words; plain ones are those of Model.rules(). */
function phrase(condition, limit = SHOWN_VALUES, plain = false) {
  const { name, values } = DATA.columns[condition.column];
  const bounds = orderedBounds(condition);
  if (bounds) {
    const { above, upTo } = bounds;
    const sign = plain ? "<=" : "≤";
    if (above !== undefined && upTo !== undefined) return `${above} < ${name} ${sign} ${upTo}`;
    const words = boundWords(bounds, sign);
    return `${name} ${words === "known" ? "is known" : words}`;
  }
  if (condition.op === "in") {
    const { codes } = condition;
    if (codes.length === 1) return `${name} = ${values[codes[0]]}`;
    const rest = theRest(condition);
    if (rest) return `${name} not in {${listed(rest, limit)}}`;
    return `${name} in {${listed(condition, limit)}}`;
  }
  if (condition.threshold === undefined) return `${name} ${condition.op}`;
  const { op, value } = worded(condition);
  return `${name} ${plain ? op : (SIGNS[op] ?? op)} ${cellWords(condition.column, value)}`;
}

const SIGNS = { "<=": "≤", ">=": "≥" };

/** A bound of numbers as it is written: of whole numbers, more than 3 are at least 4. */
function worded({ column, op, threshold }) {
  const kind = DATA.columns[column].number_kind;
  if (!kind) return { op, value: threshold };
  const most = Math.floor(threshold);
  if (kind === "binary" && most === 0) return { op: "=", value: op === "<=" ? 0 : 1 };
  return op === "<=" ? { op, value: most } : { op: ">=", value: most + 1 };
}

/** The values that a long list leaves out, if these are few; else nothing. */
function theRest({ column, codes }) {
  const { values } = DATA.columns[column];
  const nOthers = values.length - codes.length;
  if (codes.length < LONG_LIST || 2 * nOthers > codes.length || !nOthers) return null;
  const inside = new Set(codes);
  return { column, codes: [...values.keys()].filter((code) => !inside.has(code)) };
}

function listed({ column, codes }, limit = SHOWN_VALUES) {
  const { values } = DATA.columns[column];
  const shown = codes.slice(0, limit).map((code) => item(values[code]));
  const more = codes.length - limit;
  if (more > 0) shown.push(`... (${grouped(more)} more)`);
  return shown.join(", ");
}

/** A value of a list, in quotes if it could be taken for several. */
function item(value) {
  if (!value.includes(",") || "'\"".includes(value[0])) return value;
  return value.includes("'") ? `"${value}"` : `'${value}'`;
}

/** What leads to a node, without the column, which the parent shows. */
function edgeOf(node, limit = SHOWN_VALUES) {
  const condition = conditionOf(node);
  const bounds = orderedBounds(condition);
  if (bounds) return boundWords(bounds);
  if (condition.op === "in") {
    const rest = theRest(condition);
    if (rest) return `not in {${listed(rest, limit)}}`;
    if (condition.codes.length > 1) return listed(condition, limit);
    return DATA.columns[condition.column].values[condition.codes[0]];
  }
  if (condition.threshold === undefined) return condition.op.replace("is ", "");
  const { op, value } = worded(condition);
  const word = cellWords(condition.column, value);
  return op === "=" ? word : `${SIGNS[op] ?? op} ${word}`;
}

function branchOf(node) {
  return phrase(conditionOf(node));
}

/** The conditions of a path, those on one column merged. */
function mergedConditions(node) {
  const merged = new Map();
  for (const step of wayTo(node).slice(1)) {
    const next = conditionOf(step);
    if (!merged.has(next.column)) merged.set(next.column, {});
    restrict(merged.get(next.column), next);
  }
  return [...merged].flatMap(([column, limits]) => boundsOf(column, limits));
}

function restrict(limits, next) {
  if (next.op === ">") limits.lower = Math.max(limits.lower ?? -Infinity, next.threshold);
  else if (next.op === "<=") limits.upper = Math.min(limits.upper ?? Infinity, next.threshold);
  else if (next.op === "in" && limits.codes) {
    const allowed = new Set(next.codes);
    limits.codes = limits.codes.filter((code) => allowed.has(code));
  } else if (next.op === "in") limits.codes = next.codes;
  else limits.other = next.op;
}

function boundsOf(column, limits) {
  const found = [];
  if (limits.lower !== undefined) found.push({ column, op: ">", threshold: limits.lower });
  if (limits.upper !== undefined) found.push({ column, op: "<=", threshold: limits.upper });
  const bounded = found.length > 0;
  if (limits.other === "is missing") found.push({ column, op: "is missing" });
  else if (limits.codes) found.push({ column, op: "in", codes: limits.codes });
  else if (limits.other && !bounded) found.push({ column, op: limits.other });
  return found;
}

/** The rule of a node, in the words of Model.rules(). */
function ruleOf(node) {
  const conclusion = `${predictionOf(node)} (${supportOf(node, amount)})`;
  const conditions = mergedConditions(node).map((c) => phrase(c, SHOWN_VALUES, true));
  if (!conditions.length) return `always ${conclusion}`;
  return `if ${conditions.join(" and ")} then ${conclusion}`;
}

/** Where a value goes that no branch names. */
function routeWords(node, to) {
  if (to === STOP) return `stop here and get this node’s prediction, ${predictionOf(node)}`;
  if (to === EVERY_BRANCH) {
    return `go down every branch, by the branches’ ${WEIGHTED ? "weight" : "cases"}`;
  }
  return `follow the branch “${edgeOf(TREE.firstChild[node] + to)}”`;
}
