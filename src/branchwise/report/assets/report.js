"use strict";
// On paper nothing is folded away but the worked computation, unless it was opened: it
// would take more pages than all the rest. Afterwards all is as it was.
(() => {
  let opened = [];
  addEventListener("beforeprint", () => {
    const folded = [...document.querySelectorAll("details:not([open])")];
    opened = folded.filter((details) => !details.closest("details.worked:not([open])"));
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
    opened = [];
  });
})();
