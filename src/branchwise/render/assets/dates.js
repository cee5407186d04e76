// Dates are numbers of a unit since 1970-01-01, as branchwise.data.date_format has them.

const MILLISECONDS = { day: 86400000, minute: 60000, second: 1000, microsecond: 0.001 };
const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const DATE_PATTERN =
  /^\s*(\d{4})-(\d{1,2})-(\d{1,2})(?:(?:[Tt]| +)(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)? ?(Z|[+-]\d{2}(?::?\d{2})?)?)?\s*$/;

/** A number of a column as it is written: that of a date as the date. */
function cellWords(column, value) {
  const { date, feature } = DATA.columns[column];
  if (date) return dateText(value, date);
  if (feature === "weekday") return WEEKDAYS[value - 1] ?? number(value);
  return exactInUnit(value, DATA.columns[column]);
}

/** The date, or the time, that contains a number of units. */
function dateText(value, { unit, zoned }) {
  const whole = Math.floor(value);
  const fine = unit === "microsecond";
  const milliseconds = fine ? Math.floor(whole / 1000) : whole * MILLISECONDS[unit];
  const moment = new Date(milliseconds);
  if (Number.isNaN(moment.getTime())) return `${whole} ${unit}s since 1970-01-01`;
  const text = moment.toISOString();
  const day = text.slice(0, 10);
  if (unit === "day") return day;
  const rest = fine ? whole - milliseconds * 1000 : 0;
  const fraction = moment.getUTCMilliseconds() * 1000 + rest;
  let time = text.slice(11, 16);
  if (moment.getUTCSeconds() || fraction) time += text.slice(16, 19);
  if (fraction) time += `.${String(fraction).padStart(6, "0")}`;
  return `${day} ${time}${zoned ? "Z" : ""}`;
}

/** The number of an ISO date; null if the text is none, or has a zone that it must not. */
function dateNumber(text, { unit, zoned }) {
  const found = DATE_PATTERN.exec(text);
  if (!found || Boolean(found[8]) !== Boolean(zoned)) return null;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((part) => Number(part ?? 0));
  const moment = new Date(0);
  moment.setUTCFullYear(year, month - 1, day);
  if (moment.getUTCMonth() !== month - 1 || moment.getUTCDate() !== day) return null;
  if (hour > 23 || minute > 59 || second > 59 || year < 1) return null;
  moment.setUTCHours(hour, minute, second);
  const micro = Number((found[7] ?? "").padEnd(6, "0"));
  const since = moment.getTime() - zoneOffset(found[8]);
  if (unit === "microsecond") return since * 1000 + micro;
  return Math.floor(since / MILLISECONDS[unit]);
}

function zoneOffset(zone) {
  if (!zone || zone === "Z") return 0;
  const digits = zone.slice(1).replace(":", "").padEnd(4, "0");
  const minutes = 60 * Number(digits.slice(0, 2)) + Number(digits.slice(2));
  return (zone[0] === "-" ? -1 : 1) * minutes * 60000;
}
