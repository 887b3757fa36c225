// The frame: which view is shown, who looks at it, and whether what is shown is live.
//
// The address says what is shown: #/ (overview), #/locks?…, #/lock/NAME, #/members, #/git?…  A view is a function
// `(container, api, params, rest)`; it returns what is called when another one takes its place, or nothing.

import { api } from "./api.js";
import { attribute, h, show, text } from "./dom.js";
import { live } from "./live.js";
import { renderLock } from "./lock.js";
import { renderLocks } from "./locks.js";
import { renderMembers } from "./members.js";
import { renderOverview } from "./overview.js";
import { askForToken } from "./token.js";

const VIEWS = {
  "": { title: "Overview", render: renderOverview },
  locks: { title: "Locks", render: renderLocks },
  lock: { title: "Lock", render: renderLock },
  members: { title: "Members", render: renderMembers },
  git: { title: "Git", render: renderLater("./git.js", "renderGit") },
};

// A node that does not say who we are is asked again after so long.
const AGAIN = 2000;

const find = (id) => document.getElementById(id);
let leave = () => {};
let shown = null;

// The address says which view is shown: it cannot say where in it.
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); find("view").focus(); });
addEventListener("hashchange", () => showView(true));
api.whenUnknown((refused) => enter(refused));
live.on("state", showState);
live.on("status", showWhere);
live.on("alerts", showAlarm);
enter(null);

// Finds out who we are, asks for a token if the node wants one, and shows what was asked for.
async function enter(refused) {
  // Several requests may be refused at once: whoever types a token already goes on.
  if (refused !== null && isAsked()) return;
  live.stop();
  leave();
  leave = () => {};
  shown = null;
  show(find("view"));
  if (refused !== null) return askForToken(find("view"), refused, () => enter(null));
  try {
    await api.identify();
  } catch (error) {
    // Who is not known is asked for a token already.
    if (error.status === 401) return;
    show(find("view"), h("p", { class: "notice", role: "alert" }, `The node does not say who you are: ${error.message}. `,
      h("button", { type: "button", onclick: () => enter(null) }, "Try again")));
    // A node that did not answer, or could not, may do so the next time.
    if (error.status === 0 || error.status >= 500) setTimeout(() => { if (api.identity() === null && !isAsked()) enter(null); }, AGAIN);
    return;
  }
  showWho();
  live.start();
  showView(false);
}

// Whether somebody is being asked for a token.
function isAsked() {
  return document.getElementById("token") !== null;
}

function showWho() {
  const { name, role, names, by_token } = api.identity();
  const scope = names.length > 0 ? ` for ${names.join(", ")}` : "";
  const forget = h("button", { type: "button", class: "quiet", onclick: () => { api.useToken(null); enter(null); } },
    "Forget the token");
  const words = { observe: "may look", lock: "may look and lock", administer: "may administer" };
  show(find("who"), `${name} ${words[role]}${scope} `, by_token ? forget : null);
}

// Shows the view that the address names. `moves`: whether the reader asked for it, so that it gets the focus.
function showView(moves) {
  if (api.identity() === null) return;
  const [path, query] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [name, rest] = path.split(/\/(.*)/s);
  const view = VIEWS[name] ?? VIEWS[""];
  const params = new URLSearchParams(query ?? "");
  // A view that is shown already only follows what its address says.
  if (shown?.name === name && shown.rest === rest && shown.follow) return shown.follow(params);
  leave();
  const container = h("div", { class: "view" });
  show(find("view"), container);
  const argument = decoded(rest ?? "");
  document.title = `${name === "lock" ? argument : view.title} · Catraca`;
  for (const link of document.querySelectorAll("nav a")) {
    const its = link.getAttribute("href").slice(2);
    const is = its === name || (its === "locks" && name === "lock");
    attribute(link, "aria-current", is ? "page" : null);
  }
  const done = view.render(container, api, params, argument);
  shown = { name, rest, follow: done?.follow };
  leave = () => { (done?.leave ?? done)?.(); };
  if (moves) find("view").focus({ preventScroll: true });
  if (moves) scrollTo(0, 0);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

// A view that is loaded when it is wanted. It is called as `render(container, api, params)`.
function renderLater(module, name) {
  return (container, api, params) => {
    let done = null;
    let isLeft = false;
    import(module).then(async (loaded) => {
      if (isLeft) return;
      done = await loaded[name](container, api, params);
      if (isLeft) done?.();
    }).catch((error) => {
      if (!isLeft) show(container, h("p", { class: "notice", role: "alert" }, `This view cannot be shown: ${error.message}`));
    });
    return () => { isLeft = true; if (typeof done === "function") done(); };
  };
}

function showState({ state, why }) {
  const words = { live: "Live", connecting: "Connecting …", lost: `Not live: ${why}. Trying again …` };
  attribute(find("live"), "data-state", state);
  text(find("live"), words[state]);
}

function showWhere({ group, node, readiness, epoch }) {
  text(find("node"), `node ${node}${group ? ` of ${group}` : ""} · ${readiness} · view ${epoch}`);
}

// What is worst is said on every view, in one line.
function showAlarm(alerts) {
  const severe = alerts.filter((alert) => alert.severity === "critical");
  find("alarm").hidden = severe.length === 0;
  if (severe.length === 0) return text(find("alarm"), "");
  const more = severe.length > 1 ? ` And ${severe.length - 1} more: see the overview.` : "";
  text(find("alarm"), severe[0].text + more);
}
