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
