// One lock: who holds it, who waits, and its anatomy.

import { h, show } from "./dom.js";

// The anatomy is a module of its own: `renderAnatomy(container, name, api)`. What it returns, if that is a function,
// is called when the view goes away.
export function renderLock(container, api, params, name) {
  const anatomy = h("div", { class: "anatomy" });
  show(container, h("h2", { class: "name" }, name), anatomy);
  let done = null;
  let isLeft = false;
  import("./anatomy.js").then(async ({ renderAnatomy }) => {
    if (isLeft) return;
    done = await renderAnatomy(anatomy, name, api);
    if (isLeft) done?.();
  }).catch((error) => {
    if (!isLeft) show(anatomy, h("p", { class: "notice" }, `The anatomy of this lock cannot be shown: ${error.message}`));
  });
  return () => { isLeft = true; if (typeof done === "function") done(); };
}
