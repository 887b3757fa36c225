// All locks: searched, chosen, ordered, page by page.
//
// There may be a hundred thousand of them, of which a thousand change each second. Only the rows of one page are in
// the document; they are made once, and afterwards their texts are changed where they differ.

import { attribute, h, show, text } from "./dom.js";
import { forceButton } from "./force.js";
import { live } from "./live.js";
import { compareNames, first, heldSince, longestWait, Model, MOST_LOCKS } from "./model.js";
import { count, lasting } from "./times.js";

// The rows of a page.
const ROWS = 50;
// Which locks are shown is decided anew so often at the most; and not within so many times as long as that takes.
const ORDER = 1000;
const TIMES_AS_LONG = 20;
// A row that has been quiet for so long after a change is looked up: changes do not say everything.
const QUIET = 1000;
const TYPING = 250;

const CHOICES = {
  all: ["All", () => true],
  held: ["Held", (lock) => lock.holders.length > 0],
  waited: ["Somebody waits", (lock) => lock.queue.length > 0],
  durable: ["Durable", (lock) => lock.holders.some((holder) => holder.durable !== null)],
};
const byName = (one, other) => compareNames(one.name, other.name) || one.permits - other.permits;
const ORDERS = {
  name: ["Name", byName],
  held: ["Held longest", (one, other) => compare(heldSince(one), heldSince(other)) || byName(one, other)],
  queue: ["Longest queue", (one, other) => other.queue.length - one.queue.length || byName(one, other)],
  wait: ["Longest wait", (one, other) => compare(longestWait(one), longestWait(other)) || byName(one, other)],
};
const WHERE = {
  begins: "name begins with",
  contains: "name contains",
  holder: "holder contains",
};

export function renderLocks(container, api, params) {
  let asked = read(params);
  let ordered = null;
  let shown = { best: [], total: 0 };
  let pending = null;

  const search = h("input", { id: "search", type: "search", autocomplete: "off", spellcheck: "false", value: asked.search, maxlength: 255 });
  const where = select("where", Object.entries(WHERE), asked.where);
  const choice = select("choice", Object.entries(CHOICES).map(([key, [word]]) => [key, word]), asked.choice);
  const order = select("order", Object.entries(ORDERS).map(([key, [word]]) => [key, word]), asked.order);
  const said = h("p", { class: "faint", id: "said" });
  const trouble = h("p", { class: "notice", role: "alert", hidden: true });
  const body = h("tbody");
  const empty = h("p", { class: "empty", hidden: true });
  const back = h("button", { type: "button", class: "plain", onclick: () => turn(asked.page - 1) }, "Previous page");
  const on = h("button", { type: "button", class: "plain", onclick: () => turn(asked.page + 1) }, "Next page");
  const page = h("span", { class: "faint", role: "status" });
  show(container,
    h("div", { class: "heading" }, h("h2", null, "Locks"), said),
    h("form", { class: "filters", role: "search", onsubmit: (event) => { event.preventDefault(); choose(); } },
      h("div", { class: "wide" }, h("label", { for: "search" }, "Search"), search),
      h("div", null, h("label", { for: "where" }, "Where"), where),
      h("div", null, h("label", { for: "choice" }, "Show"), choice),
      h("div", null, h("label", { for: "order" }, "Order"), order)),
    trouble,
    h("div", { class: "card list" },
      h("table", { class: "locks" },
        h("caption", { class: "unseen" }, "Locks that somebody holds or waits for"),
        h("thead", null, h("tr", null,
          ["Lock", "State", "Holder", "For"].map((word) => h("th", { scope: "col" }, word)),
          ["Waiting", "Longest wait"].map((word) => h("th", { scope: "col", class: "number" }, word)),
          h("th", { scope: "col" }, h("span", { class: "unseen" }, "By force")))),
        body), empty),
    h("nav", { class: "pages", "aria-label": "Pages of the list" }, back, page, on));
  const rows = [];
  const model = new Model(api, (hasMoved) => { if (hasMoved) ordered = null; plan(); });

  let typing = null;
  search.addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(choose, TYPING); });
  for (const field of [where, choice, order]) field.addEventListener("change", choose);

  // What the fields say goes into the address, and from there into the list.
  function choose() {
    clearTimeout(typing);
    go({ search: search.value, where: where.value, choice: choice.value, order: order.value, page: 0 });
  }

  function turn(number) {
    go({ ...asked, page: number });
    container.querySelector("table").scrollIntoView({ block: "nearest" });
  }

  function go(next) {
    const query = new URLSearchParams();
    const usual = read(new URLSearchParams());
    for (const [key, value] of Object.entries(next)) if (value !== usual[key]) query.set(key, value);
    const text = query.toString();
    history.replaceState(null, "", `#/locks${text === "" ? "" : `?${text}`}`);
    follow(query);
  }

  function follow(query) {
    asked = read(query);
    for (const [field, value] of [[search, asked.search], [where, asked.where], [choice, asked.choice], [order, asked.order]]) {
      if (field.value !== value) field.value = value;
    }
    model.choose(asked.where === "begins" ? asked.search : "");
    ordered = null;
    draw(true);
  }

  function fits(lock) {
    if (!CHOICES[asked.choice][1](lock)) return false;
    if (asked.search === "" || asked.where === "begins") return true;
    const sought = asked.search.toLowerCase();
    const texts = asked.where === "contains" ? [lock.name] : lock.holders.map((holder) => `${holder.label} ${holder.member}`);
    return texts.some((text) => text.toLowerCase().includes(sought));
  }

  // Draws soon, once for however many changes.
  function plan() {
    pending ??= requestAnimationFrame(() => { pending = null; draw(false); });
  }

  let orderedAt = 0;
  let cost = 0;
  let retry = null;
  function draw(isAsked) {
    const now = performance.now();
    const isPlain = asked.order === "name" && asked.choice === "all" && (asked.search === "" || asked.where === "begins");
    const end = (asked.page + 1) * ROWS;
    // In the order of names the first ones are enough; for everything else all have to be known.
    model.want(isPlain ? end + 1 : MOST_LOCKS);
    const due = orderedAt + Math.max(ORDER, TIMES_AS_LONG * cost);
    if (ordered === null || !isPlain) {
      // What somebody has asked for is not waited for, and neither is a list that is still short.
      if (isAsked || now >= due || shown.best.length < ROWS) {
        shown = first(model.locks.values(), fits, ORDERS[asked.order][1], end);
        ordered = true;
        orderedAt = now;
        cost = performance.now() - now;
      } else {
        retry ??= setTimeout(() => { retry = null; plan(); }, due - now);
      }
    }
    fill(now);
    tell(isPlain);
  }

  function fill(now) {
    const locks = shown.best.slice(asked.page * ROWS, (asked.page + 1) * ROWS);
    while (rows.length < locks.length) rows.push(row(api, model));
    locks.forEach((lock, index) => rows[index].show(lock, now));
    const wanted = rows.slice(0, locks.length).map((row) => row.element);
    if (body.childElementCount !== wanted.length) show(body, wanted);
    verifySome(model, locks, now);
  }

  function tell(isPlain) {
    const isKnown = model.isWhole || !isPlain;
    const total = isKnown ? shown.total : Math.max(shown.total, model.locks.size);
    const reading = model.isReading() ? ` · reading the list: ${count(model.locks.size)} so far` : "";
    const cut = model.isCut ? ` · only the first ${count(MOST_LOCKS)} by name were read: search for a beginning of names` : "";
    const more = model.isWhole ? "" : "more than ";
    text(said, `${more}${count(total)} ${total === 1 && more === "" ? "lock" : "locks"}${reading}${cut}`);
    const silent = model.silent.length > 0 ? `No answer from ${model.silent.join(", ")}: what is held there is missing.` : "";
    const why = model.trouble !== null ? `The list could not be read: ${model.trouble}.` : silent;
    trouble.hidden = why === "";
    text(trouble, why);
    const pages = Math.max(1, Math.ceil(total / ROWS));
    if (asked.page >= pages && model.isWhole) return turn(pages - 1);
    text(page, model.isWhole ? `Page ${count(asked.page + 1)} of ${count(pages)}` : `Page ${count(asked.page + 1)}`);
    back.disabled = asked.page === 0;
    on.disabled = model.isWhole && asked.page + 1 >= pages;
    empty.hidden = shown.total > 0 || model.isReading();
    const isChosen = asked.search !== "" || asked.choice !== "all";
    text(empty, isChosen ? "No lock is like that." : "Nobody holds a lock, and nobody waits for one.");
  }

  const tick = setInterval(plan, 1000);
  const ends = [
    live.withLocks(),
    live.on("changes", (changes) => model.apply(changes)),
    live.on("gap", () => model.gap()),
    () => { clearInterval(tick); clearTimeout(typing); clearTimeout(retry); cancelAnimationFrame(pending); model.close(); },
  ];
  follow(params);
  return { follow, leave: () => ends.forEach((end) => end()) };
}

// A row, made once, that shows one lock after the other.
function row(api, model) {
  const link = h("a", { class: "name" });
  const state = h("span", { class: "badge" });
  const durable = h("span", { class: "badge accent" }, "durable");
  const label = h("span", { class: "name" });
  const where = h("span", { class: "faint" });
  const held = h("td", { class: "held", "data-label": "For" });
  const waiting = h("td", { class: "number", "data-label": "Waiting" });
  const wait = h("td", { class: "number", "data-label": "Longest wait" });
  const force = h("td", { class: "action" });
  const element = h("tr", null, h("th", { scope: "row", "data-label": "Lock" }, link), h("td", { "data-label": "State" }, state, " ", durable),
    h("td", { class: "holder", "data-label": "Holder" }, label, where), held, waiting, wait, force);
  let fence = null;
  let isOf = null;
  return { element, show: (lock, now) => {
    const [holder] = lock.holders;
    text(link, lock.name);
    attribute(link, "href", `#/lock/${encodeURIComponent(lock.name)}`);
    const full = lock.holders.length >= lock.permits;
    text(state, lock.permits > 1 ? `${lock.holders.length} of ${lock.permits}` : holder ? (lock.queue.length > 0 ? "held, wanted" : "held") : "free");
    attribute(state, "class", `badge ${lock.queue.length > 0 ? "warn" : full ? "good" : ""}`);
    durable.hidden = !lock.holders.some((it) => it.durable !== null);
    text(label, holder ? holder.label || "(no label)" : "–");
    const others = lock.holders.length > 1 ? ` and ${lock.holders.length - 1} more` : "";
    text(where, holder ? ` at ${holder.member}${others}` : "");
    text(held, holder ? lasting(now - heldSince(lock)) : "–");
    text(waiting, lock.queue.length > 0 ? count(lock.queue.length) : "–");
    text(wait, lock.queue.length > 0 ? lasting(now - longestWait(lock)) : "–");
    if (fence === (holder?.fence ?? null) && isOf === lock.key) return;
    fence = holder?.fence ?? null;
    isOf = lock.key;
    show(force, holder && lock.holders.length === 1 ? forceButton(api, lock.name, holder, () => model.gap()) : null);
  } };
}

// Looks up what is shown and was changed, a few at a time.
function verifySome(model, locks, now) {
  if (model.isVerifying) return;
  const lock = locks.find((lock) => lock.touched !== null && now - lock.touched > QUIET);
  if (lock === undefined) return;
  model.isVerifying = true;
  // It is tried again with the next change.
  model.verify(lock).catch(() => {}).finally(() => { setTimeout(() => { model.isVerifying = false; }, QUIET / 4); });
}

function select(id, options, value) {
  const element = h("select", { id }, options.map(([key, word]) => h("option", { value: key }, word)));
  element.value = value;
  return element;
}

// What an address asks for; what it does not say, or says wrongly, is as usual.
function read(params) {
  const among = (key, choices, usual) => (Object.hasOwn(choices, params.get(key) ?? "") ? params.get(key) : usual);
  return {
    search: params.get("search") ?? "",
    where: among("where", WHERE, "begins"),
    choice: among("choice", CHOICES, "all"),
    order: among("order", ORDERS, "name"),
    page: Math.max(0, Math.min(100_000, Number.parseInt(params.get("page") ?? "0", 10) || 0)),
  };
}

// Of two times; both may be infinite.
function compare(one, other) {
  return one === other ? 0 : one - other;
}
