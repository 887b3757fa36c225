// The members of a lock as a picture: circles on a ring, with arrows for what points where.
//
// Every member keeps its place while the view lasts, so that one sees what has moved. The tables beside it tell the
// same; for those who see nothing the picture has one sentence.

import { svg } from "./dom.js";

const RADIUS = 26;
const ARROW = 9;

// The picture of an instance, as `/v1/anatomy` tells of it.
export function drawPointers(instance) {
  const members = instance.members;
  const ring = members.length < 2 ? 0 : Math.max(95, (members.length * (2 * RADIUS + 34)) / (2 * Math.PI));
  const width = Math.max(2 * (ring + RADIUS + 36), 380);
  const centre = { x: width / 2, y: 0 };
  const places = new Map(members.map((part, index) => {
    const angle = (2 * Math.PI * index) / members.length - Math.PI / 2;
    return [part.member, { x: centre.x + ring * Math.cos(angle), y: centre.y + ring * Math.sin(angle) }];
  }));
  const quorum = quorumOfInterest(instance);
  // Three lie in a triangle, which needs less room below than above.
  const heights = [...places.values()].map((place) => place.y);
  const [top, bottom] = [Math.min(...heights) - RADIUS - 34, Math.max(...heights) + RADIUS + 38];
  const picture = svg("svg", {
    viewBox: `0 ${round(top)} ${round(width)} ${round(bottom - top)}`, class: "pointers", role: "img", "aria-label": inWords(instance),
  });
  picture.append(
    ...members.filter((part) => quorum.has(part.member)).map((part) => halo(places.get(part.member))),
    ...drawArrows(instance, places, centre),
    ...members.map((part) => drawMember(part, instance, places.get(part.member), centre, isRoomy(part, instance, quorum))));
  return picture;
}

function inWords(instance) {
  const inside = instance.members.filter((part) => part.held > 0).map((part) => part.member);
  const words = [inside.length > 0 ? `Inside at ${inside.join(", ")}` : "Nobody is inside"];
  if (instance.token?.length > 0) words.push(`the token is at ${instance.token.join(", ")}`);
  const pointers = instance.arrows.slice(0, 24).map((arrow) => arrow.words);
  return `${[...words, ...pointers].join("; ")}.`;
}

// Those that whoever is inside, or waits, has to ask.
function quorumOfInterest(instance) {
  const wanted = instance.quorums ?? [];
  const busy = (state) => instance.members.filter((part) => part.nodes.some((node) => node.state === state));
  const inside = busy("inside");
  const members = (inside.length > 0 ? inside : busy("waiting")).map((part) => part.member);
  return new Set(wanted.filter((it) => members.includes(it.node)).flatMap((it) => it.members));
}

// Whether what is written beside a member has to make room for what is drawn around it.
function isRoomy(part, instance, quorum) {
  const isLoop = (arrow) => arrow.from === arrow.to && arrow.from.split("/")[0] === part.member;
  return quorum.has(part.member) || instance.arrows.some(isLoop);
}

function halo({ x, y }) {
  return svg("circle", { class: "halo", cx: round(x), cy: round(y), r: RADIUS + 9 });
}

function drawMember(part, instance, { x, y }, centre, isRoomy) {
  const states = part.nodes.map((node) => node.state);
  const hasToken = instance.token?.some((node) => node.split("/")[0] === part.member);
  let look = "idle";
  if (!part.answered) look = "silent";
  else if (part.held > 0 || states.includes("inside")) look = "inside";
  else if (part.waiting > 0 || states.includes("waiting")) look = "waiting";
  else if (!part.known) look = "unknown";
  const below = y >= centre.y - 1;
  const room = isRoomy ? 12 : 0;
  const words = { silent: "no answer", inside: "inside", waiting: "waits", idle: "", unknown: "" }[look];
  const count = part.waiting > 0 && look === "inside" ? `inside, ${waits(part.waiting)}` : words;
  const several = part.waiting > 1 && look === "waiting" ? waits(part.waiting) : count;
  return svg("g", { class: `member ${look}`, "data-member": part.member, "data-token": hasToken ? "yes" : null },
    svg("title", null, `${part.member}: ${look === "idle" ? "has nothing to do" : several || look}`),
    svg("circle", { cx: round(x), cy: round(y), r: RADIUS }),
    part.member === instance.home ? svg("circle", { class: "home", cx: round(x), cy: round(y), r: RADIUS - 4 }) : null,
    svg("text", { x: round(x), y: round(y + 4), "text-anchor": "middle", class: "called" }, short(part.member)),
    several ? svg("text", { x: round(x), y: round(below ? y + RADIUS + 17 + room : y - RADIUS - 9 - room), "text-anchor": "middle", class: "label" }, several) : null,
    hasToken ? drawToken(x + RADIUS * 0.78, y - RADIUS * 0.78) : null);
}

function waits(clients) {
  return `${clients} ${clients === 1 ? "waits" : "wait"}`;
}

function drawToken(x, y) {
  return svg("g", { class: "token" },
    svg("circle", { cx: round(x), cy: round(y), r: 9 }),
    svg("text", { x: round(x), y: round(y + 4), "text-anchor": "middle" }, "T"));
}

// Arrows between members; those of one kind between the same two are one.
function drawArrows(instance, places, centre) {
  const drawn = new Map();
  for (const arrow of instance.arrows) {
    const [from, to] = [arrow.from.split("/")[0], arrow.to.split("/")[0]];
    if (!places.has(from) || !places.has(to)) continue;
    const key = `${arrow.kind} ${from} ${to}`;
    const same = drawn.get(key);
    if (same) same.words.push(arrow.words);
    else drawn.set(key, { kind: arrow.kind, from, to, words: [arrow.words] });
  }
  // Several between the same two lie beside each other.
  const lanes = new Map();
  return [...drawn.values()].map((arrow) => {
    const pair = [arrow.from, arrow.to].sort().join(" ");
    const lane = lanes.get(pair) ?? 0;
    lanes.set(pair, lane + 1);
    return drawArrow(arrow, places.get(arrow.from), places.get(arrow.to), lane, centre);
  });
}

function drawArrow({ kind, from, to, words }, start, end, lane, centre) {
  const attributes = { class: `arrow ${kind}`, "data-from": from, "data-to": to };
  if (from === to) return loop(attributes, words, start, lane, centre);
  const [dx, dy] = [end.x - start.x, end.y - start.y];
  const length = Math.hypot(dx, dy);
  // Each curve bends to its own left, so that two that go opposite ways part.
  const bend = 16 + 15 * lane;
  const middle = { x: (start.x + end.x) / 2 + (dy / length) * bend, y: (start.y + end.y) / 2 - (dx / length) * bend };
  const first = towards(start, middle, RADIUS + 2);
  const tip = towards(end, middle, RADIUS + 4);
  const neck = towards(tip, middle, ARROW);
  return svg("g", attributes, svg("title", null, words.join("\n")),
    svg("path", { d: `M${at(first)} Q${at(middle)} ${at(neck)}` }), head(tip, neck));
}

// An arrow of a node to itself, outside the ring.
function loop(attributes, words, place, lane, centre) {
  // To the side of the ring: above and below something is written.
  const isRight = place.x >= centre.x - 1;
  const away = isRight ? -0.5 : Math.PI + 0.5;
  const point = (angle, distance) => ({ x: place.x + distance * Math.cos(angle), y: place.y + distance * Math.sin(angle) });
  const size = RADIUS + 26 + 8 * lane;
  const turn = isRight ? 1 : -1;
  const [first, tip] = [point(away - 0.55 * turn, RADIUS + 2), point(away + 0.6 * turn, RADIUS + 3)];
  const [one, two] = [point(away - 0.6 * turn, size), point(away + 0.75 * turn, size)];
  const neck = towards(tip, two, ARROW);
  return svg("g", attributes, svg("title", null, words.join("\n")),
    svg("path", { d: `M${at(first)} C${at(one)} ${at(two)} ${at(neck)}` }), head(tip, neck));
}

function head(tip, neck) {
  const [dx, dy] = [(neck.y - tip.y) * 0.45, (tip.x - neck.x) * 0.45];
  const [one, two] = [{ x: neck.x + dx, y: neck.y + dy }, { x: neck.x - dx, y: neck.y - dy }];
  return svg("path", { class: "head", d: `M${at(tip)} L${at(one)} L${at(two)} Z` });
}

function towards(from, to, distance) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  return { x: from.x + ((to.x - from.x) * distance) / length, y: from.y + ((to.y - from.y) * distance) / length };
}

function at({ x, y }) {
  return `${round(x)} ${round(y)}`;
}

function round(value) {
  return Math.round(value * 10) / 10;
}

function short(name) {
  return name.length > 7 ? `${name.slice(0, 6)}…` : name;
}
