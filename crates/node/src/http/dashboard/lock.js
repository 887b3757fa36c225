// One lock: who holds it, who waits, and its anatomy.

import { h, show, text } from "./dom.js";
import { forceButton } from "./force.js";
import { live } from "./live.js";
import { holderOf, waiterOf } from "./model.js";
import { count, lasting } from "./times.js";

// The lock is looked up again so long after something has happened to it, and at least this often.
const SOON = 300;
const SELDOM = 5000;
// The most of a queue that is shown.
const MOST_SHOWN = 100;

// The anatomy is a module of its own: `renderAnatomy(container, name, api)`. What it returns, if that is a function,
// is called when the view goes away.
export function renderLock(container, api, params, name) {
  const about = h("p", { class: "faint", role: "status" });
  const holders = h("div");
  const queue = h("div");
  const anatomy = h("div", { class: "anatomy" });
  show(container,
    h("div", { class: "heading" }, h("a", { href: "#/locks" }, "All locks"), h("h2", { class: "name" }, name), about),
    h("div", { class: "columns" },
      h("section", { class: "card" }, h("h2", null, "Inside"), holders),
      h("section", { class: "card" }, h("h2", null, "Waiting"), queue)),
    anatomy);
  const abort = new AbortController();
  let timer = null;
  let isAsking = false;
  let isStale = false;
  let ages = [];
  const later = (time) => { clearTimeout(timer); timer = setTimeout(look, time); };

  async function look() {
    if (isAsking) { isStale = true; return; }
    isAsking = true;
    const began = performance.now();
    try {
      const { locks, silent } = await api.json(`/v1/locks?${new URLSearchParams({ name, limit: 1000 })}`, { signal: abort.signal });
      draw(locks, silent, began);
    } catch (error) {
      if (abort.signal.aborted) return;
      text(about, error.status === 0 ? "The node does not answer. What is shown may be old." : error.message);
    }
    isAsking = false;
    later(isStale ? SOON : SELDOM);
    isStale = false;
  }

  function draw(locks, silent, now) {
    const inside = locks.flatMap((lock) => lock.holders.map((it) => holderOf(it, now)));
    const waiting = locks.flatMap((lock) => lock.queue.map((it) => waiterOf(it, now)));
    const permits = locks[0]?.permits ?? 1;
    const what = permits > 1 ? `Semaphore: ${inside.length} of ${permits} permits are taken` : inside.length > 0 ? "Held" : "Free";
    const missing = silent.length > 0 ? ` · no answer from ${silent.join(", ")}` : "";
    text(about, `${what}, ${count(waiting.length)} waiting${missing}`);
    // Whoever is about to press a button keeps it.
    const focused = holders.contains(document.activeElement) ? document.activeElement.closest("li")?.dataset.fence : null;
    ages = [];
    const age = (since) => { const place = h("span", null, lasting(performance.now() - since)); ages.push({ place, since }); return place; };
    show(holders, inside.length === 0 ? h("p", { class: "faint" }, "Nobody is inside.")
      : h("ul", { class: "people" }, inside.map((holder) => h("li", { "data-fence": holder.fence },
        who(holder), h("span", { class: "faint" }, "for ", age(holder.since), " · fence ", h("code", null, holder.fence)),
        holder.durable ? h("span", { class: "badge accent" }, "durable") : null,
        holder.durable?.note ? h("span", { class: "name" }, `“${holder.durable.note}”`) : null,
        forceButton(api, name, holder, look)))));
    show(queue, waiting.length === 0 ? h("p", { class: "faint" }, "Nobody waits.")
      : h("ol", { class: "people" }, waiting.slice(0, MOST_SHOWN).map((waiter) => h("li", null,
        who(waiter), h("span", { class: "faint" }, "for ", age(waiter.since))))),
    waiting.length > MOST_SHOWN ? h("p", { class: "faint" }, `and ${count(waiting.length - MOST_SHOWN)} more`) : null,
    new Set(waiting.map((waiter) => waiter.member)).size > 1
      ? h("p", { class: "faint" }, "Each member has a queue of its own; they take turns.") : null);
    if (focused) holders.querySelector(`[data-fence="${CSS.escape(focused)}"] button`)?.focus();
  }

  const tick = setInterval(() => {
    for (const { place, since } of ages) text(place, lasting(performance.now() - since));
  }, 1000);
  const ends = [
    live.withLocks(),
    live.on("changes", ({ locks }) => { if (locks.some((lock) => lock.name === name)) later(SOON); }),
    live.on("gap", () => later(SOON)),
    mount(anatomy, name, api),
    () => { abort.abort(); clearTimeout(timer); clearInterval(tick); },
  ];
  look();
  return () => ends.forEach((end) => end());
}

function who({ label, member, pid, host }) {
  const process = pid ? ` · process ${pid}${host ? ` on ${host}` : ""}` : "";
  return h("span", null, h("strong", { class: "name" }, label || "(no label)"), h("span", { class: "faint" }, ` at ${member}${process}`));
}

function mount(place, name, api) {
  let done = null;
  let isLeft = false;
  import("./anatomy.js").then(async ({ renderAnatomy }) => {
    if (isLeft) return;
    done = await renderAnatomy(place, name, api);
    if (isLeft && typeof done === "function") done();
  }).catch((error) => {
    if (!isLeft) show(place, h("p", { class: "notice", role: "alert" }, `The anatomy of this lock cannot be shown: ${error.message}`));
  });
  return () => { isLeft = true; if (typeof done === "function") done(); };
}
