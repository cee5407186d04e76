{#- Filled in by export/scripts.py, which writes values so that the language reads the
    same and nothing in them ends a comment or a string. -#}
{% autoescape false %}
{% macro best(costs, name="bestOf") %}
// Returns the first class that is as good as the best, up to rounding.
function {{ name }}(chances) {
{% if costs %}
    const scores = CLASSES.map((label, answer) => {
        let price = 0;
        chances.forEach((chance, code) => {
            price += chance * COSTS[code][answer];
        });
        return -price;
    });
{% else %}
    const scores = chances;
{% endif %}
    let best = scores[0];
    for (const score of scores) {
        best = score > best ? score : best;
    }
    const least = best - Math.abs(best) * 1e-9;
    return scores.findIndex((score) => score >= least);
}
{% endmacro %}
// {{ about }}, written by branchwise.
//
{% if is_regression %}
// {{ name }}.predict(row) returns a number.
{% else %}
// {{ name }}.predict(row) returns a class, {{ name }}.predictProba(row) the chance of each of
// {{ name }}.CLASSES.
{% endif %}
// A row is an object by column name; null, undefined, NaN and absent properties are
// missing values. {% if dates %}Dates are texts, as in the training table or 2024-03-05. {% endif %}{% if formats %}Texts are numbers where they are written as in the training table. {% endif %}A RangeError tells which column has a value that the tree cannot
// take. In Node.js: const {{ name }} = require("./this_file.js"). In a page this file is a
// script, and {{ name }} a global variable.
var {{ name }} = (function () {
"use strict";


const CLASSES = Object.freeze({{ classes }});
const COLUMNS = Object.freeze({{ columns }});
const OTHER = {};  // stands for values that training did not have
{% for line in tables %}
{{ line }}
{% endfor %}

{% for line in functions %}
{{ line }}
{% endfor %}
// What every node answers.
const ANSWERS = [
{% for node in nodes %}
    {{ node }},  // {{ loop.index0 }}
{% endfor %}
];
{% if (divides or n_trees) and costs %}
// What it costs to answer (column) where something is true (row).
const COSTS = {{ costs }};
{% endif %}
// The types of the columns, and the values that training had.
const TYPES = {{ types }};
const VALUES = [
{% for values in known %}
    {{ values }},
{% endfor %}
];
{% if formats %}
// How numbers are written: a pattern, and the power of ten of its unit.
const FORMATS = {{ formats }};
// Texts that are missing numbers.
const MISSING = {{ na_values }};
// Characters that are written for others.
const ALIKE = new Map({{ alike }});

// Returns the number that a text is, such as 1.234,56 or (500); null if it is missing.
function written(name, text, pattern, power) {
    if (MISSING.includes(text)) {
        return null;
    }
    const plain = Array.from(text, (c) => ALIKE.has(c) ? ALIKE.get(c) : c).join("");
    const found = new RegExp(`^(?:${pattern})$`).exec(plain.trim());
    const parts = Array.from(found || [], (part) => part || "");
    const [all, begin, sign, before, inner, whole, fraction, exponent] = parts;
    const [minus, unit, last, end] = parts.slice(8);
    const signs = begin + sign + inner + minus + last;
    const digits = found ? whole.replace(/[^0-9]/g, "") : "";
    if (!found || whole + fraction === "" || signs.length > 1 ||
        (begin === "") !== (end === "") || (before !== "" && unit !== "") ||
        (digits !== whole && digits[0] === "0")) {
        throw new RangeError(`Column ${shown(name)} must be a number written as in ` +
            `training. Got ${shown(text)}.`);
    }
    const scale = (exponent === "" ? 0 : Number(exponent)) + power;
    const number = Number(`${digits || 0}.${fraction || 0}e${scale}`);
    return signs === "-" || signs === "(" ? -number : number;
}
{% endif %}
{% if dates %}
{% include "export/templates/dates.js" %}
{% endif %}

// Returns the values that the tree looks at: a number, a known value, or else.
function read(row) {
    const cells = [];
    for (let i = 0; i < COLUMNS.length; i++) {
        const name = COLUMNS[i], type = TYPES[i], values = VALUES[i];
        let value = null;
        if (Object.prototype.hasOwnProperty.call(row, name)) {
            value = row[name];
        }
{% if formats %}
        if (FORMATS[i] !== null && typeof value === "string") {
            value = written(name, value, ...FORMATS[i]);
        }
{% endif %}
{% if dates %}
        if (DATES.has(name) && value !== null && value !== undefined &&
            !Number.isNaN(value)) {
            value = dateOf(name, value, ...DATES.get(name));
        }
{% endif %}
        if (value === null || value === undefined || Number.isNaN(value)) {
{% if rejects_missing %}
            throw new RangeError(
                `Column ${shown(name)} is missing, which the tree refuses.`);
{% else %}
            cells.push(values === null ? NaN : null);
            continue;
{% endif %}
        }
        if (type !== null && typeof value !== type) {
            throw new RangeError(`Column ${shown(name)} must be a ${type}. Got a ` +
                `${typeof value}.`);
        }
        if (type === "number" && !Number.isFinite(value)) {
            throw new RangeError(`Column ${shown(name)} must be a finite number.`);
        }
        if (values !== null && !values.has(value)) {
{% if rejects_unseen %}
            throw new RangeError(`Column ${shown(name)} has the value ` +
                `${shown(value)}, which training did not have.`);
{% else %}
            value = OTHER;
{% endif %}
        }
        cells.push(value);
    }
{% if features %}
    return cells.concat(FEATURES.map(([i, ...how]) => featureOf(cells[i], ...how)));
{% else %}
    return cells;
{% endif %}
}

function shown(value) {
    return JSON.stringify(value);
}

{% if pieces %}
const PARTS = {{ pieces }};

{% endif %}
{% if divides %}
// Returns the nodes where the parts of a case end, in order, with their shares.
function arrive(cells{{ ", tree" if n_trees }}) {
    const ends = [], todo = [];
    {{ "PARTS[tree]" if n_trees else "part_0" }}(cells, 1, todo);
    while (todo.length > 0) {
        const next = todo.pop();
        if (next[0] >= 0) {
            ends.push(next);
        } else {
            PARTS[-next[0]](cells, next[1], todo);
        }
    }
    return ends.sort((a, b) => a[0] - b[0]);
}

{% if has_numbers %}
{% if n_trees %}
// Returns the number that a tree expects.
function predicted(cells, tree) {
    const ends = arrive(cells, tree);
{% else %}
function predict(row) {
    const ends = arrive(read(row));
{% endif %}
    if (ends.length === 1) {
        return ANSWERS[ends[0][0]];
    }
    let number = 0;
    for (const [node, share] of ends) {
        number += ANSWERS[node] * share;
    }
    return number;
}

{% else %}
function chancesOf(ends) {
    const chances = new Array(CLASSES.length).fill(0);
    for (const [node, share] of ends) {
        ANSWERS[node][1].forEach((chance, code) => {
            chances[code] += chance * share;
        });
    }
    return chances;
}

{{ best(costs) }}

{% if n_trees %}
// Returns the {{ "vote" if votes else "chances" }} of a tree.
function predicted(cells, tree) {
    const ends = arrive(cells, tree);
{% if votes %}
    if (ends.length === 1) {
        return voteOf(CLASSES.indexOf(ANSWERS[ends[0][0]][0]));
    }
    return voteOf(bestOf(chancesOf(ends)));
{% else %}
    if (ends.length === 1) {
        return ANSWERS[ends[0][0]][1];
    }
    return chancesOf(ends);
{% endif %}
}

{% else %}
function predict(row) {
    const ends = arrive(read(row));
    if (ends.length === 1) {
        return ANSWERS[ends[0][0]][0];
    }
    return CLASSES[bestOf(chancesOf(ends))];
}

function predictProba(row) {
    const ends = arrive(read(row));
    if (ends.length === 1) {
        return ANSWERS[ends[0][0]][1].slice();
    }
    return chancesOf(ends);
}

{% endif %}
{% endif %}
{% else %}
// Returns the node where a case ends.
function arrive(cells{{ ", tree" if n_trees }}) {
    let to = {{ "PARTS[tree]" if n_trees else "part_0" }}(cells);
{% if pieces %}
    while (to < 0) {
        to = PARTS[-to](cells);
    }
{% endif %}
    return to;
}

{% if n_trees %}
// Returns the {{ "number" if has_numbers else "vote" if votes else "chances" }} of a tree.
function predicted(cells, tree) {
{% if has_numbers %}
    return ANSWERS[arrive(cells, tree)];
{% elif votes %}
    return voteOf(CLASSES.indexOf(ANSWERS[arrive(cells, tree)][0]));
{% else %}
    return ANSWERS[arrive(cells, tree)][1];
{% endif %}
}

{% else %}
{% if has_numbers %}
function predict(row) {
    return ANSWERS[arrive(read(row))];
}

{% else %}
function predict(row) {
    return ANSWERS[arrive(read(row))][0];
}

function predictProba(row) {
    return ANSWERS[arrive(read(row))][1].slice();
}

{% endif %}
{% endif %}
{% endif %}
{% if n_trees %}
{% include "export/templates/ensemble.js" %}

{% endif %}
return Object.freeze({ CLASSES, COLUMNS, predict{{ "" if is_regression else ", predictProba" }} });
})();
if (typeof module === "object" && module !== null && module.exports) {
    module.exports = {{ name }};
}
{% endautoescape %}
