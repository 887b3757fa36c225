// The nodes in a circle, where no edge passes behind another node, with the contacts of an instant.
import { svgElement } from './svg.js';

const SIZE = 420;

function place(node, nodes) {
  const angle = (node / nodes) * 2 * Math.PI - Math.PI / 2;
  const radius = SIZE / 2 - 46;
  return [SIZE / 2 + radius * Math.cos(angle), SIZE / 2 + radius * Math.sin(angle)];
}

// `journey` has the hops to be drawn as arrows; those still to come are pale.
export function drawGraph(svg, run, index, journey) {
  const { names } = run.data;
  const many = names.length > 30;
  const radius = many ? 8 : 17;
  svg.replaceChildren();
  svg.setAttribute('viewBox', `0 0 ${SIZE} ${SIZE}`);
  svg.setAttribute('aria-label', `The graph at ${run.when(index)}`);
  const at = (node) => place(node, names.length);
  for (const [a, b] of run.instants[index].edges) {
    const [[x1, y1], [x2, y2]] = [at(a), at(b)];
    const contact = svgElement('g', { class: 'contact' });
    contact.append(svgElement('title', {}, `${names[a]} meets ${names[b]}`), svgElement('line', { x1, y1, x2, y2 }));
    svg.append(contact);
  }
  for (const hop of journey ?? []) svg.append(arrow(at(hop.from), at(hop.to), radius, hop.index > index));
  names.forEach((name, node) => {
    const label = run.labels[index][node];
    const [cx, cy] = at(node);
    const group = svgElement('g', { class: `spot ${label.phase}` });
    group.append(svgElement('title', {}, `${name}, ${label.phase}${label.token ? ', has the token' : ''}`));
    if (label.token) group.append(svgElement('circle', { cx, cy, r: radius + 4, class: 'token' }));
    group.append(svgElement('circle', { cx, cy, r: radius }));
    if (!many) group.append(svgElement('text', { x: cx, y: cy + 4 }, name));
    svg.append(group);
  });
}

function arrow([x1, y1], [x2, y2], radius, isLater) {
  const angle = Math.atan2(y2 - y1, x2 - x1);
  const [tipX, tipY] = [x2 - (radius + 5) * Math.cos(angle), y2 - (radius + 5) * Math.sin(angle)];
  const corner = (turn) => `${tipX - 13 * Math.cos(angle + turn)},${tipY - 13 * Math.sin(angle + turn)}`;
  const group = svgElement('g', { class: isLater ? 'hop later' : 'hop' });
  group.append(svgElement('line', { x1, y1, x2: tipX, y2: tipY }));
  group.append(svgElement('polygon', { points: `${tipX},${tipY} ${corner(0.4)} ${corner(-0.4)}` }));
  return group;
}
