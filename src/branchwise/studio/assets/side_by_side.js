// Two sessions beside each other: both trees, where they differ, and a list of that.

/** The rules of the page, for trees that are apart from it. */
function ownStyle() {
  const rules = [...window.document.styleSheets].flatMap((sheet) => [...sheet.cssRules]);
  const style = new CSSStyleSheet();
  style.replaceSync(rules.map((rule) => rule.cssText).join("\n"));
  return style;
}

/** Show both trees in a dialog; `found` is what the server says of them. */
function showSideBySide(found) {
  const style = ownStyle();
  const sides = [h("div", { class: "side" }), h("div", { class: "side" })];
  const close = () => {
    dialog.close();
    dialog.remove();
  };
  const list = h("ol", { class: "differences" });
  const dialog = h(
    "dialog",
    { class: "beside", "aria-labelledby": "beside-title", onclose: () => dialog.remove() },
    h("div", { class: "head" }, h("h2", { id: "beside-title" }, "Two sessions"), button("Close", close)),
    h("div", { class: "sides" }, sides),
    h("h3", {}, found.marks.length ? `${counted(found.marks.length, "difference")}` : "No difference"),
    list,
  );
  byId("app").append(dialog);
  dialog.showModal();
  const [own, other] = [{ ...OPENED, tree: TREE.records }, found.other];
  const trees = [
    comparedTree(sides[0], style, own, "This session", marksBy(found.marks, "here")),
    comparedTree(sides[1], style, other, "The other session", marksBy(found.marks, "there")),
  ];
  const goTo = (mark) => {
    if (mark.here !== null) trees[0].goTo(mark.here);
    if (mark.there !== null) trees[1].goTo(mark.there);
  };
  list.append(...found.marks.map((mark) => h("li", {}, button(bdi(mark.words), () => goTo(mark), { class: "step" }))));
}

/** By path of one side, what differs there. */
function marksBy(marks, side) {
  const found = new Map();
  for (const mark of marks) {
    if (mark[side] === null) continue;
    found.set(mark[side], [...(found.get(mark[side]) ?? []), `${mark.kind}: ${mark.change}`]);
  }
  return found;
}
