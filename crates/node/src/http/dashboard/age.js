// How long something has lasted, kept up to date.

import { h, text } from "./dom.js";
import { lasting } from "./times.js";

// An element that says how long it is since `begin`, in milliseconds since 1970.
export function since(begin, now) {
  return h("time", { "data-since": Math.round(begin) }, lasting(now - begin));
}

// Brings all of them that are in `place` up to date.
export function refresh(place) {
  const now = Date.now();
  for (const element of place.querySelectorAll("time[data-since]")) {
    text(element, lasting(now - Number(element.dataset.since)));
  }
}
