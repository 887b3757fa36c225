// The page: builds its parts, keeps where it is, and draws.
import { Run } from './run.js';
import { Diagram } from './diagram.js';
import { drawNodes } from './nodes.js';
import { drawAlgorithm, drawCosts, drawExpected, drawRule, drawStep } from './details.js';
import { Controls, drawKinds, headed } from './controls.js';

const PACE = 700;

function part(name, tag, label) {
  const element = document.createElement(tag);
  element.id = name;
  if (label) element.setAttribute('aria-label', label);
  // A name without a role is not read out.
  if (label && tag === 'div') element.setAttribute('role', 'group');
  return element;
}

function start() {
  const run = new Run(JSON.parse(document.getElementById('run').textContent));
  const { algorithm, mutant, nodes, violation } = run.data;
  const now = { index: violation ? violation.event : -1, isPlaying: false, hidden: new Set(), related: null };
  const title = document.createElement('h1');
  title.textContent = `${algorithm}${mutant ? `, mutant ${mutant}` : ''} on ${nodes} nodes`;
  document.title = `${title.textContent}: a run`;
  const parts = {
    controls: part('controls', 'div', 'controls'),
    kinds: part('kinds', 'fieldset'),
    diagram: part('diagram', 'div', 'diagram'),
    step: part('step', 'section', 'this step'),
    nodes: part('nodes', 'div', 'what every node knows'),
    expected: part('expected', 'section', 'what should have happened'),
    rule: part('rule', 'section', 'the rule of this step'),
    costs: part('costs', 'section', 'costs'),
    algorithm: part('algorithm', 'details'),
  };
  parts.controls.setAttribute('role', 'toolbar');
  parts.step.setAttribute('aria-live', 'polite');
  const main = document.createElement('main');
  main.append(headed(title, run.data), ...Object.values(parts));
  document.body.append(main);

  const go = (index) => {
    now.index = Math.min(Math.max(index, -1), run.events.length - 1);
    draw();
  };
  const stop = () => {
    now.isPlaying = false;
    clearInterval(now.timer);
  };
  const advance = () => {
    if (now.index >= run.events.length - 1) stop();
    go(now.index + 1);
  };
  const actions = {
    go: (index) => { stop(); go(index); },
    forward: () => actions.go(now.index + 1),
    back: () => actions.go(now.index - 1),
    nextEntry: () => {
      const next = run.nextEntry(now.index);
      if (next >= 0) actions.go(next);
    },
    violation: () => { if (violation) actions.go(violation.event); },
    follow: () => {
      const request = now.related || now.index < 0 ? null : run.requestOf(now.index);
      now.related = request && run.related(request);
      draw();
    },
    play: () => {
      if (now.isPlaying) {
        stop();
      } else {
        now.isPlaying = true;
        if (now.index >= run.events.length - 1) now.index = -1;
        now.timer = setInterval(advance, PACE);
      }
      draw();
    },
  };
  const diagram = new Diagram(parts.diagram, run, actions.go);
  const controls = new Controls(parts.controls, run, actions);
  drawKinds(parts.kinds, run, (kind, isHidden) => {
    if (isHidden) now.hidden.add(kind); else now.hidden.delete(kind);
    draw();
  });
  drawAlgorithm(parts.algorithm, run);

  function draw() {
    diagram.draw(now);
    controls.show(now);
    drawNodes(parts.nodes, run, now.index);
    drawStep(parts.step, run, now.index);
    drawExpected(parts.expected, run, now.index, actions.go);
    drawRule(parts.rule, run, now.index);
    drawCosts(parts.costs, run, now.index);
    document.body.dataset.step = now.index + 1;
  }
  new ResizeObserver(() => diagram.draw(now)).observe(parts.diagram);
  draw();
}

start();
