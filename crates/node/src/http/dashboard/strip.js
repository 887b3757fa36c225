// The last grants of a lock as a strip of time: one line for each member, a bar for each grant, with its fence or
// the digits in which it differs from the others.

import { h, svg } from "./dom.js";
import { brief } from "./times.js";

const WIDE = { width: 900, left: 90, letters: 11 };
// Of a phone.
const NARROW = { width: 340, left: 58, letters: 7 };
const LINE = 30;
const LEAST = 3;
// A fence is written where there is room for so many pixels.
const DIGIT = 6.4;
// The fewest digits of a fence of which only the end is written.
const LEAST_DIGITS = 3;

// `now`: when the members were asked, in milliseconds since 1970.
export function drawStrip(grants, now, isNarrow) {
  if (grants.length === 0) {
    return h("p", { class: "faint strip" }, "No grant is remembered. Members remember the last few of the locks that are used most.");
  }
  const { width: WIDTH, left: LEFT, letters } = isNarrow ? NARROW : WIDE;
  const ticks = isNarrow ? 3 : 5;
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
  const ends = endings(grants.map((grant) => grant.fence));
  const line = (member) => members.indexOf(member) * LINE;
  return svg("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`, class: "strip", role: "img",
    "aria-label": `${grants.length} grants in the last ${brief(now - first)}. The newest has fence ${grants.at(-1).fence}, at ${grants.at(-1).member}.`,
  },
    members.map((member) => [
      svg("line", { class: "axis", x1: LEFT, x2: WIDTH, y1: line(member) + LINE - 3, y2: line(member) + LINE - 3 }),
      svg("text", { x: LEFT - 8, y: line(member) + 19, "text-anchor": "end", class: "called" }, member.length > letters ? `${member.slice(0, letters - 1)}…` : member),
    ]),
    bars.map((bar, place) => {
      const isBeside = (it) => it.grant.member === bar.grant.member;
      const next = bars.slice(place + 1).find(isBeside);
      const last = bars.slice(0, place).findLast(isBeside);
      const room = [last ? Math.max(x(last.begin) + LEAST, x(last.end)) : LEFT, next ? x(next.begin) : WIDTH];
      return drawBar({ ...bar, ending: ends[place] }, x(bar.begin), x(bar.end), room, line(bar.grant.member));
    }),
    Array.from({ length: ticks }, (_, place) => {
      const time = first + (length * place) / (ticks - 1);
      const anchor = place === 0 ? "start" : place === ticks - 1 ? "end" : "middle";
      const words = place === ticks - 1 ? "now" : `−${brief(now - time)}`;
      return svg("text", { x: x(time), y: height - 6, "text-anchor": anchor, class: "label" }, words);
    }));
}

// Of each fence the digits in which it differs from the others, and at least so many.
export function endings(fences) {
  const longest = Math.max(...fences.map((fence) => fence.length));
  const padded = fences.map((fence) => fence.padStart(longest, "0"));
  let same = 0;
  while (same < longest && padded.every((fence) => fence[same] === padded[0][same])) same += 1;
  const digits = Math.max(LEAST_DIGITS, longest - same);
  return fences.map((fence) => (fence.length <= digits + 1 ? fence : `…${fence.slice(-digits)}`));
}

// The fence is written into its bar, or beside it, as a whole or its end, as far as there is `room` from the bar before
// to the next one.
function drawBar({ grant, isOpen, isGuess, ending }, begin, end, room, top) {
  const width = Math.max(end - begin, LEAST);
  const fence = grant.fence;
  const look = isOpen ? "open" : isGuess ? "guess" : grant.state === "lost" || grant.state === "forced" ? "bad" : "done";
  const waited = grant.waited_ms === null ? "at once" : `after ${brief(grant.waited_ms)}`;
  const held = grant.held_ms !== null ? `held for ${brief(grant.held_ms)}, then ${grant.state}` : isOpen ? "held" : "over; when was not measured";
  return svg("g", { class: `grant ${look}`, "data-fence": fence },
    svg("title", null, `fence ${fence} at ${grant.member}, granted ${waited}; ${held}`),
    svg("rect", { x: Math.round(begin * 10) / 10, y: top + 5, width: Math.round(width * 10) / 10, height: LINE - 11, rx: 2 }),
    drawFence(fence, ending, begin, width, room, top + 19));
}

function drawFence(fence, ending, begin, width, [from, to], y) {
  const length = (words) => words.length * DIGIT + 8;
  const inside = [fence, ending].find((words) => length(words) < width);
  if (inside !== undefined) return svg("text", { x: begin + 5, y }, inside);
  if (begin + width + length(ending) < to) return svg("text", { x: begin + width + 4, y, class: "beside" }, ending);
  if (begin - length(ending) > from) return svg("text", { x: begin - 4, y, class: "beside", "text-anchor": "end" }, ending);
  return null;
}
