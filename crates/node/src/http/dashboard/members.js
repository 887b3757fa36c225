// Who is in the group, how this node is linked to them, who votes, and how the group has changed.

import { attribute, h, show, svg } from "./dom.js";
import { live } from "./live.js";
import { brief, lasting } from "./times.js";

const LINKS = {
  "this node": ["this node", "accent"], up: ["up", "good"], down: ["down", "bad"],
  connecting: ["connecting", "warn"], refused: ["refused", "bad"],
};
// A lease that was not renewed for this share of its time is late: as the alert says it.
const LATE = 2 / 3;

export function renderMembers(container) {
  const narrow = matchMedia("(max-width: 40rem)");
  const picture = h("div", { class: "picture" });
  const rows = h("tbody");
  const registry = h("div");
  const history = h("tbody");
  const summary = h("p", { class: "faint" });
  show(container,
    h("div", { class: "heading" }, h("h2", null, "Members"), summary),
    h("div", { class: "columns wide" },
      h("section", { class: "card" }, h("h2", null, "Links of this node"), picture,
        h("p", { class: "faint" }, "The ring around a member is the part of its lease that is over. Links between others are known to them: ",
          "each node has a dashboard of its own.")),
      h("section", { class: "card" }, h("h2", null, "Registry"), registry)),
    h("section", { class: "card" },
      h("table", { class: "cards" }, h("caption", { class: "unseen" }, "Members"),
        head(["Member", "View", "Lease renewed", "Link", "Registry", "Address"]), rows)),
    h("section", { class: "card" }, h("h2", null, "Changes of the view"),
      h("table", { class: "cards" }, h("caption", { class: "unseen" }, "Changes of the view, the newest first"),
        head(["View", "When", "Cause", "Members", "Nothing was granted for"]), history)));
  let last = null;
  const draw = (status) => {
    last = status;
    const inView = status.members.filter((member) => member.in_view).length;
    const lease = status.valid_millis === null ? "" : ` · this node may grant locks for ${brief(status.valid_millis)} more unless it renews its lease`;
    show(summary, `${inView} of ${status.members.length} in view ${status.epoch}${lease}`);
    show(picture, drawn(status, narrow.matches));
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
  return () => { end(); narrow.removeEventListener("change", redraw); };
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

// The members on a circle, this node at its top, with its links.
function drawn(status, isNarrow) {
  const [width, height] = isNarrow ? [340, 340] : [620, 340];
  const { members } = status;
  const own = Math.max(0, members.findIndex((member) => member.link === "this node"));
  const size = members.length > 12 ? 12 : 24;
  const place = (index) => {
    const angle = ((index - own) / members.length) * 2 * Math.PI - Math.PI / 2;
    const [rx, ry] = members.length === 1 ? [0, 0] : [width / 2 - 80, height / 2 - 74];
    return [width / 2 + rx * Math.cos(angle), height / 2 + ry * Math.sin(angle)];
  };
  const [x0, y0] = place(own);
  const links = members.map((member, index) => {
    if (index === own) return null;
    const [x, y] = place(index);
    return svg("line", { class: `link ${member.link}`, x1: x0, y1: y0, x2: x, y2: y });
  });
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
  attribute(picture, "aria-label", `Members: ${words}`);
  return picture;
}

function shortened(name) {
  return name.length > 16 ? `${name.slice(0, 15)}…` : name;
}
