// Who is in the group, which of them reach each other, who votes, and how the group has changed.
//
// How this node is linked to the others it tells by itself; the links between others are asked for now and then.

import { attribute, h, show, svg } from "./dom.js";
import { live } from "./live.js";
import { brief, lasting } from "./times.js";

const LINKS = {
  "this node": ["this node", "accent"], up: ["up", "good"], down: ["down", "bad"],
  connecting: ["connecting", "warn"], refused: ["refused", "bad"],
};
// A lease that was not renewed for this share of its time is late: as the alert says it.
const LATE = 2 / 3;
// The members are asked for their links so often.
const BETWEEN = 5000;
// Of very many links that are not up only the first are told in words.
const MOST_TOLD = 12;

export function renderMembers(container, api) {
  const narrow = matchMedia("(max-width: 40rem)");
  const picture = h("div", { class: "picture" });
  const rows = h("tbody");
  const registry = h("div");
  const history = h("tbody");
  const summary = h("p", { class: "faint" });
  const troubles = h("div", { role: "status" });
  show(container,
    h("div", { class: "heading" }, h("h2", null, "Members"), summary),
    h("div", { class: "columns wide" },
      h("section", { class: "card" }, h("h2", null, "Links"), picture, troubles,
        h("p", { class: "faint" }, "The ring around a member is the part of its lease that is over. A link is as both its ends tell it; an arrow points the only way that works.")),
      h("section", { class: "card" }, h("h2", null, "Registry"), registry)),
    h("section", { class: "card" },
      h("table", { class: "cards" }, h("caption", { class: "unseen" }, "Members"),
        head(["Member", "View", "Lease renewed", "Link", "Registry", "Address"]), rows)),
    h("section", { class: "card" }, h("h2", null, "Changes of the view"),
      h("table", { class: "cards" }, h("caption", { class: "unseen" }, "Changes of the view, the newest first"),
        head(["View", "When", "Cause", "Members", "Nothing was granted for"]), history)));
  let last = null;
  let told = null;
  const draw = (status) => {
    last = status;
    const inView = status.members.filter((member) => member.in_view).length;
    const lease = status.valid_millis === null ? "" : ` · this node may grant locks for ${brief(status.valid_millis)} more unless it renews its lease`;
    show(summary, `${inView} of ${status.members.length} in view ${status.epoch}${lease}`);
    const links = linksOf(status, told);
    show(picture, drawn(status, links, narrow.matches));
    // With their number: of a group that has grown all links may be up again.
    const words = [links.length, ...inWords(links)].join("\n");
    // Whoever hears the page is told again only if it is another thing.
    if (troubles.dataset.words !== words) {
      troubles.dataset.words = words;
      show(troubles, drawWords(links));
    }
    show(rows, status.members.map((member) => memberRow(member, status)));
    show(registry, registryOf(status.registry));
    show(history, [...status.views].reverse().map((view) => h("tr", null,
      h("th", { scope: "row", "data-label": "View" }, view.epoch),
      h("td", { "data-label": "When" }, `${lasting(view.age_millis)} ago`),
      h("td", { "data-label": "Cause", class: "name" }, view.cause),
      h("td", { "data-label": "Members" }, view.members),
      h("td", { "data-label": "Nothing was granted for" }, brief(view.took_millis)))));
  };
  const redraw = () => { if (last !== null) draw(last); };
  narrow.addEventListener("change", redraw);
  const end = live.on("status", draw);
  const abort = new AbortController();
  let timer = null;
  const ask = async () => {
    try {
      told = await api.json("/v1/links", { signal: abort.signal });
    } catch {
      // What was told may be wrong now.
      told = null;
    }
    if (abort.signal.aborted) return;
    redraw();
    timer = setTimeout(ask, BETWEEN);
  };
  ask();
  return () => { end(); abort.abort(); clearTimeout(timer); narrow.removeEventListener("change", redraw); };
}

function head(words) {
  return h("thead", null, h("tr", null, words.map((word) => h("th", { scope: "col" }, word))));
}

function memberRow(member, { lease_millis, registry }) {
  const [word, kind] = LINKS[member.link] ?? [member.link, ""];
  const since = member.millis === null ? "" : ` for ${lasting(member.millis)}`;
  const cluster = member.cluster === null ? "" : ` · cluster ${member.cluster}`;
  return h("tr", null,
    h("th", { scope: "row", "data-label": "Member" }, h("span", { class: "name" }, member.name)),
    h("td", { "data-label": "View" }, h("span", { class: `badge ${member.in_view ? "good" : "bad"}` }, member.in_view ? "in the view" : "lost")),
    h("td", { "data-label": "Lease renewed" }, leaseOf(member, lease_millis)),
    h("td", { "data-label": "Link" }, h("span", { class: `badge ${kind}` }, word), h("span", { class: "faint" }, since),
      member.why !== null ? h("span", { class: "faint name" }, `: ${member.why}`) : null),
    h("td", { "data-label": "Registry" }, roleOf(member.name, registry) || "–"),
    h("td", { "data-label": "Address" }, h("code", { class: "name" }, member.address), h("span", { class: "faint" }, cluster)));
}

function leaseOf({ in_view, renewed_millis }, lease) {
  if (renewed_millis === null || !in_view) return h("span", { class: "faint" }, "–");
  const isLate = renewed_millis > LATE * lease;
  return [h("meter", { min: 0, max: lease, high: LATE * lease, optimum: 0, value: Math.min(renewed_millis, lease), "aria-hidden": "true" }),
    h("span", { class: isLate ? "bad" : "faint" }, ` ${brief(renewed_millis)} ago, of ${brief(lease)}`)];
}

function roleOf(name, registry) {
  if (registry === null) return "";
  if (registry.leader === name) return "leads";
  if (registry.missing.includes(name)) return "votes, cannot be reached";
  return registry.voters.includes(name) ? "votes" : "";
}

function registryOf(registry) {
  if (registry === null) return h("p", { class: "faint" }, "It is not open yet.");
  const list = (names) => (names.length > 0 ? names.join(", ") : "–");
  return [
    registry.trouble !== null ? h("p", { class: "bad" }, registry.trouble) : h("p", { class: "good" }, "It answers."),
    h("dl", { class: "facts" },
      h("dt", null, "Kept"), h("dd", { class: "name" }, registry.place),
      h("dt", null, "Leads"), h("dd", null, registry.leader ?? "nobody that is known"),
      h("dt", null, "Vote"), h("dd", null, list(registry.voters)),
      h("dt", null, "Cannot be reached"), h("dd", { class: registry.missing.length > 0 ? "bad" : "" }, list(registry.missing))),
  ];
}

// The links between all members: `{ from, to, state, words }`, where `state` is "up", "down", "refused", "connecting",
// "one-way" (`from` reaches `to`, and not the other way round), or "unknown". `told`: what `/v1/links` says, or null.
export function linksOf({ members }, told) {
  const own = members.find((member) => member.link === "this node")?.name;
  const known = new Map((told?.links ?? []).map((it) => [JSON.stringify([it.from, it.to]), it.up]));
  const says = (from, to) => {
    const link = from === own ? members.find((it) => it.name === to).link : null;
    return link !== null ? link === "up" : known.get(JSON.stringify([from, to]));
  };
  const links = [];
  members.forEach((one, place) => members.slice(place + 1).forEach((other) => {
    const [from, to] = other.name === own ? [other, one] : [one, other];
    links.push(linkOf(from, to, own, says(from.name, to.name), says(to.name, from.name)));
  }));
  return links;
}

function linkOf({ name: from }, { name: to, link }, own, there, back) {
  const is = (state, words) => ({ from, to, state, words });
  if (from === own && link === "refused") return is("refused", `${from} and ${to} refuse each other`);
  if (there === undefined && back === undefined) return is("unknown", `between ${from} and ${to} nobody has told`);
  if (there !== undefined && back !== undefined && there !== back) {
    const [one, other] = there ? [from, to] : [to, from];
    return { from: one, to: other, state: "one-way", words: `${one} reaches ${other}, but ${other} does not reach ${one}` };
  }
  if (there ?? back) return is("up", `${from} and ${to} reach each other`);
  if (from === own && link === "connecting") return is("connecting", `${from} is connecting to ${to}`);
  return is("down", `${from} and ${to} do not reach each other`);
}

// What is not as it should be.
export function inWords(links) {
  const unlike = links.filter((link) => link.state !== "up").map((link) => link.words);
  const more = unlike.length - MOST_TOLD;
  return more > 0 ? [...unlike.slice(0, MOST_TOLD), `and ${more} more links that are not up`] : unlike;
}

function drawWords(links) {
  const words = inWords(links);
  if (links.length === 0) return null;
  if (words.length > 0) return h("ul", { class: "troubles" }, words.map((it) => h("li", { class: "name" }, it)));
  return h("p", { class: "good" }, links.length === 1 ? "The one link of the group is up." : `All ${links.length} links of the group are up.`);
}

// The members on a circle, this node at its top, with all links.
export function drawn(status, allLinks, isNarrow) {
  const [width, height] = isNarrow ? [340, 340] : [620, 340];
  const { members } = status;
  const own = Math.max(0, members.findIndex((member) => member.link === "this node"));
  const size = members.length > 12 ? 12 : 24;
  const place = (index) => {
    const angle = ((index - own) / members.length) * 2 * Math.PI - Math.PI / 2;
    const [rx, ry] = members.length === 1 ? [0, 0] : [width / 2 - 80, height / 2 - 74];
    return [width / 2 + rx * Math.cos(angle), height / 2 + ry * Math.sin(angle)];
  };
  const places = new Map(members.map((member, index) => [member.name, place(index)]));
  const isOwn = ({ from, to }) => [from, to].includes(members[own]?.name);
  // Those that need a look lie above the others.
  const order = { unknown: 0, up: 1, connecting: 2, down: 3, refused: 4, "one-way": 5 };
  const links = [...allLinks].sort((one, other) => order[one.state] - order[other.state])
    .map((link) => drawLink(link, places.get(link.from), places.get(link.to), isOwn(link)));
  const circles = members.map((member, index) => {
    const [x, y] = place(index);
    const role = roleOf(member.name, status.registry);
    const share = member.renewed_millis === null || !member.in_view ? 0 : Math.min(1, member.renewed_millis / status.lease_millis);
    const round = 2 * Math.PI * (size + 5);
    const ring = svg("circle", { class: `lease ${share > LATE ? "late" : ""}`, cx: x, cy: y, r: size + 5,
      "stroke-dasharray": `${(share * round).toFixed(1)} ${round.toFixed(1)}`, transform: `rotate(-90 ${x} ${y})` });
    const mark = role === "leads" ? "★" : role.startsWith("votes") ? "●" : "";
    // Words are where no link is: outside of the circle.
    const [first, second] = y < height / 2 - 20 ? [-size - 28, -size - 13] : [size + 21, size + 35];
    const word = member.in_view ? [role].filter(Boolean) : ["lost"];
    return svg("g", { class: `member ${member.in_view ? "" : "lost"} ${index === own ? "own" : ""}` },
      svg("circle", { class: "body", cx: x, cy: y, r: size }), share > 0 ? ring : null,
      svg("text", { x, y: y + 5, class: "mark" }, mark),
      svg("text", { x, y: y + first, class: "caption" }, shortened(member.name)),
      svg("text", { x, y: y + second, class: "label" }, word.join(" ")),
      svg("title", null, `${member.name}: link ${member.link}`));
  });
  const words = members.map((member) => `${member.name} ${member.in_view ? "in the view" : "lost"}, link ${member.link}`).join("; ");
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" }, links, circles);
  attribute(picture, "aria-label", [`Members: ${words}`, ...inWords(allLinks)].join("; "));
  return picture;
}

function drawLink({ from, to, state, words }, [x1, y1], [x2, y2], isOwn) {
  const group = svg("g", { class: `link ${state} ${isOwn ? "of-own" : ""}`, "data-from": from, "data-to": to },
    svg("title", null, words), svg("line", { x1, y1, x2, y2 }));
  const [x, y] = [(x1 + x2) / 2, (y1 + y2) / 2];
  const mark = (d, turn) => svg("path", { class: "sign", d, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) rotate(${turn.toFixed(1)})` });
  if (state === "one-way") group.append(mark("M-8 -8 L9 0 L-8 8 Z", (Math.atan2(y2 - y1, x2 - x1) * 180) / Math.PI));
  if (state === "refused" || state === "down") group.append(mark("M-6 -6 L6 6 M6 -6 L-6 6", 0));
  return group;
}

function shortened(name) {
  return name.length > 16 ? `${name.slice(0, 15)}…` : name;
}
