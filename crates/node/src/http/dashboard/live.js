// The one stream of events that a page has, and who listens to it.
//
// A page that nobody looks at has none: browsers open only a few connections to one address, and a node has
// better things to do.

import { api } from "./api.js";

// A page that is hidden for so long lets its stream go.
const HIDDEN = 10_000;

const listeners = new Map();
const last = new Map();
let wantsLocks = 0;
let abort = null;
let isWanted = false;
let hiding = null;

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(close, HIDDEN);
  else if (isWanted && abort === null) open();
});

// A page that is left may be kept as it is, to be shown again: kept with its stream, it would take a connection.
addEventListener("pagehide", close);
addEventListener("pageshow", (event) => { if (event.persisted && isWanted && abort === null) open(); });

export const live = { on, start, stop, withLocks };

// Calls `listener` with what comes, and with what came last if there is something. Returns what ends that.
// What comes: "state", "status", "sample", "alerts", "changes", "gap".
function on(type, listener) {
  if (!listeners.has(type)) listeners.set(type, new Set());
  listeners.get(type).add(listener);
  if (last.has(type)) listener(last.get(type));
  return () => listeners.get(type).delete(listener);
}

function start() {
  isWanted = true;
  if (abort === null) open();
}

function stop() {
  isWanted = false;
  last.clear();
  close();
}

// From now on changes of locks are told too, until what this returns is called.
function withLocks() {
  wantsLocks += 1;
  if (wantsLocks === 1) reopen();
  let isOver = false;
  return () => {
    if (isOver) return;
    isOver = true;
    wantsLocks -= 1;
    // Whoever goes from one view of locks to the next keeps the stream.
    setTimeout(() => { if (wantsLocks === 0) reopen(); });
  };
}

function reopen() {
  if (abort === null) return;
  close();
  open();
}

function close() {
  abort?.abort();
  abort = null;
}

function open() {
  const own = new AbortController();
  abort = own;
  tell("state", { state: "connecting" });
  const hear = (event) => { if (!own.signal.aborted) take(event); };
  const path = wantsLocks > 0 ? "/v1/live?locks=true" : "/v1/live";
  api.stream(path, hear, own.signal).catch((error) => {
    if (!own.signal.aborted) tell("state", { state: "lost", why: error.message });
  });
}

function take({ type, data, why }) {
  switch (type) {
    case "open":
      // What happened before is not known.
      tell("state", { state: "live" });
      return tell("gap", null);
    case "closed":
      return tell("state", { state: "lost", why });
    case "alerts":
      return tell("alerts", data.alerts);
    default:
      return tell(type, data);
  }
}

function tell(type, value) {
  if (type !== "changes" && type !== "gap") last.set(type, value);
  for (const listener of listeners.get(type) ?? []) listener(value);
}
