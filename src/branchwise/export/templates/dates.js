{% autoescape false %}
// How dates are read: the unit in microseconds, whether times have a time zone, and the
// patterns of texts.
const DATES = new Map({{ dates }});
{% if months %}
const MONTHS = new Map({{ months }});
{% endif %}

// Returns the units since 1970-01-01 of a text, or of a Date where times have a time
// zone; null if it is missing.
function dateOf(name, value, step, zoned, patterns) {
    if (typeof value === "string" && value.trim() === "") {
        return null;
    }
    const isDate = Object.prototype.toString.call(value) === "[object Date]";
    if (isDate && Number.isNaN(value.getTime())) {
        return null;
    }
    let moment = null;
    if (typeof value === "string") {
        moment = readDate(value, patterns);
    } else if (isDate) {
        moment = [value.getTime(), 0, true];
    }
    if (moment === null || moment[2] !== zoned) {
        throw new RangeError(`Column ${shown(name)} must be the text of a date or a time ` +
            `${zoned ? "with" : "without"} a time zone. Got ${shown(value)}.`);
    }
    return step === 1 ? moment[0] * 1000 + moment[1] : Math.floor(moment[0] / (step / 1000));
}

// Returns milliseconds since 1970-01-01, microseconds, and whether there is a time zone.
function readDate(text, patterns) {
    let found = null;
    for (const pattern of patterns) {
        found = found || new RegExp(`^(?:${pattern})$`).exec(text);
    }
    if (found === null) {
        return null;
    }
    const part = found.groups;
    let year = Number(part.year || part.short);
    if (part.year === undefined) {
        year += year >= 69 ? 1900 : 2000;
    }
{% if months %}
    const month = part.month ? Number(part.month) : MONTHS.get(part.name.toLowerCase().slice(0, 3));
{% else %}
    const month = Number(part.month);
{% endif %}
    const day = Number(part.day), minute = Number(part.minute || 0);
    let hour = Number(part.hour || 0);
    const second = Number(part.second || 0), fraction = (part.fraction || "").padEnd(6, "0");
    if (part.half !== undefined) {
        if (hour < 1 || hour > 12) {
            return null;
        }
        hour = hour % 12 + (part.half === "P" || part.half === "p" ? 12 : 0);
    }
    const moment = new Date(0);
    moment.setUTCFullYear(year, month - 1, day);
    if (year < 1 || moment.getUTCMonth() !== month - 1 || moment.getUTCDate() !== day ||
        hour > 23 || minute > 59 || second > 59 || /[1-9]/.test(fraction.slice(6))) {
        return null;
    }
    moment.setUTCHours(hour, minute, second, Number(fraction.slice(0, 3)));
    let ahead = 0;
    if (part.zone !== undefined && (part.zone[0] === "+" || part.zone[0] === "-")) {
        const digits = part.zone.slice(1).replace(":", "").padEnd(4, "0");
        ahead = (Number(digits.slice(0, 2)) * 60 + Number(digits.slice(2))) * 60000;
        ahead = part.zone[0] === "-" ? -ahead : ahead;
    }
    return [moment.getTime() - ahead, Number(fraction.slice(3, 6)), part.zone !== undefined];
}

{% if features %}
// What is derived from dates: the position of the date, what, the units of a day, and
// for ages the day on which they are.
const FEATURES = [
{% for feature in features %}
    {{ feature }}
{% endfor %}
];

// Returns the month, the weekday (1 is Monday), the age, ... of a date.
function featureOf(number, name, perDay, on) {
    if (Number.isNaN(number)) {
        return number;
    }
    const rest = ((number % perDay) + perDay) % perDay;
    const day = (number - rest) / perDay;
    const minutes = Math.floor(rest / (perDay / 1440));
    const when = new Date(day * 86400000);
    const then = new Date((on || 0) * 86400000);
    const month = when.getUTCMonth() + 1, inYear = month * 32 + when.getUTCDate();
    const later = inYear > (then.getUTCMonth() + 1) * 32 + then.getUTCDate();
    switch (name) {
    case "year": return when.getUTCFullYear();
    case "quarter": return Math.floor((month + 2) / 3);
    case "month": return month;
    case "day": return when.getUTCDate();
    case "weekday": return (when.getUTCDay() + 6) % 7 + 1;
    case "hour": return Math.floor(minutes / 60);
    case "minute": return minutes % 60;
    case "age": return on - day;
    default: return then.getUTCFullYear() - when.getUTCFullYear() - (later ? 1 : 0);
    }
}

{% endif %}
{% endautoescape %}
