// Elements, made from data. Texts become text nodes and nothing else: a name that looks like HTML is shown as it is.

const SVG = "http://www.w3.org/2000/svg";

// An element of HTML. `attributes` may be null; of them, functions become listeners (`onclick`), and what is
// null, undefined or false is left out. Children are texts, numbers, nodes, or lists of these; null is left out.
// There is no `style` attribute, which the page's policy forbids: use classes, or `element.style`.
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// The same of SVG.
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Shows these children and nothing else.
export function show(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

// Changes a text only if it is another one: what has not changed is not drawn anew.
export function text(element, value) {
  const wanted = String(value);
  if (element.textContent !== wanted) element.textContent = wanted;
}

// Sets a class on or off, and an attribute of the same kind, without touching what is as it should be.
export function attribute(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else {
    const wanted = value === true ? "" : String(value);
    if (element.getAttribute(name) !== wanted) element.setAttribute(name, wanted);
  }
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function" && name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else {
      attribute(element, name, value);
    }
  }
  element.append(...flat(children));
  return element;
}

function flat(children) {
  return children.flat(Infinity).filter((it) => it !== null && it !== undefined && it !== false)
    .map((it) => (it instanceof Node ? it : String(it)));
}
