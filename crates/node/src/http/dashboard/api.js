// How the page asks the node: JSON, and streams of events, with the token if there is one.
//
// The token is kept in this tab's session storage only: it is gone when the tab is closed, and never in an address.

const KEPT = "catraca-token";
// A stream that has broken is opened again after so long, and after twice as long each time up to the last.
const FIRST_PAUSE = 500;
const LAST_PAUSE = 8000;

let me = null;
let askForToken = () => {};

// Why a request was not served: `status`, `code` and `message` as the node says them; a status of 0 if it did not
// answer at all.
export class Refused extends Error {
  constructor(status, code, detail, body) {
    super(detail);
    this.status = status;
    this.code = code;
    this.body = body;
  }
}

// What a node answers, as JSON. `options`: `method`, `body` (a value, sent as JSON), `headers`, `signal`.
// Throws `Refused`; an aborted request throws what `fetch` does.
async function json(path, options = {}) {
  const { body, headers, ...rest } = options;
  const sent = { accept: "application/json", ...authorization(), ...headers };
  if (body !== undefined) {
    sent["content-type"] ??= "application/json";
    rest.method ??= "POST";
    rest.body = JSON.stringify(body);
  }
  const answer = await ask(path, { ...rest, headers: sent, cache: "no-store" });
  const text = await answer.text();
  return text === "" ? null : JSON.parse(text);
}

// Follows a stream of server-sent events until `signal` aborts it, over as many connections as it takes.
// `onEvent` gets `{ type, id, data }`, the data being read as JSON; and `{ type: "open" }` and
// `{ type: "closed", why }` as the connection comes and goes. Rejects if the node refuses it for good. `more`: headers.
async function stream(path, onEvent, signal, more = {}) {
  let pause = FIRST_PAUSE;
  let last = null;
  while (!signal?.aborted) {
    try {
      const headers = { accept: "text/event-stream", ...authorization(), ...more };
      if (last !== null) headers["last-event-id"] = last;
      const answer = await ask(path, { headers, signal, cache: "no-store" });
      onEvent({ type: "open" });
      for await (const event of events(answer.body)) {
        // Only a connection that says something is a good one.
        pause = FIRST_PAUSE;
        if (event.id !== null) last = event.id;
        onEvent(event);
      }
      onEvent({ type: "closed", why: "the node has ended the connection" });
    } catch (error) {
      if (signal?.aborted) return;
      if (error instanceof Refused && isForGood(error.status)) throw error;
      onEvent({ type: "closed", why: error.message });
    }
    await sleep(pause, signal);
    pause = Math.min(2 * pause, LAST_PAUSE);
  }
}

// What whoever looks at the page may do: "observe", "lock" or "administer"; null before that is known.
function role() {
  return me?.role ?? null;
}

// Whether that is at least this role.
function may(wanted) {
  const order = ["observe", "lock", "administer"];
  return order.indexOf(role()) >= order.indexOf(wanted);
}

// Asks the node who we are. Throws `Refused` with the status 401 if it wants to know that from us.
async function identify() {
  me = null;
  me = await json("/v1/me");
  return me;
}

// Who the node takes us for, if that is known: `{ name, role, names, by_token }`.
function identity() {
  return me;
}

function token() {
  return sessionStorage.getItem(KEPT);
}

// Keeps a token, or forgets it.
function useToken(value) {
  if (value) sessionStorage.setItem(KEPT, value);
  else sessionStorage.removeItem(KEPT);
}

// What is called when the node does not know us, or not any more.
function whenUnknown(listener) {
  askForToken = listener;
}

export const api = { json, stream, role, may, identify, identity, token, useToken, whenUnknown };

function authorization() {
  const kept = token();
  return kept ? { authorization: `Bearer ${kept}` } : {};
}

function isForGood(status) {
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Refused(0, "no-answer", "the node does not answer", null);
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => null);
  const detail = body?.detail ?? body?.message ?? `the node answers ${answer.status}`;
  const refused = new Refused(answer.status, body?.code ?? null, detail, body);
  if (answer.status === 401) askForToken(refused);
  throw refused;
}

// The events of a body.
async function* events(body) {
  let rest = "";
  for await (const piece of pieces(body.pipeThrough(new TextDecoderStream()))) {
    rest += piece;
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const event = read(part);
      if (event !== null) yield event;
    }
  }
}

// Not every browser lets a stream be iterated.
async function* pieces(readable) {
  const reader = readable.getReader();
  try {
    while (true) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function read(part) {
  const event = { type: "message", id: null, data: null };
  let data = null;
  for (const line of part.split("\n")) {
    const [name, value] = line.split(/: ?(.*)/s);
    if (name === "event") event.type = value;
    else if (name === "id") event.id = value;
    else if (name === "data") data = data === null ? value : `${data}\n${value}`;
  }
  if (data === null) return null;
  event.data = JSON.parse(data);
  return event;
}

function sleep(time, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, time);
    signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}
