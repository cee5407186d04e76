// Numbers, counts and shares in words, as branchwise.text.words writes them.

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
