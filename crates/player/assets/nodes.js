// What every node knows: a card for each, with the variables of the paper.
import { valueText } from './run.js';

export function drawNodes(place, run, index) {
  const state = run.stateAt(index);
  const event = run.events[index];
  const changed = new Set((event?.changes ?? []).map(([which]) => which));
  const cards = state.map((values, node) => {
    const phase = run.phaseOf(node, index);
    const card = document.createElement('section');
    card.className = `node ${phase}${event?.node === node ? ' steps' : ''}`;
    card.setAttribute('aria-label', `node ${node}, ${phase}`);
    const title = document.createElement('h3');
    title.append(`node ${node}`);
    const badge = document.createElement('span');
    badge.textContent = phase;
    title.append(badge);
    const list = document.createElement('dl');
    values.forEach((value, which) => {
      const name = run.data.start[node][which].name;
      if (name === 'phase') return;
      const term = document.createElement('dt');
      const text = document.createElement('dd');
      term.textContent = name;
      text.textContent = valueText(value);
      if (event?.node === node && changed.has(which)) text.className = 'changed';
      list.append(term, text);
    });
    card.append(title, list);
    return card;
  });
  place.replaceChildren(...cards);
}
