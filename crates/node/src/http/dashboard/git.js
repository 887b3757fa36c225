// The locks of files in Git repositories: which repositories there are, and one of them.
//
// Its address is #/git, or #/git?repo=TEAM/REPO. A node that knows no tokens believes whoever says a name, as it
// does the stock client; the name is kept in this tab only.

import { renderRepository } from "./repository.js";
import { h, show } from "./dom.js";
import { since } from "./age.js";

const KEPT = "catraca-git-name";
const REPOSITORY = /^[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}\/[A-Za-z0-9_-][A-Za-z0-9_.-]{0,63}$/;

export async function renderGit(container, api, params) {
  const repository = params.get("repo");
  if (repository === null) return renderList(container, api);
  if (!REPOSITORY.test(repository)) {
    show(container, back(), h("p", { class: "notice", role: "alert" },
      "This is no repository: it is TEAM/REPO, two names of letters, digits, '-', '_' and '.'."));
    return undefined;
  }
  let leave = () => {};
  const enter = async () => {
    leave();
    leave = () => {};
    const headers = credentials(api);
    if (headers === null) return askForName(container, repository, enter);
    const rename = headers.authorization ? () => { sessionStorage.removeItem(KEPT); enter(); } : null;
    leave = renderRepository(container, api, { repository, headers, rename, back });
    return undefined;
  };
  await enter();
  return () => leave();
}

function back() {
  return h("p", null, h("a", { href: "#/git" }, "← All repositories"));
}

// What is sent to say who we are: nothing where the node knows that already; null if it has to be asked.
function credentials(api) {
  const known = api.identity();
  if (api.token() !== null || known?.by_token || (known && known.name !== "anyone")) return {};
  const name = sessionStorage.getItem(KEPT);
  if (name === null) return null;
  const bytes = new TextEncoder().encode(`${name}:x`);
  return { authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

function askForName(container, repository, next) {
  const input = h("input", { id: "git-name", required: true, maxlength: 128, autocomplete: "username", spellcheck: "false" });
  const submit = (event) => {
    event.preventDefault();
    const name = input.value.trim();
    if (name === "" || name.includes(":")) {
      input.setCustomValidity("A name has at least one character and no ':'.");
      input.reportValidity();
      input.setCustomValidity("");
      return;
    }
    sessionStorage.setItem(KEPT, name);
    next();
  };
  show(container, back(), h("form", { class: "card token", onsubmit: submit },
    h("h2", null, "What are you called?"),
    h("label", { for: "git-name" }, "Your name"), input,
    h("p", { class: "faint" }, `This node knows no tokens: the locks in ${repository} that you take belong to this name. `,
      "Use the one that Git LFS uses."),
    h("button", { type: "submit" }, "Go on")));
  input.focus();
}

async function renderList(container, api) {
  const leaving = new AbortController();
  const list = h("div", null, h("p", { class: "faint" }, "Asking …"));
  const input = h("input", { id: "repository", placeholder: "team/repo", required: true, spellcheck: "false",
    pattern: "[A-Za-z0-9_\\-][A-Za-z0-9_.\\-]*\\/[A-Za-z0-9_\\-][A-Za-z0-9_.\\-]*", title: "TEAM/REPO" });
  const open = (event) => {
    event.preventDefault();
    location.hash = `#/git?repo=${encodeURIComponent(input.value.trim())}`;
  };
  show(container,
    h("section", { class: "card" }, h("h2", null, "Repositories"), list),
    h("form", { class: "card row", onsubmit: open },
      h("label", { for: "repository" }, "Open a repository"), input, h("button", { type: "submit" }, "Open"),
      h("p", { class: "faint" }, "A repository is there as soon as somebody locks a file in it.")));
  load().catch((error) => {
    if (!leaving.signal.aborted) show(list, h("p", { class: "notice", role: "alert" }, `The repositories could not be listed: ${error.message}.`));
  });
  return () => leaving.abort();

  async function load() {
    const all = [];
    let after = "";
    do {
      const page = await api.json(`/v1/git/repositories${after}`, { signal: leaving.signal });
      all.push(...page.repositories);
      after = page.next === null ? null : `?after=${encodeURIComponent(page.next)}`;
    } while (after !== null);
    const now = Date.now();
    const row = (it) => h("tr", null,
      h("td", { class: "name" }, h("a", { href: `#/git?repo=${encodeURIComponent(it.repository)}` }, it.repository)),
      h("td", { class: "number" }, it.locks),
      h("td", { class: "number" }, it.oldest === null ? "–" : since(Date.parse(it.oldest), now)));
    if (all.length === 0) return show(list, h("p", { class: "faint" }, "Nothing is locked in any repository that you may see."));
    return show(list, h("div", { class: "scroll" }, h("table", { class: "repositories" },
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Repository"), h("th", { scope: "col", class: "number" }, "Locks"),
        h("th", { scope: "col", class: "number" }, "Oldest"))),
      h("tbody", null, all.map(row)))));
  }
}
