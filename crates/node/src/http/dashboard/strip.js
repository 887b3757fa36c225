// The last grants of a lock as a strip of time: one line for each member, a bar for each grant, with its fence.

import { svg } from "./dom.js";
import { brief } from "./times.js";

const WIDTH = 900;
const LEFT = 90;
const LINE = 30;
const LEAST = 3;
// A fence is written where there is room for so many pixels.
const DIGIT = 6.4;
const TICKS = 5;

// `now`: when the members were asked, in milliseconds since 1970.
export function drawStrip(grants, now) {
  if (grants.length === 0) {
    return svg("svg", { viewBox: `0 0 ${WIDTH} 40`, class: "strip", role: "img", "aria-label": "No grant is remembered." },
      svg("text", { x: 0, y: 24, class: "label" }, "No grant is remembered. Members remember the last few of the locks that are used most."));
  }
  const bars = grants.map((grant, place) => {
    const begin = Date.parse(grant.at);
    const isOpen = grant.state === "held";
    // Of one whose end nobody measured it is known that it was over when the next one began.
    const next = grants.slice(place + 1).map((it) => Date.parse(it.at)).find((at) => at >= begin);
    const end = isOpen ? now : grant.held_ms !== null ? begin + grant.held_ms : next ?? begin;
    return { grant, begin, end, isOpen, isGuess: !isOpen && grant.held_ms === null };
  });
  const first = Math.min(...bars.map((bar) => bar.begin));
  const length = Math.max(now - first, 1);
  const x = (time) => LEFT + ((Math.min(time, now) - first) / length) * (WIDTH - LEFT - 6);
  const members = [...new Set(grants.map((grant) => grant.member))].sort();
  const height = members.length * LINE + 26;
  const line = (member) => members.indexOf(member) * LINE;
  return svg("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`, class: "strip", role: "img",
    "aria-label": `${grants.length} grants in the last ${brief(now - first)}. The newest has fence ${grants.at(-1).fence}, at ${grants.at(-1).member}.`,
  },
    members.map((member) => [
      svg("line", { class: "axis", x1: LEFT, x2: WIDTH, y1: line(member) + LINE - 3, y2: line(member) + LINE - 3 }),
      svg("text", { x: LEFT - 8, y: line(member) + 19, "text-anchor": "end", class: "called" }, member.length > 11 ? `${member.slice(0, 10)}…` : member),
    ]),
    bars.map((bar) => drawBar(bar, x(bar.begin), x(bar.end), line(bar.grant.member))),
    Array.from({ length: TICKS }, (_, place) => {
      const time = first + (length * place) / (TICKS - 1);
      const anchor = place === 0 ? "start" : place === TICKS - 1 ? "end" : "middle";
      const words = place === TICKS - 1 ? "now" : `−${brief(now - time)}`;
      return svg("text", { x: x(time), y: height - 6, "text-anchor": anchor, class: "label" }, words);
    }));
}

function drawBar({ grant, isOpen, isGuess }, begin, end, top) {
  const width = Math.max(end - begin, LEAST);
  const fence = grant.fence;
  const look = isOpen ? "open" : isGuess ? "guess" : grant.state === "lost" || grant.state === "forced" ? "bad" : "done";
  const waited = grant.waited_ms === null ? "at once" : `after ${brief(grant.waited_ms)}`;
  const held = grant.held_ms !== null ? `held for ${brief(grant.held_ms)}, then ${grant.state}` : isOpen ? "held" : "over; when was not measured";
  return svg("g", { class: `grant ${look}`, "data-fence": fence },
    svg("title", null, `fence ${fence} at ${grant.member}, granted ${waited}; ${held}`),
    svg("rect", { x: Math.round(begin * 10) / 10, y: top + 5, width: Math.round(width * 10) / 10, height: LINE - 11, rx: 2 }),
    width > fence.length * DIGIT + 8 ? svg("text", { x: begin + 5, y: top + 19 }, fence) : null);
}
