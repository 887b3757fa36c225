// The lab: the user is the scheduler. Every state is a link; the server takes its steps and tells the rest.
import { Run } from './run.js';
import { Diagram } from './diagram.js';
import { drawNodes } from './nodes.js';
import { drawAlgorithm, drawCosts, drawExpected, drawRule, drawStep } from './details.js';
import { button, drawKinds, helpDialog } from './controls.js';
import { ask, catalogue, readLink, writeLink } from './server.js';
import { GroupForm } from './group.js';
import { drawChoices } from './choices.js';
import { Checker } from './checker.js';
import { Exercise } from './exercise.js';

const HELP = [
  ['1 to 9', 'choose what happens next'],
  ['↓ ↑', 'from one choice to the next'],
  ['← or u', 'undo a step'],
  ['→ or r', 'take it again'],
  ['Home', 'back to the first state'],
  ['End', 'take all undone steps again'],
  ['n', 'the next step of the way that is followed'],
  ['c', 'what can still happen? again: stop'],
  ['e', 'exercise: predict every step'],
  ['g', 'another group'],
  ['?', 'this help'],
];

function part(name, tag, label) {
  const element = document.createElement(tag);
  element.id = name;
  if (label) element.setAttribute('aria-label', label);
  // A name without a role is not read out.
  if (label && tag === 'div') element.setAttribute('role', 'group');
  return element;
}

function column(name, parts) {
  const element = document.createElement('div');
  element.className = `column ${name}`;
  element.append(...parts);
  return element;
}

class Lab {
  constructor(known) {
    this.now = { said: new Map(), steps: [], ahead: [], state: null, hidden: new Set(), way: null, label: '' };
    // One action after the other, so that fast keys act on the state that they see.
    this.queue = Promise.resolve();
    this.waiting = 0;
    this.build(known);
    document.addEventListener('keydown', (event) => this.key(event));
    window.addEventListener('hashchange', () => this.openHash());
    new ResizeObserver(() => this.drawDiagram()).observe(this.parts.diagram);
    this.openHash();
  }

  build(known) {
    const parts = {
      group: part('group', 'details'),
      controls: part('controls', 'div', 'controls'),
      problem: part('problem', 'p'),
      kinds: part('kinds', 'fieldset'),
      diagram: part('diagram', 'div', 'diagram'),
      step: part('step', 'section', 'the last step'),
      choices: part('choices', 'section', 'what happens next'),
      exercise: part('exercise', 'section', 'predict the next step'),
      nodes: part('nodes', 'div', 'what every node knows'),
      checker: part('checker', 'section', 'the checker'),
      expected: part('expected', 'section', 'what should have happened'),
      rule: part('rule', 'section', 'the rule of this step'),
      costs: part('costs', 'section', 'costs'),
      algorithm: part('algorithm', 'details'),
    };
    this.parts = parts;
    this.title = document.createElement('h1');
    parts.controls.setAttribute('role', 'toolbar');
    parts.step.setAttribute('aria-live', 'polite');
    parts.problem.setAttribute('role', 'alert');
    parts.problem.hidden = true;
    parts.exercise.hidden = true;
    this.summary = document.createElement('summary');
    this.summary.textContent = 'Another group';
    parts.group.append(this.summary);
    this.form = new GroupForm(parts.group, known, (said) => {
      // What is refused can be mended in the form.
      this.act(() => this.open(said, []).then(() => { parts.group.open = false; }));
    });
    this.buildControls();
    this.checker = new Checker(parts.checker, (steps, label) => this.act(() => this.follow(steps, label)));
    this.exercise = new Exercise(parts.exercise);
    // Until there is a state there is nothing to see but what is wrong, and how to choose a group.
    const main = document.createElement('main');
    main.className = 'lab empty';
    this.main = main;
    this.title.textContent = 'The lab';
    main.append(
      this.title, parts.group, parts.controls, parts.problem, parts.kinds,
      column('left', [parts.diagram, parts.exercise, parts.choices, parts.checker, parts.expected, parts.costs, parts.algorithm]),
      column('right', [parts.step, parts.nodes, parts.rule]),
    );
    this.help = helpDialog(HELP);
    document.body.append(main, this.help);
  }

  buildControls() {
    const undo = button('↶ Undo', 'ArrowLeft', () => this.act(() => this.undo()));
    const redo = button('↷ Redo', 'ArrowRight', () => this.act(() => this.redo()));
    const first = button('Start over', 'Home', () => this.act(() => this.goTo(0)));
    const copy = button('Copy link', '', () => this.copy(copy));
    const predict = button('Predict', 'e', () => this.act(() => this.togglePredict()));
    this.nextOfWay = button('Next of this way', 'n', () => this.act(() => this.followOne()));
    this.nextOfWay.classList.add('planned');
    this.nextOfWay.hidden = true;
    this.leaveWay = button('Leave it', '', () => this.act(() => this.stopFollowing()));
    this.leaveWay.hidden = true;
    this.score = document.createElement('span');
    this.score.id = 'score';
    this.buttons = { undo, redo, first, predict };
    this.parts.controls.append(
      undo, redo, first, copy, predict, this.score, this.nextOfWay, this.leaveWay,
      button('?', '?', () => this.help.showModal()),
    );
  }

  // Does it after all that is still being done.
  act(what) {
    this.waiting += 1;
    document.body.dataset.waiting = this.waiting;
    this.queue = this.queue.then(what).catch((error) => this.complain(error.message)).then(() => {
      this.waiting -= 1;
      document.body.dataset.waiting = this.waiting;
    });
    return this.queue;
  }

  complain(text) {
    this.parts.problem.textContent = text ?? '';
    this.parts.problem.hidden = !text;
    if (text && !this.now.state) this.parts.group.open = true;
  }

  openHash() {
    const { said, steps } = readLink(window.location.hash);
    if (!said.has('algorithm')) said.set('algorithm', 'naimi-trehel');
    if (this.now.state && writeLink(said, steps) === this.link()) return;
    this.act(() => this.open(said, steps));
  }

  link() {
    return writeLink(this.now.said, this.now.steps);
  }

  fetch(said, steps) {
    return ask('/state', { link: writeLink(said, steps) });
  }

  async open(said, steps) {
    let state;
    try {
      state = await this.fetch(said, steps);
    } catch (error) {
      if (!this.now.state) this.form.show(said);
      throw error;
    }
    this.now.said = said;
    this.now.ahead = [];
    this.now.way = null;
    this.now.hidden = new Set();
    this.form.show(said);
    this.show(state);
  }

  // Shows a state of the same group.
  show(state) {
    const { now, parts } = this;
    now.state = state;
    now.steps = state.steps;
    this.run = new Run(state.run);
    this.index = this.run.events.length - 1;
    window.history.replaceState(null, '', `#${this.link()}`);
    this.complain(state.problem);
    this.draw();
    // What is found does not depend on the exercise.
    const asked = new Map(now.said);
    asked.delete('predict');
    this.checker.show(writeLink(asked, now.steps));
    parts.choices.scrollTop = 0;
  }

  isPredicting() {
    return this.now.said.get('predict') === 'yes';
  }

  async choose(step) {
    const { now } = this;
    const choice = now.state.possible.find((it) => it.step === step);
    if (!choice) return;
    const state = await this.fetch(now.said, [...now.steps, step]);
    const isAsked = this.isPredicting() && !['crash', 'cut'].includes(choice.kind);
    if (isAsked) await this.predict(choice, state);
    now.ahead = now.ahead[0] === step ? now.ahead.slice(1) : [];
    now.way = now.way?.[0] === step ? now.way.slice(1) : null;
    this.show(state);
    if (isAsked) this.parts.choices.querySelector('button')?.focus();
  }

  async predict(choice, state) {
    this.parts.choices.hidden = true;
    await this.exercise.ask(choice, state);
    this.parts.choices.hidden = false;
  }

  async togglePredict() {
    const { said } = this.now;
    if (this.isPredicting()) said.delete('predict'); else said.set('predict', 'yes');
    this.form.isPredicting = this.isPredicting();
    this.show(this.now.state);
  }

  // Undoes or redoes until so many steps are taken.
  async goTo(count) {
    const { now } = this;
    const all = [...now.steps, ...now.ahead];
    const wanted = Math.min(Math.max(count, 0), all.length);
    if (wanted === now.steps.length) return;
    const state = await this.fetch(now.said, all.slice(0, wanted));
    now.ahead = all.slice(wanted);
    now.way = null;
    this.show(state);
  }

  undo() {
    return this.goTo(this.now.steps.length - 1);
  }

  redo() {
    return this.goTo(this.now.steps.length + 1);
  }

  // Lets the user play `steps`, one by one.
  follow(steps, label) {
    this.now.way = steps;
    this.now.label = label;
    this.draw();
    this.nextOfWay.focus();
  }

  followOne() {
    const step = this.now.way?.[0];
    return step ? this.choose(step) : undefined;
  }

  stopFollowing() {
    this.now.way = null;
    this.draw();
  }

  async copy(element) {
    let said = 'Copied';
    try {
      await navigator.clipboard.writeText(window.location.href);
    } catch {
      said = 'Take it from the address bar';
    }
    const before = element.textContent;
    element.textContent = said;
    setTimeout(() => { element.textContent = before; }, 1500);
  }

  // Which step an event of the page belongs to.
  stepOf(index) {
    return this.run.events[index]?.at ?? 0;
  }

  draw() {
    const { parts, run, now, index } = this;
    const { state } = now;
    this.main.classList.remove('empty');
    const { algorithm, mutant, nodes, requests, crashes } = state.group;
    this.title.textContent = `${algorithm}${mutant ? `, mutant ${mutant}` : ''} on ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`;
    this.summary.textContent = `Another group (here each asks ${requests === 1 ? 'once' : `up to ${requests} times`}, ${crashes || 'none'} may crash, messages ${state.group.order === 'fifo' ? 'in order' : 'in any order'})`;
    document.title = `${this.title.textContent}: the lab`;
    drawStep(parts.step, run, index);
    if (state.sameAs !== null) {
      const same = document.createElement('p');
      same.className = 'unsure';
      same.textContent = state.sameAs === 0 ? 'The group is where it began.' : `The group is in the same state as after step ${state.sameAs}.`;
      parts.step.append(same);
    }
    drawNodes(parts.nodes, run, index);
    drawExpected(parts.expected, run, index, (at) => this.act(() => this.goTo(this.stepOf(at))));
    drawRule(parts.rule, run, index);
    drawCosts(parts.costs, run, index);
    drawAlgorithm(parts.algorithm, run);
    const legend = { kinds: run.kinds, hidden: now.hidden, kindNumber: (kind) => run.kindNumber(kind) };
    drawKinds(parts.kinds, legend, (kind, isHidden) => {
      if (isHidden) now.hidden.add(kind); else now.hidden.delete(kind);
      this.drawDiagram();
    });
    parts.kinds.hidden = run.kinds.length === 0;
    drawChoices(parts.choices, state, now.way?.[0], (step) => this.act(() => this.choose(step)), (id) => this.point(id));
    this.drawControls();
    this.drawDiagram();
    document.body.dataset.step = now.steps.length;
  }

  drawControls() {
    const { now, buttons } = this;
    buttons.undo.disabled = now.steps.length === 0;
    buttons.first.disabled = now.steps.length === 0;
    buttons.redo.disabled = now.ahead.length === 0;
    buttons.predict.setAttribute('aria-pressed', String(this.isPredicting()));
    this.score.textContent = this.exercise.score;
    const rest = now.way?.length ?? 0;
    this.nextOfWay.hidden = rest === 0;
    this.leaveWay.hidden = rest === 0;
    this.nextOfWay.textContent = `Next of this way, ${rest} left (${now.label})`;
  }

  drawDiagram() {
    if (!this.run) return;
    const { diagram } = this.parts;
    if (!this.picture) {
      const choose = (at) => this.act(() => this.goTo(this.stepOf(at)));
      const deliver = (id) => {
        const choice = this.now.state.possible.find(({ message, kind }) => message === id && kind === 'message');
        if (choice) this.act(() => this.choose(choice.step));
      };
      this.picture = new Diagram(diagram, this.run, choose, deliver);
    }
    this.picture.run = this.run;
    this.picture.draw({ index: this.index, hidden: this.now.hidden, related: null });
  }

  // Shows which message a choice is about.
  point(id) {
    for (const hot of this.parts.diagram.querySelectorAll('.hot')) hot.classList.remove('hot');
    if (id === null || id === undefined) return;
    this.parts.diagram.querySelector(`[data-message="${id}"]`)?.classList.add('hot');
  }

  moveFocus(by) {
    const all = [...this.parts.choices.querySelectorAll('button')].filter((it) => it.offsetParent);
    const at = all.indexOf(document.activeElement);
    const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
    all[Math.min(Math.max(next, 0), all.length - 1)]?.focus();
  }

  key(event) {
    const typing = event.target instanceof Element && event.target.closest('form, select, pre');
    if (event.ctrlKey || event.altKey || event.metaKey || this.help.open || typing) return;
    if (!this.parts.exercise.hidden) return;
    if (!this.now.state && !['g', '?'].includes(event.key)) return;
    const digit = Number(event.key);
    const actions = {
      ArrowDown: () => this.moveFocus(1),
      ArrowUp: () => this.moveFocus(-1),
      ArrowLeft: () => this.act(() => this.undo()),
      u: () => this.act(() => this.undo()),
      ArrowRight: () => this.act(() => this.redo()),
      r: () => this.act(() => this.redo()),
      Home: () => this.act(() => this.goTo(0)),
      End: () => this.act(() => this.goTo(Infinity)),
      n: () => this.act(() => this.followOne()),
      c: () => this.act(() => { this.checker.toggle(); }),
      e: () => this.act(() => this.togglePredict()),
      g: () => {
        this.parts.group.open = !this.parts.group.open;
        if (this.parts.group.open) this.form.algorithm.focus();
      },
      '?': () => this.help.showModal(),
    };
    const number = digit >= 1 && digit <= 9 ? () => this.act(() => this.chooseNumber(digit)) : undefined;
    const act = number ?? actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  chooseNumber(number) {
    const found = [...this.parts.choices.querySelectorAll('button.choice')][number - 1];
    return found ? this.choose(found.dataset.step) : undefined;
  }
}

async function start() {
  try {
    new Lab(await catalogue());
  } catch (error) {
    const problem = document.createElement('p');
    problem.className = 'broken';
    problem.textContent = error.message;
    document.body.append(problem);
  }
}

start();
