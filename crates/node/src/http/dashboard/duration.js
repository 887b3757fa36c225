// How long something took, or has lasted until now.

import { h, text } from "./dom.js";

const UNITS = [["d", 86_400_000], ["h", 3_600_000], ["min", 60_000], ["s", 1000]];

// A time in milliseconds, in words short enough for a table: `3 ms`, `1.4 s`, `2 min 5 s`, `3 d 4 h`.
export function span(millis) {
  const time = Math.max(0, Math.round(millis));
  if (time < 1000) return `${time} ms`;
  if (time < 10_000) return `${(time / 1000).toFixed(1)} s`;
  const first = UNITS.findIndex(([, length]) => time >= length);
  const [unit, length] = UNITS[first];
  const count = Math.floor(time / length);
  const next = UNITS[first + 1];
  const rest = next ? Math.floor((time - count * length) / next[1]) : 0;
  return rest > 0 ? `${count} ${unit} ${rest} ${next[0]}` : `${count} ${unit}`;
}

// What has lasted since then, as an element that `clear` brings up to date.
export function since(begin, now) {
  return h("time", { "data-since": Math.round(begin) }, span(now - begin));
}

// Brings the element up to date.
export function clear(element, now) {
  text(element, span(now - Number(element.dataset.since)));
}
