// One repository: who has locked what, since when; lock, unlock, steal.
//
// All locks are loaded and kept up to date by the repository's change feed; search, filters and sorting are done
// here, and so many rows are shown at a time.

import { refresh, since } from "./age.js";
import { ask } from "./confirm.js";
import { attribute, h, show, text } from "./dom.js";
import { lasting } from "./times.js";

const PAGE = 100;
const LOADED_AT_ONCE = 5000;
const MOST_LOADED = 50_000;
// Changes that follow each other at once are drawn together.
const PAUSE = 100;
const TICK = 30_000;
// Where changes cannot be followed at once, the list is not waited for any longer.
const PATIENCE = 2000;
// A page that is hidden for so long lets its stream go: browsers open only a few connections to one address.
const HIDDEN = 10_000;
const DAY = 86_400_000;
const AGES = [["any age", 0], ["1 day", DAY], ["1 week", 7 * DAY], ["2 weeks", 14 * DAY], ["4 weeks", 28 * DAY], ["12 weeks", 84 * DAY]];
// So many locks that were stolen from whoever looks are named.
const MOST_STOLEN = 5;
// A lock as old as this is shown as an old one.
const OLD = 14 * DAY;

export function renderRepository(container, api, { repository, headers, rename, back }) {
  const base = `/git/${repository}`;
  const leaving = new AbortController();
  const locks = new Map();
  let me = null;
  let isLoading = false;
  let isLoaded = false;
  let isStale = false;
  let waiting = [];
  let isCut = false;
  let drawing = 0;
  const wanted = { words: "", whose: "all", age: 0, by: "path", falls: false, page: 0 };

  const notice = h("p", { class: "notice", role: "alert", hidden: true });
  const robbed = h("div", { class: "notice robbed", role: "alert", hidden: true });
  const about = h("p", { class: "faint" });
  const form = h("div");
  const count = h("p", { class: "faint", role: "status" }, "Loading …");
  const rows = h("tbody");
  const heads = new Map();
  const none = h("p", { class: "faint", hidden: true });
  const before = h("button", { type: "button", class: "plain", onclick: () => turn(-1) }, "Previous");
  const after = h("button", { type: "button", class: "plain", onclick: () => turn(1) }, "Next");
  const pages = h("nav", { class: "turning", "aria-label": "Pages" }, before, after);

  show(container, back(),
    h("section", { class: "card repository" },
      h("h2", { class: "name" }, repository), about, notice, robbed, form),
    h("section", { class: "card", "aria-label": "Locks" }, drawFilters(), count,
      h("div", { class: "scroll" }, h("table", { class: "files" }, h("thead", null, h("tr", null,
        head("path", "File"), head("owner", "Locked by"), head("since", "For"), h("th", { scope: "col" }, "Note"),
        h("th", { scope: "col" }, h("span", { class: "unseen" }, "What you can do")))), rows)), none, pages));

  const ticking = setInterval(() => refresh(container), TICK);
  let following = null;
  let hiding = 0;
  const watched = [
    [document, "visibilitychange", () => {
      clearTimeout(hiding);
      if (document.hidden) hiding = setTimeout(unfollow, HIDDEN);
      else follow();
    }],
    // A page that is left may be kept as it is, to be shown again.
    [window, "pagehide", () => unfollow()],
    [window, "pageshow", (event) => { if (event.persisted) follow(); }],
  ];
  for (const [target, type, listener] of watched) target.addEventListener(type, listener, { signal: leaving.signal });
  begin();
  return () => { unfollow(); leaving.abort(); clearInterval(ticking); clearTimeout(drawing); clearTimeout(hiding); };

  // What is asked of the node.

  function call(path, body) {
    return api.json(`${base}${path}`, { headers, signal: leaving.signal, ...(body === undefined ? {} : { body }) });
  }

  async function begin() {
    try {
      me = await call("/whoami");
    } catch (error) {
      if (leaving.signal.aborted) return;
      text(count, "");
      if (!isPassing(error)) return complain(`This repository cannot be shown: ${error.message}.`);
      complain(`This repository cannot be shown: ${error.message}. Trying again …`);
      setTimeout(() => { if (!leaving.signal.aborted) begin(); }, PATIENCE);
      return;
    }
    notice.hidden = true;
    drawAbout();
    follow();
    setTimeout(() => { if (!isLoaded && !leaving.signal.aborted) load(); }, PATIENCE);
  }

  // What happens is followed first, and then the list is asked for, so that nothing is missed between them.
  function follow() {
    if (me === null || following !== null || leaving.signal.aborted) return;
    const own = new AbortController();
    following = own;
    api.stream(`${base}/changes`, (event) => {
      if (own.signal.aborted) return;
      if (event.type === "open" || event.type === "gap") load();
      else if (event.type === "lock") take(event.data);
      else if (event.type === "closed") text(count, "Not live: trying again …");
    }, own.signal, headers).catch((error) => {
      if (!own.signal.aborted) complain(`What happens cannot be followed: ${error.message}.`);
    });
  }

  function unfollow() {
    following?.abort();
    following = null;
  }

  async function load() {
    // A list that was begun before does not know everything.
    if (isLoading) { isStale = true; return; }
    isLoading = true;
    isStale = false;
    waiting = [];
    try {
      const found = new Map();
      let cursor = "";
      isCut = false;
      do {
        const page = await call(`/locks?limit=${LOADED_AT_ONCE}${cursor}`);
        for (const lock of page.locks) found.set(lock.id, lock);
        cursor = page.next_cursor ? `&cursor=${encodeURIComponent(page.next_cursor)}` : null;
        isCut = found.size >= MOST_LOADED && cursor !== null;
        text(count, `Loading … ${found.size}`);
      } while (cursor !== null && !isCut);
      locks.clear();
      for (const [id, lock] of found) locks.set(id, lock);
      for (const change of waiting) apply(change);
      isLoaded = true;
      draw();
    } catch (error) {
      if (leaving.signal.aborted) return;
      complain(`The locks could not be listed: ${error.message}. They are asked for again …`);
      setTimeout(() => { if (!leaving.signal.aborted) load(); }, 5000);
    } finally {
      isLoading = false;
    }
    if (isStale) load();
  }

  // Something has happened.
  function take(change) {
    if (isLoading) waiting.push(change);
    apply(change);
    soon();
  }

  function apply({ kind, lock }) {
    if (kind === "unlocked") locks.delete(lock.id);
    else locks.set(lock.id, lock);
  }

  async function act(words, doing) {
    notice.hidden = true;
    try {
      const answer = await doing();
      attribute(notice, "class", "notice done");
      text(notice, words(answer));
      notice.hidden = false;
      draw();
    } catch (error) {
      if (!leaving.signal.aborted) complain(`${sentence(error.message)}`);
    }
  }

  async function lock(path, note) {
    await act((answer) => `You have locked ${visible(answer.lock.path)}.`, async () => {
      const answer = await call("/locks", { path, ...(note ? { note } : {}) });
      apply({ kind: "locked", lock: answer.lock });
      return answer;
    });
  }

  async function unlock(lock, force) {
    const path = visible(lock.path);
    const sure = await ask(container, force
      ? { title: "Unlock by force?", words: [`${lock.owner.name} has locked `, file(path), ` for ${age(lock)}, and may be working on it. What they have not pushed can be lost.`], act: "Unlock by force", danger: true }
      : { title: "Unlock this file?", words: ["Others can lock and change ", file(path), " then. Push what you have changed first."], act: "Unlock" });
    if (sure === null) return;
    await act(() => `${path} is unlocked.`, async () => {
      const answer = await call(`/locks/${lock.id}/unlock`, { force });
      apply({ kind: "unlocked", lock });
      return answer;
    });
  }

  async function steal(lock) {
    const path = visible(lock.path);
    const sure = await ask(container, {
      title: "Steal this lock?", act: "Steal the lock", danger: true, note: "Why? (others see it)",
      words: [`${lock.owner.name} has locked `, file(path), ` for ${age(lock)}, and may be working on it. The lock becomes yours; that is recorded, and told to whoever watches.`],
    });
    if (sure === null) return;
    await act(() => `The lock of ${path} is yours now.`, async () => {
      const answer = await call(`/locks/${lock.id}/steal`, sure.note ? { note: sure.note } : {});
      apply({ kind: "stolen", lock: answer.lock });
      return answer;
    });
  }

  // What is drawn.

  function drawAbout() {
    const policies = {
      hand: "Locks are released by hand.",
      push: "A lock is released when the change is pushed.",
      merge: `A lock is released when the change has reached ${me.default_branch}.`,
    };
    const other = rename ? h("button", { type: "button", class: "quiet", onclick: rename }, "I am somebody else") : null;
    show(about, "You are ", h("strong", null, me.name), `, and ${rights()}. ${policies[me.policy] ?? ""} `, other);
    if (!me.roles.includes("lock")) return show(form);
    const path = h("input", { id: "path", required: true, maxlength: 768, placeholder: "art/hero.psd", spellcheck: "false", autocomplete: "off" });
    const note = h("input", { id: "note", maxlength: 300, placeholder: "what for (may be left out)", autocomplete: "off" });
    const submit = async (event) => {
      event.preventDefault();
      const asked = [path.value, note.value];
      await lock(path.value, note.value.trim());
      if (!notice.classList.contains("done")) return;
      // Whoever has gone on to the next file meanwhile keeps what is typed.
      if (path.value !== asked[0] || note.value !== asked[1]) return;
      path.value = "";
      note.value = "";
    };
    return show(form, h("form", { class: "row", onsubmit: submit },
      h("span", { class: "field wide" }, h("label", { for: "path" }, "Lock a file"), path),
      h("span", { class: "field wide" }, h("label", { for: "note" }, "Note"), note),
      h("button", { type: "submit" }, "Lock")));
  }

  function rights() {
    if (me.roles.includes("administer")) return "may lock, steal and unlock by force";
    if (me.roles.includes("lock")) return me.steal === "lock" ? "may lock and steal" : "may lock";
    return "may look";
  }

  function drawFilters() {
    const changed = (name) => (event) => { wanted[name] = name === "age" ? Number(event.target.value) : event.target.value; wanted.page = 0; draw(); };
    return h("div", { class: "row sieve", role: "search" },
      h("span", { class: "field wide" }, h("label", { for: "find" }, "Search"),
        h("input", { id: "find", type: "search", placeholder: "a part of a path, a note or an owner", oninput: changed("words") })),
      h("span", { class: "field" }, h("label", { for: "whose" }, "Whose"),
        h("select", { id: "whose", onchange: changed("whose") },
          [["all", "everybody's"], ["mine", "mine"], ["others", "others'"]].map(([value, words]) => h("option", { value }, words)))),
      h("span", { class: "field" }, h("label", { for: "age" }, "Older than"),
        h("select", { id: "age", onchange: changed("age") }, AGES.map(([words, value]) => h("option", { value }, words)))));
  }

  function head(key, words) {
    const sort = () => {
      [wanted.by, wanted.falls] = [key, wanted.by === key && !wanted.falls];
      wanted.page = 0;
      draw();
    };
    const cell = h("th", { scope: "col" }, h("button", { type: "button", class: "sort", onclick: sort }, words));
    heads.set(key, cell);
    return cell;
  }

  function turn(step) {
    wanted.page += step;
    draw();
  }

  function chosen() {
    const now = Date.now();
    const words = wanted.words.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (lock) => {
      if (wanted.whose !== "all" && (lock.owner.name === me.name) !== (wanted.whose === "mine")) return false;
      if (wanted.age > 0 && now - Date.parse(lock.locked_at) < wanted.age) return false;
      const all = `${lock.path}\n${lock.owner.name}\n${lock.note ?? ""}`.toLowerCase();
      return words.every((word) => all.includes(word));
    };
    const key = { path: (it) => it.path, owner: (it) => it.owner.name, since: (it) => it.locked_at }[wanted.by];
    const compare = (one, two) => {
      const [first, second] = [key(one), key(two)];
      const order = first < second ? -1 : first > second ? 1 : one.path < two.path ? -1 : 1;
      return wanted.falls ? -order : order;
    };
    return [...locks.values()].filter(fits).sort(compare);
  }

  function soon() {
    clearTimeout(drawing);
    drawing = setTimeout(draw, PAUSE);
  }

  function draw() {
    clearTimeout(drawing);
    if (me === null || leaving.signal.aborted) return;
    const found = chosen();
    const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
    wanted.page = Math.min(Math.max(wanted.page, 0), last);
    const begin = wanted.page * PAGE;
    const shown = found.slice(begin, begin + PAGE);
    const of = found.length === locks.size ? `${locks.size}` : `${found.length} of ${locks.size}`;
    const range = found.length > PAGE ? `, ${begin + 1} to ${begin + shown.length} shown` : "";
    const cut = isCut ? ". There are more than can be shown here: 'catraca git locks --under DIR' lists a part" : "";
    text(count, `${of} ${locks.size === 1 ? "lock" : "locks"}${range}${cut}`);
    text(none, locks.size === 0 ? "Nothing is locked in this repository." : "No lock is like that.");
    none.hidden = shown.length > 0;
    pages.hidden = found.length <= PAGE;
    [before.disabled, after.disabled] = [wanted.page === 0, wanted.page === last];
    for (const [key, cell] of heads) {
      attribute(cell, "aria-sort", wanted.by !== key ? null : wanted.falls ? "descending" : "ascending");
    }
    fillRows(shown);
    tellOfStolen();
  }

  // Whoever had a lock before and did not release it is told as long as the thief has it.
  function tellOfStolen() {
    const stolen = [...locks.values()].filter(isStolenFromMe);
    const words = stolen.slice(0, MOST_STOLEN).map((lock) => {
      const why = lock.note ? ` (${visible(lock.note)})` : "";
      return `${visible(lock.owner.name)} has stolen ${visible(lock.path)} from you${why}.`;
    });
    if (stolen.length > MOST_STOLEN) words.push(`And ${stolen.length - MOST_STOLEN} more.`);
    if (stolen.length > 0) words.push("What you have changed there cannot be pushed: ask whoever has the lock now.");
    // It is read out again only if it says something else.
    if (robbed.dataset.words === words.join("\n")) return;
    robbed.dataset.words = words.join("\n");
    show(robbed, words.map((line) => h("p", null, h("bdi", null, line))));
    robbed.hidden = stolen.length === 0;
  }

  function isStolenFromMe(lock) {
    return lock.owner.name !== me.name && (lock.stolen_from ?? []).includes(me.name);
  }

  // Rows that stay are not made anew, so whoever has the focus in one keeps it.
  function fillRows(shown) {
    const there = new Map([...rows.children].map((row) => [row.dataset.key, row]));
    const wantedRows = shown.map((lock) => {
      const key = JSON.stringify([lock.id, lock.owner.name, lock.note]);
      return there.get(key) ?? drawRow(lock, key);
    });
    const isSame = wantedRows.length === rows.children.length && wantedRows.every((row, place) => row === rows.children[place]);
    if (isSame) return;
    const focused = rows.contains(document.activeElement) ? document.activeElement : null;
    rows.replaceChildren(...wantedRows);
    if (focused?.isConnected) focused.focus({ preventScroll: true });
  }

  function drawRow(lock, key) {
    const begin = Date.parse(lock.locked_at);
    const isMine = lock.owner.name === me.name;
    const isOld = Date.now() - begin > OLD;
    return h("tr", { "data-key": key, "data-path": lock.path },
      h("td", { class: "name path" }, h("bdi", null, visible(lock.path))),
      h("td", { class: "name" }, h("bdi", null, visible(lock.owner.name)), isMine ? [" ", h("span", { class: "badge accent" }, "you")] : null,
        isStolenFromMe(lock) ? [" ", h("span", { class: "badge warn" }, "stolen from you")] : null),
      h("td", { class: "age", title: new Date(begin).toLocaleString() }, since(begin, Date.now()),
        isOld ? [" ", h("span", { class: "badge warn" }, "old")] : null),
      h("td", { class: "name note" }, h("bdi", null, visible(lock.note ?? ""))),
      h("td", { class: "doing" }, actions(lock, isMine)));
  }

  function actions(lock, isMine) {
    const button = (words, kind, doing) => h("button", { type: "button", class: `quiet ${kind}`, onclick: doing,
      "aria-label": `${words}: ${visible(lock.path)}` }, words);
    if (!me.roles.includes("lock")) return null;
    if (isMine) return button("Unlock", "unlock", () => unlock(lock, false));
    const administers = me.roles.includes("administer");
    return [
      me.steal === "lock" || administers ? button("Steal …", "steal", () => steal(lock)) : null, " ",
      administers ? button("Unlock …", "force", () => unlock(lock, true)) : null,
    ];
  }

  function complain(words) {
    attribute(notice, "class", "notice");
    text(notice, words);
    notice.hidden = false;
  }
}

// Whether the same may be answered another time: the node did not answer, or was not able to.
function isPassing({ status }) {
  return status === 0 || status === 429 || status >= 500;
}

function age(lock) {
  return lasting(Date.now() - Date.parse(lock.locked_at));
}

function file(path) {
  return h("strong", { class: "name" }, h("bdi", null, path));
}

function sentence(words) {
  const whole = words.charAt(0).toUpperCase() + words.slice(1);
  return /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}

// A text in which nothing is unseen, and nothing changes the order of what follows: control characters as their
// pictures, marks of direction as their numbers.
export function visible(words) {
  return words
    .replace(/[\u0000-\u001f]/g, (it) => String.fromCharCode(0x2400 + it.charCodeAt(0)))
    .replace(/\u007f/g, "\u2421")
    .replace(/[\u0080-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g, (it) => `⟨U+${it.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
