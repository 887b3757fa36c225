// Why a lock stands as it does: where its token or its permissions are, what every node knows, and what was granted
// last. Drawn, and told in tables beside it. Who is inside and who waits is shown above it.
//
// The members are asked anew when something has happened to the lock, at most so often; and now and then anyway, as
// pointers turn without anybody's being let in.

import { h, show, svg, text } from "./dom.js";
import { drawDurations } from "./durations.js";
import { live } from "./live.js";
import { drawPointers } from "./pointers.js";
import { drawStrip } from "./strip.js";
import { brief, clock } from "./times.js";

// After a change, others that follow at once are waited for: a lock that never rests is asked about so often.
const PAUSE = 150;
const IDLE = 5000;
// The page of a phone: what is drawn there is as wide as the page, and not made smaller to fit.
const narrow = matchMedia("(max-width: 40rem)");

export async function renderAnatomy(container, name, api) {
  const state = h("p", { class: "faint" }, "Asking the members …");
  const warnings = h("div", { class: "parts", role: "status", hidden: true });
  const body = h("div", { class: "parts" });
  show(container, warnings, body, state);
  const leaving = new AbortController();
  let timer = 0;
  let isAsking = false;
  let isStale = false;

  async function ask() {
    clearTimeout(timer);
    if (isAsking) { isStale = true; return; }
    isAsking = true;
    isStale = false;
    try {
      const seen = await api.json(`/v1/anatomy?name=${encodeURIComponent(name)}`, { signal: leaving.signal });
      const focused = document.activeElement?.closest?.("details")?.id;
      warn(warnings, seen);
      draw(body, seen);
      if (focused) document.getElementById(focused)?.querySelector("summary")?.focus();
      text(state, `As each member told it at ${clock(Date.parse(seen.at))}: every one of its own moment, nobody stops for it.`);
    } catch (error) {
      if (leaving.signal.aborted) return;
      text(state, `The members could not be asked: ${error.message}. Trying again …`);
      if (error.status === 403) return;
    } finally {
      isAsking = false;
    }
    if (!leaving.signal.aborted) timer = setTimeout(ask, isStale ? PAUSE : IDLE);
  }

  function soon() {
    if (isAsking) { isStale = true; return; }
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  }

  const ends = [
    live.withLocks(),
    live.on("changes", ({ locks }) => { if (locks.some((lock) => lock.name === name)) soon(); }),
    live.on("gap", soon),
    () => { leaving.abort(); clearTimeout(timer); },
  ];
  ask();
  return () => ends.forEach((end) => end());
}

// What one has to know first. It is said again only when it is another.
function warn(warnings, seen) {
  const words = seen.remarks.map(sentence);
  if (seen.silent.length > 0) words.unshift(`No answer from ${listed(seen.silent)}: what is there is missing here.`);
  const there = [...warnings.children].map((it) => it.textContent);
  if (words.length === there.length && words.every((it, place) => it === there[place])) return;
  warnings.hidden = words.length === 0;
  show(warnings, words.map((it) => h("p", { class: "notice" }, it)));
}

function draw(body, seen) {
  const open = new Set([...body.querySelectorAll("details[open]")].map((it) => it.id));
  show(body, seen.instances.map((instance, place) => drawInstance(instance, seen, place)));
  for (const id of open) document.getElementById(id)?.setAttribute("open", "");
}

function drawInstance(instance, seen, place) {
  return h("section", { class: "instance", "aria-label": `Guarded by ${instance.algorithm}` },
    drawSummary(instance, seen),
    h("div", { class: "pair" },
      h("figure", { class: "card" },
        h("h3", null, "Where it is"), drawPointers(instance), legend(instance)),
      h("div", { class: "card" }, h("h3", null, "The same in words"), drawFacts(instance))),
    h("figure", { class: "card" },
      h("h3", null, "Last grants"), drawStrip(instance.grants, Date.parse(seen.at), narrow.matches), drawGrants(instance, place)),
    drawDurations(instance),
    h("details", { class: "card", id: `variables-${place}` },
      h("summary", null, "What every node knows, by the names of the paper"), drawVariables(instance)));
}

function drawSummary(instance, seen) {
  const several = instance.permits > 1 ? `${instance.permits} may be inside` : "one may be inside";
  const guards = instance.guards === seen.name ? null
    : ["These names are taken in sets, and are guarded together: ", h("code", null, instance.guards), ". "];
  const held = instance.held === 0 ? badge("good", "free")
    : badge("accent", instance.permits > 1 ? `held by ${instance.held}` : "held");
  const waiting = instance.waiting === 0 ? badge("", "nobody waits")
    : badge("warn", `${instance.waiting} ${instance.waiting === 1 ? "waits" : "wait"}`);
  return h("div", { class: "card summary" },
    h("p", null, held, " ", seen.known ? waiting : badge("warn", "not known"), " ", tokenBadge(instance, seen)),
    h("p", null, guards, h("strong", null, instance.algorithm), ` (${instance.title}); ${several}. `,
      `Begins at ${instance.home}, view ${seen.epoch}.`));
}

// Of a lock that nobody has used there is no token yet; and one that nobody who answered has may be elsewhere.
function tokenBadge(instance, seen) {
  if (instance.token === null || !seen.known) return null;
  if (instance.token.length === 0) return badge("", seen.silent.length > 0 ? "token not seen" : "token on its way");
  return badge("", `token at ${listed(instance.token)}`);
}

const KINDS = {
  pointer: "would ask for the token",
  next: "passes the token on to",
  granted: "has granted to",
  queued: "has a request waiting of",
  deferred: "owes a reply to",
  serves: "has let in",
};

function legend(instance) {
  const kinds = [...new Set(instance.arrows.map((arrow) => arrow.kind))];
  const entry = (kind) => h("li", null,
    svg("svg", { viewBox: "0 0 34 10", class: `key ${kind}`, "aria-hidden": "true" },
      svg("line", { x1: 1, y1: 5, x2: 26, y2: 5 }), svg("path", { d: "M26 1 L33 5 L26 9 Z" })),
    ` ${KINDS[kind]}`);
  return h("ul", { class: "kinds" }, kinds.map(entry),
    instance.token === null ? null : h("li", null, h("span", { class: "dot token" }), " token"),
    h("li", null, h("span", { class: "dot inside" }), " inside"),
    h("li", null, h("span", { class: "dot waiting" }), " waits"),
    instance.quorums === null ? null : h("li", null, h("span", { class: "dot quorum" }), " quorum of whoever is inside or waits"));
}

// One line for each member.
function drawFacts(instance) {
  const rows = instance.members.map((part) => {
    const its = instance.arrows.filter((arrow) => memberOf(arrow.from) === part.member).map((arrow) => arrow.words);
    const words = [];
    if (!part.answered) words.push("Did not answer");
    else if (!part.known) words.push("Has not heard of this lock in this view");
    if (instance.token?.some((node) => memberOf(node) === part.member)) words.push("Has the token");
    words.push(...its.slice(0, 12));
    if (its.length > 12) words.push(`and ${its.length - 12} more`);
    const quorum = instance.quorums?.find((it) => it.node === part.member);
    if (quorum) words.push(`Asks ${listed(quorum.members)}`);
    if (part.more_nodes > 0) words.push(`${part.more_nodes} more of its nodes are not shown`);
    if (words.length === 0) words.push(part.held + part.waiting > 0 ? "Knows nothing of others" : "Has nothing to do");
    return h("tr", null, h("th", { scope: "row" }, part.member),
      h("td", null, part.held === 0 ? "–" : part.held), h("td", null, part.waiting === 0 ? "–" : part.waiting),
      h("td", null, words.map((it) => h("div", null, it))));
  });
  return h("div", { class: "scroll" }, h("table", null,
    h("thead", null, headings(["Member", "Inside", "Waiting", "What it knows"])),
    h("tbody", null, rows)));
}

function drawGrants(instance, place) {
  const rows = instance.grants.slice(-32).reverse().map((it) => h("tr", null,
    h("td", { class: "number mono" }, it.fence), h("td", null, it.member), h("td", null, clock(Date.parse(it.at))),
    h("td", { class: "number" }, brief(it.waited_ms)),
    h("td", { class: "number" }, brief(it.held_ms)),
    h("td", null, it.state ?? "over; when was not measured")));
  if (rows.length === 0) return null;
  return h("details", { id: `grants-${place}` }, h("summary", null, "As a table"),
    table(["#Fence", "Member", "Granted", "#Waited", "#Held", "Then"], rows, ""));
}

function drawVariables(instance) {
  const nodes = instance.members.flatMap((part) => part.nodes);
  if (nodes.length === 0) return h("p", { class: "faint" }, "No node of it has been made yet.");
  return h("div", { class: "nodes" }, nodes.map((node) => h("div", { class: "node-card" },
    h("h4", null, node.node, " ", h("span", { class: "faint" }, `node ${node.number}, ${node.state}`)),
    h("dl", null, node.variables.map((it) => [h("dt", { class: "mono" }, it.name), h("dd", { class: "mono name" }, value(it))])),
    node.cut ? h("p", { class: "faint" }, "Some of it is too long to be shown.") : null)));
}

function value({ kind, value }) {
  switch (kind) {
    case "flag": return value ? "yes" : "no";
    case "node": return value ?? "nobody";
    case "nodes": return value.length > 0 ? `{${value.join(", ")}}` : "{}";
    case "queue": return value.length > 0 ? value.join(" → ") : "empty";
    case "requests": return value.length > 0 ? value.map((it) => `(${it.time}, ${it.node})`).join(" ") : "none";
    case "per-node": return value.length > 0 ? value.map((it) => `${it.node}: ${it.number}`).join("  ") : "none";
    default: return String(value) === "" ? "nothing" : String(value);
  }
}

function table(heads, rows, none) {
  if (rows.length === 0) return h("p", { class: "faint" }, none);
  return h("div", { class: "scroll" }, h("table", null,
    h("thead", null, headings(heads)), h("tbody", null, rows)));
}

// A heading over numbers begins with '#'.
function headings(heads) {
  return h("tr", null, heads.map((it) => h("th", { scope: "col", class: it.startsWith("#") ? "number" : null }, it.replace("#", ""))));
}

// The member of a node: `b/2` is one of several of `b`.
export function memberOf(node) {
  return node.split("/")[0];
}

function badge(kind, words) {
  return h("span", { class: `badge ${kind}` }, words);
}

function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

function sentence(words) {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}.`;
}
