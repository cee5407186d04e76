// ----- head -----
// @about@, written by branchwise.
//
// @uses@
// A row is an object by column name; null, undefined, NaN and absent properties are
// missing values. A RangeError tells which column has a value that the tree cannot
// take. In Node.js: const @name@ = require("./this_file.js"). In a page this file is a
// script, and @name@ a global variable.
var @name@ = (function () {
"use strict";


// ----- classes_use -----
@name@.predict(row) returns a class, @name@.predictProba(row) the chance of each of
// @name@.CLASSES.
// ----- numbers_use -----
@name@.predict(row) returns a number.
// ----- read -----
// Returns the values that the tree looks at: a number, a known value, or else.
function read(row) {
    const cells = [];
    for (let i = 0; i < COLUMNS.length; i++) {
        const name = COLUMNS[i], type = TYPES[i], values = VALUES[i];
        let value = null;
        if (Object.prototype.hasOwnProperty.call(row, name)) {
            value = row[name];
        }
        if (value === null || value === undefined || Number.isNaN(value)) {
@missing@
        }
        if (type !== null && typeof value !== type) {
            throw new RangeError(`Column ${shown(name)} must be a ${type}. Got a ` +
                `${typeof value}.`);
        }
        if (type === "number" && !Number.isFinite(value)) {
            throw new RangeError(`Column ${shown(name)} must be a finite number.`);
        }
        if (values !== null && !values.has(value)) {
@unseen@
        }
        cells.push(value);
    }
    return cells;
}

function shown(value) {
    return JSON.stringify(value);
}


// ----- reject_missing -----
            throw new RangeError(
                `Column ${shown(name)} is missing, which the tree refuses.`);
// ----- allow_missing -----
            cells.push(values === null ? NaN : null);
            continue;
// ----- reject_unseen -----
            throw new RangeError(`Column ${shown(name)} has the value ` +
                `${shown(value)}, which training did not have.`);
// ----- allow_unseen -----
            value = OTHER;
// ----- arrive -----
// Returns the node where a case ends.
function arrive(cells) {
    let to = part_0(cells);
@on@    return to;
}


// ----- go_on -----
    while (to < 0) {
        to = PARTS[-to](cells);
    }

// ----- predict_class -----
function predict(row) {
    return ANSWERS[arrive(read(row))][0];
}

function predictProba(row) {
    return ANSWERS[arrive(read(row))][1].slice();
}


// ----- predict_number -----
function predict(row) {
    return ANSWERS[arrive(read(row))];
}


// ----- arrive_fractional -----
// Returns the nodes where the parts of a case end, in order, with their shares.
function arrive(cells) {
    const ends = [], todo = [];
    part_0(cells, 1, todo);
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


// ----- scores -----
chances
// ----- expected_costs -----
CLASSES.map((label, answer) => {
        let price = 0;
        chances.forEach((chance, code) => {
            price += chance * COSTS[code][answer];
        });
        return -price;
    })
// ----- predict_class_fractional -----
function chancesOf(ends) {
    const chances = new Array(CLASSES.length).fill(0);
    for (const [node, share] of ends) {
        ANSWERS[node][1].forEach((chance, code) => {
            chances[code] += chance * share;
        });
    }
    return chances;
}

// Returns the first class that is as good as the best, up to rounding.
function bestOf(chances) {
    const scores = @scores@;
    let best = scores[0];
    for (const score of scores) {
        best = score > best ? score : best;
    }
    const least = best - Math.abs(best) * 1e-9;
    return scores.findIndex((score) => score >= least);
}

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


// ----- predict_number_fractional -----
function predict(row) {
    const ends = arrive(read(row));
    if (ends.length === 1) {
        return ANSWERS[ends[0][0]];
    }
    let number = 0;
    for (const [node, share] of ends) {
        number += ANSWERS[node] * share;
    }
    return number;
}


// ----- tail -----
return Object.freeze({ @names@ });
})();
if (typeof module === "object" && module !== null && module.exports) {
    module.exports = @name@;
}

// ----- driver -----
// The script runs in a world of its own that has the language, and neither files nor
// network nor a way to turn text into code.
const fs = require("fs"), vm = require("vm");
const world = Object.create(null);
world.given = fs.readFileSync(0, "utf8");
vm.createContext(world, { codeGeneration: { strings: false, wasm: false } });
vm.runInContext("var module = { exports: {} };", world);
vm.runInContext(fs.readFileSync("exported_tree.js", "utf8"), world);
process.stdout.write(vm.runInContext(`(${predicted})(module.exports, given)`, world));

function predicted(tree, given) {
    const results = [];
    for (const line of given.split("\n")) {
        if (line === "") { continue; }
        const cells = JSON.parse(line);
        const row = Object.create(null);
        tree.COLUMNS.forEach((name, i) => { row[name] = cells[i]; });
        try {
            const label = tree.predict(row);
            results.push(JSON.stringify(tree.predictProba === undefined ? [label]
                : [tree.CLASSES.indexOf(label), ...tree.predictProba(row)]));
        } catch (error) {
            if (!(error instanceof RangeError)) { throw error; }
            results.push("null");
        }
    }
    return results.map((result) => result + "\n").join("");
}

