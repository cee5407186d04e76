// Conditions, predictions and numbers in words, as branchwise.text.conditions and words write them.

const SHOWN_VALUES = 8;
const LONG_LIST = 3;
const WITH_COMMAS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 2 });

/** A number as Python writes it: reading it back gives the very same one. */
function number(value) {
  const size = Math.abs(value);
  if (!size || (size >= 1e-4 && size < 1e16)) return String(value);
  return withExponent(value);
}

function withExponent(value) {
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

/** A number with so many digits, and all that it has before the point. */
function rounded(value, digits) {
  const size = Math.abs(value);
  if (!size) return "0";
  if (size < 1e-4 || size >= 1e15) return withExponent(Number(value.toPrecision(digits)));
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  return String(Number(value.toFixed(places)));
}

/** A number with its decimal point moved, digit by digit: 0.0439 by two is 4.39. */
function moved(text, places) {
  const [mantissa, power = "0"] = text.replace(/^-/, "").toLowerCase().split("e");
  const [whole, fraction = ""] = mantissa.split(".");
  const all = whole + fraction;
  const first = all.search(/[1-9]/);
  if (first < 0) return "0";
  const digits = all.slice(first).replace(/0+$/, "");
  const exponent = whole.length - 1 - first + Number(power) + places;
  const minus = text.startsWith("-") ? "-" : "";
  if (exponent < -4 || exponent > 15) {
    const rest = digits.length > 1 ? `.${digits.slice(1)}` : "";
    const size = String(Math.abs(exponent)).padStart(2, "0");
    return `${minus}${digits[0]}${rest}e${exponent < 0 ? "-" : "+"}${size}`;
  }
  if (exponent < 0) return `${minus}0.${"0".repeat(-exponent - 1)}${digits}`;
  const before = digits.slice(0, exponent + 1).padEnd(exponent + 1, "0");
  const after = digits.slice(exponent + 1);
  return `${minus}${before}${after ? `.${after}` : ""}`;
}

const PERCENT_POWER = 2;

/** A number of a column with its unit; shares in per cent, with the digits that decide. */
function exactInUnit(value, { unit, percent: shares }) {
  const written = shares ? moved(number(value), PERCENT_POWER) : number(value);
  return unit ? `${written} ${unit}` : written;
}

/** A predicted number, or a distance of such, with so many digits and the unit. */
function targetNumber(value, digits) {
  const written = rounded(DATA.percent ? value * 10 ** PERCENT_POWER : value, digits);
  return DATA.unit ? `${written} ${DATA.unit}` : written;
}

/** A weight: whole numbers as such, others with two decimals at most. */
function amount(weight) {
  if (weight && (weight < 0.01 || weight >= 1e15)) return rounded(weight, 3);
  // Halves go to the even digit, as Python rounds; only eighths are halves here.
  const half = Number.isInteger(weight * 8) && (weight * 100) % 1 === 0.5;
  const even = 2 * Math.round(weight * 50);
  return String(half ? even / 100 : Number(weight.toFixed(2)));
}

/** The same for reading: with commas. */
function cases(weight) {
  if (weight && (weight < 0.01 || weight >= 1e15)) return rounded(weight, 3);
  return WITH_COMMAS.format(Number(amount(weight)));
}

/** A whole number for reading. */
function grouped(count) {
  return WITH_COMMAS.format(count);
}

/** An impurity, a gain or a score: three decimals, more where it is small, fewer where large. */
function figure(value) {
  const size = Math.abs(value);
  if (!size) return "0";
  if (size < 1e-4 || size >= 1e6) return rounded(value, 4);
  return size < 0.1 || size >= 100 ? rounded(value, 3) : value.toFixed(3);
}

function percent(part, whole) {
  return `${Math.floor(1000 * (part / whole) + 0.5) / 10} %`;
}

/** A share in whole per cent; only all of it is 100 %, and only nothing 0 %. */
function wholePercent(share) {
  const whole = Math.round(100 * share);
  if (whole === 100 && share < 1) return "> 99 %";
  if (whole === 0 && share > 0) return "< 1 %";
  return `${whole} %`;
}

function counted(count, noun, plural = `${noun}s`) {
  return `${cases(count)} ${count === 1 ? noun : plural}`;
}

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
