// How long one lock is held, and how long it takes to go from one client to the next: bars, from the last grants that
// the members remember.

import { bars } from "./charts.js";
import { h } from "./dom.js";
import { brief } from "./times.js";

// The first bar is of what took up to so many milliseconds, each of the others of twice as much.
const FIRST = 1;
const BARS = 34;

export function drawDurations(instance) {
  const held = holds(instance.grants);
  if (held.length === 0) return null;
  // Of several who may be inside at once nobody can say whose place the next one took.
  const gaps = instance.permits > 1 ? null : handovers(instance.grants);
  return h("div", { class: "columns" },
    card("holds", "How long it is held", "From being inside to leaving.", held),
    gaps === null ? null : card("handovers", "Hand-overs", "From one's leaving until the next one, who waited already, is inside; between members to within the time that asking them takes.", gaps));
}

// How long those grants were held whose end is known. What went on in the next view has not ended.
export function holds(grants) {
  return grants.filter((it) => it.held_ms !== null && it.state !== "moved").map((it) => it.held_ms);
}

// From the end of each grant to the next one, if whoever got it waited at that end.
export function handovers(grants) {
  const gaps = [];
  grants.forEach((grant, place) => {
    const next = grants[place + 1];
    if (next === undefined || grant.held_ms === null || grant.state === "moved" || next.waited_ms === null) return;
    const end = Date.parse(grant.at) + grant.held_ms;
    const begin = Date.parse(next.at);
    if (begin - next.waited_ms <= end) gaps.push(Math.max(0, begin - end));
  });
  return gaps;
}

function card(name, title, about, values) {
  const chart = bars(title, about, brief, (count) => `${count} of the grants remembered:`);
  chart.draw(histogram(values));
  chart.element.dataset.of = name;
  return h("section", { class: "card durations" }, chart.element);
}

// The same as `/v1/times` tells: how many took up to each power of two, and percentiles.
export function histogram(values) {
  const sorted = [...values].sort((one, two) => one - two);
  const at = (share) => (sorted.length === 0 ? null : sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]);
  const limits = Array.from({ length: BARS }, (_, place) => (place === BARS - 1 ? null : FIRST * 2 ** place));
  const place = (value) => Math.min(BARS - 1, Math.max(0, Math.ceil(Math.log2(Math.max(value, FIRST) / FIRST))));
  const buckets = limits.map((at_most_ms) => ({ at_most_ms, count: 0 }));
  for (const value of sorted) buckets[place(value)].count += 1;
  return { count: sorted.length, p50_ms: at(0.5), p99_ms: at(0.99), buckets };
}
