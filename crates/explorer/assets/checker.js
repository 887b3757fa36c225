// The checker on demand: what can still happen from here.
import { button } from './controls.js';
import { ask, stepWords } from './server.js';

const EFFORTS = [[10000, 'up to 10,000 states'], [200000, 'up to 200,000 states'], [2000000, 'up to 2,000,000 states']];

function paragraph(text, name) {
  const element = document.createElement('p');
  if (name) element.className = name;
  element.textContent = text;
  return element;
}

const number = (count) => count.toLocaleString('en-GB');
const counted = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

// `follow` is given steps to be shown one after the other.
export class Checker {
  constructor(place, follow) {
    this.place = place;
    this.follow = follow;
    this.title = document.createElement('h2');
    this.title.textContent = 'The checker';
    this.ask = button('What can still happen?', 'c', () => this.toggle());
    this.effort = document.createElement('select');
    this.effort.setAttribute('aria-label', 'how far it looks');
    for (const [states, text] of EFFORTS) this.effort.append(new Option(text, states, states === 200000, states === 200000));
    this.result = document.createElement('div');
    this.result.setAttribute('aria-live', 'polite');
    const row = document.createElement('div');
    row.className = 'row';
    row.append(this.ask, this.effort);
    place.append(this.title, row, this.result);
  }

  // Another state is shown: what was found was about this one.
  show(link) {
    if (link === this.link) return;
    this.stop();
    this.link = link;
    this.result.replaceChildren();
  }

  stop() {
    this.asking?.abort();
    this.asking = null;
    this.ask.textContent = 'What can still happen?';
  }

  async toggle() {
    if (this.asking) return this.stop();
    const asking = new AbortController();
    this.asking = asking;
    this.ask.textContent = 'Stop';
    this.result.replaceChildren(paragraph('Exploring…'));
    try {
      const states = Number(this.effort.value);
      const seconds = states > 200000 ? 60 : 20;
      const seen = await ask('/explore', { link: this.link, states, seconds }, asking.signal);
      if (this.asking === asking) this.tell(seen);
    } catch (error) {
      if (error.name === 'AbortError') {
        if (!this.asking || this.asking === asking) this.result.replaceChildren(paragraph('Stopped.'));
        return;
      }
      this.result.replaceChildren(paragraph(error.message, 'broken'));
    }
    if (this.asking === asking) this.stop();
  }

  tell(seen) {
    const content = [];
    const { breach, bound } = seen;
    if (breach) {
      content.push(paragraph(`✗ ${breach.property}: ${breach.what}`, 'broken'));
      content.push(...this.way(breach));
    } else if (bound) {
      content.push(paragraph(`Nothing wrong was found, but not everything was seen: ${bound}.`, 'unsure'));
    } else {
      content.push(paragraph('✓ Nothing can go wrong from here.', 'holds'));
      content.push(paragraph(this.why(seen)));
    }
    content.push(paragraph(this.counts(seen), 'when'));
    content.push(this.entries(seen));
    this.result.replaceChildren(...content);
  }

  why(seen) {
    const ends = seen.ends === 1 ? 'In the only state in which nothing can happen any more' : `In each of the ${number(seen.ends)} states in which nothing can happen any more`;
    return `${ends} nobody waits, and nobody can wait for ever on the way.`;
  }

  counts(seen) {
    const all = seen.bound ? 'Seen so far' : 'Everything that can follow';
    const parts = [`${all}: ${counted(seen.states, 'state', 'states')}, ${counted(seen.steps, 'step', 'steps')} between them, the farthest ${counted(seen.depth, 'step', 'steps')} away`];
    parts.push(counted(seen.ends, 'end', 'ends'));
    if (seen.stuck) parts.push(`in ${number(seen.stuck)} of them somebody waits`);
    if (seen.broken) parts.push(`${counted(seen.broken, 'state breaks', 'states break')} a property`);
    const more = seen.breach && seen.bound ? ` Not everything was seen: ${seen.bound}.` : '';
    return `${parts.join('; ')}.${more}`;
  }

  // The shortest way there, to be played.
  way(breach) {
    if (breach.steps.length === 0) return [paragraph('It is broken here already.')];
    const steps = counted(breach.steps.length, 'step', 'steps');
    const words = breach.repeats
      ? `A way into it, in ${steps}; the last ${breach.repeats} of them can repeat for ever:`
      : `The shortest way there, in ${steps}:`;
    const list = document.createElement('ol');
    list.className = 'way';
    for (const step of breach.steps) {
      const item = document.createElement('li');
      const code = document.createElement('code');
      code.textContent = step;
      item.append(stepWords(step), ' ', code);
      list.append(item);
    }
    const play = button('Follow this way', '', () => this.follow(breach.steps, breach.property));
    play.classList.add('follow-breach');
    return [paragraph(words), list, play];
  }

  entries(seen) {
    const list = document.createElement('ul');
    list.className = 'entries';
    seen.entries.forEach((way, node) => {
      const item = document.createElement('li');
      if (way) {
        item.append(`node ${node} can enter in ${counted(way.length, 'step', 'steps')} `);
        const play = button('Follow', '', () => this.follow(way, `node ${node} enters`));
        play.setAttribute('aria-label', `Follow the way on which node ${node} enters`);
        item.append(play);
      } else {
        const isOpen = seen.bound || seen.broken;
        item.append(isOpen ? `no way on which node ${node} enters was found` : `node ${node} enters no more`);
      }
      list.append(item);
    });
    return list;
  }
}
