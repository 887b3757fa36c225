// The page of a run on an evolving graph.
import { button, headed, helpDialog } from './controls.js';
import { svgElement } from './svg.js';
import { ContactRun } from './journeys.js';
import { drawGraph } from './graph.js';
import { Timeline } from './timeline.js';

const TEMPO = 600;

const KEYS = [
  ['space', 'play or pause'],
  ['→ ←', 'to the next instant at which something changes, or back'],
  ['Home End', 'to the beginning, to the end'],
  ['n', 'to the next entry'],
  ['j', 'the journey by which the next entry could be known: from who asked to who holds the token'],
  ['?', 'this help'],
];

function section(name, tag, label) {
  const element = document.createElement(tag);
  element.id = name;
  if (label) element.setAttribute('aria-label', label);
  // A name without a role is not read out.
  if (label && tag === 'div') element.setAttribute('role', 'group');
  return element;
}

function text(words, name) {
  const element = document.createElement('p');
  if (name) element.className = name;
  element.textContent = words;
  return element;
}

class ContactPage {
  constructor(data) {
    this.run = new ContactRun(data);
    this.index = 0;
    this.journey = null;
    this.build(data);
    document.addEventListener('keydown', (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.parts.diagram);
    this.draw();
  }

  build(data) {
    const parts = {
      controls: section('controls', 'div', 'controls'),
      ways: section('ways', 'form'),
      graph: section('graph', 'div'),
      step: section('step', 'section', 'this instant'),
      diagram: section('diagram', 'div', 'contacts over time'),
      nodes: section('nodes', 'div', 'the labels'),
      algorithm: section('algorithm', 'details'),
    };
    this.parts = parts;
    const title = document.createElement('h1');
    title.textContent = data.title;
    document.title = `${data.title}: a run`;
    this.svg = svgElement('svg', { role: 'img' });
    parts.graph.append(this.svg);
    parts.step.setAttribute('aria-live', 'polite');
    parts.controls.setAttribute('role', 'toolbar');
    this.playing = button('Play', 'Space', () => this.play());
    this.slider = document.createElement('input');
    Object.assign(this.slider, { type: 'range', min: 0, max: this.run.instants.length - 1 });
    this.slider.setAttribute('aria-label', 'instant');
    this.slider.addEventListener('input', () => this.go(Number(this.slider.value)));
    this.help = helpDialog(KEYS);
    parts.controls.append(
      button('◀ Back', 'ArrowLeft', () => this.go(this.index - 1)),
      this.playing,
      button('Step ▶', 'ArrowRight', () => this.go(this.index + 1)),
      button('Next entry', 'n', () => this.nextEntry()),
      button('?', '?', () => this.help.showModal()),
      this.slider,
    );
    this.buildWays(data.names);
    this.timeline = new Timeline(parts.diagram, this.run, (index) => this.go(index));
    const summary = document.createElement('summary');
    summary.textContent = `The algorithm: ${data.algorithm}`;
    parts.algorithm.append(summary, ...data.header.map((words) => text(words.replace(/[*`]/g, ''))));
    const main = document.createElement('main');
    main.className = 'contacts';
    main.append(headed(title, data), ...Object.values(parts));
    document.body.append(main, this.help);
  }

  // Which journey is drawn.
  buildWays(names) {
    const choice = (label) => {
      const field = document.createElement('select');
      field.setAttribute('aria-label', label);
      names.forEach((name, node) => field.append(new Option(name, node)));
      field.addEventListener('change', () => this.travel());
      return field;
    };
    [this.from, this.to] = [choice('journey from'), choice('journey to')];
    this.to.selectedIndex = Math.min(1, names.length - 1);
    this.drawn = document.createElement('input');
    this.drawn.type = 'checkbox';
    this.drawn.addEventListener('change', () => this.travel());
    const label = document.createElement('label');
    label.append(this.drawn, 'Draw the foremost journey from');
    this.parts.ways.append(label, this.from, 'to', this.to, button('Of the next entry', 'j', () => this.travelOfEntry()));
    this.way = text('', 'when');
    this.parts.ways.append(this.way);
    this.parts.ways.addEventListener('submit', (event) => event.preventDefault());
  }

  // The next one to enter has to hear of the token, or others of its request.
  travelOfEntry() {
    const { run } = this;
    const entry = run.data.entries.find(({ entered }) => run.placeOf(entered) > this.index);
    if (!entry) return;
    const holder = run.labels[this.index].findIndex(({ token }) => token);
    const others = run.data.names.findIndex((_, node) => node !== entry.node);
    this.from.value = entry.node;
    this.to.value = holder >= 0 && holder !== entry.node ? holder : others;
    this.drawn.checked = true;
    this.travel();
  }

  travel() {
    const { names } = this.run.data;
    const [from, to] = [Number(this.from.value), Number(this.to.value)];
    this.journey = this.drawn.checked && from !== to ? this.run.foremost(from, to, this.index) : null;
    if (!this.drawn.checked) {
      this.way.textContent = '';
    } else if (from === to) {
      this.way.textContent = 'A journey leads to another node.';
    } else if (this.journey) {
      const hops = this.journey.map((hop) => `${names[hop.from]} meets ${names[hop.to]} at ${this.run.instants[hop.index].at}`);
      this.way.textContent = `${hops.join(', ')}.`;
    } else {
      this.way.textContent = `No journey leads from ${names[from]} to ${names[to]} from here on.`;
    }
    this.draw();
  }

  show(index) {
    this.index = Math.min(Math.max(index, 0), this.run.instants.length - 1);
    this.travel();
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
  }

  go(index) {
    this.stop();
    this.show(index);
  }

  play() {
    if (this.timer) {
      this.stop();
      return this.draw();
    }
    if (this.index === this.run.instants.length - 1) this.index = 0;
    this.timer = setInterval(() => {
      if (this.index >= this.run.instants.length - 2) this.stop();
      this.show(this.index + 1);
    }, TEMPO);
    this.draw();
  }

  nextEntry() {
    const next = this.run.nextEntry(this.index);
    if (next >= 0) this.go(next);
  }

  draw() {
    const { run, index } = this;
    drawGraph(this.svg, run, index, this.journey);
    this.timeline.draw(this);
    this.drawInstant();
    this.drawLabels();
    this.slider.value = index;
    this.playing.textContent = this.timer ? 'Pause' : 'Play';
    document.body.dataset.step = index;
  }

  drawInstant() {
    const { run, index } = this;
    const { names, entries, violation } = run.data;
    const meet = run.instants[index].edges.map(([a, b]) => `${names[a]}–${names[b]}`);
    const shown = meet.length > 12 ? `${meet.slice(0, 12).join(', ')} and ${meet.length - 12} more` : meet.join(', ');
    const content = [
      text(run.when(index), 'when'),
      text(meet.length ? `Meet: ${shown}` : 'Nobody meets.', 'words'),
    ];
    for (const { node, asked, entered } of entries) {
      if (run.placeOf(entered) !== index) continue;
      content.push(text(`${names[node]} enters at ${entered}; it asked at ${asked}.`, 'entered'));
    }
    const done = entries.filter(({ entered }) => run.placeOf(entered) <= index).length;
    content.push(text(`${done} of ${entries.length} entries so far.`, 'when'));
    const isLast = index === run.instants.length - 1;
    if (violation && isLast) content.push(text(`✗ ${violation}`, 'broken'));
    this.parts.step.replaceChildren(...content);
  }

  drawLabels() {
    const { run, index } = this;
    const { names } = run.data;
    const changed = new Map(index > 0 ? run.instants[index].labels : []);
    const cards = run.labels[index].map((label, node) => {
      const card = document.createElement('section');
      card.className = `node ${label.phase}${changed.has(node) ? ' steps' : ''}`;
      card.setAttribute('aria-label', `${names[node]}, ${label.phase}`);
      const title = document.createElement('h3');
      const badge = document.createElement('span');
      badge.textContent = label.phase;
      title.append(names[node], badge);
      const list = document.createElement('dl');
      const row = (name, words) => {
        const term = document.createElement('dt');
        const value = document.createElement('dd');
        term.textContent = name;
        value.textContent = words;
        list.append(term, value);
      };
      if (label.token) row('token', 'here');
      const knows = label.knows.map(([who, answers]) => (answers ? `${names[who]} (${answers} ✓)` : names[who]));
      row('requests', knows.length ? knows.join(', ') : 'none');
      card.append(title, list);
      return card;
    });
    this.parts.nodes.replaceChildren(...cards);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || this.help.open) return;
    if (event.target instanceof HTMLSelectElement) return;
    const isField = event.target instanceof HTMLButtonElement || event.target instanceof HTMLInputElement;
    if (event.key === ' ' && isField) return;
    const acts = {
      ' ': () => this.play(),
      ArrowRight: () => this.go(this.index + 1),
      ArrowLeft: () => this.go(this.index - 1),
      Home: () => this.go(0),
      End: () => this.go(Infinity),
      n: () => this.nextEntry(),
      j: () => this.travelOfEntry(),
      '?': () => this.help.showModal(),
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }
}

new ContactPage(JSON.parse(document.getElementById('run').textContent));
