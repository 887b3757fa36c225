// The step in words, what should have happened, costs beside theory, and the algorithm's own text.
import { valueText } from './run.js';

function paragraph(text, name) {
  const element = document.createElement('p');
  if (name) element.className = name;
  element.textContent = text;
  return element;
}

// A paragraph of a header: its first words are in bold, code is between backticks.
function headerParagraph(text) {
  const element = document.createElement('p');
  for (const part of text.split(/(\*\*[^*]+\*\*|`[^`]+`)/)) {
    if (part.startsWith('**')) {
      const bold = document.createElement('strong');
      bold.textContent = part.slice(2, -2);
      element.append(bold);
    } else if (part.startsWith('`')) {
      const code = document.createElement('code');
      code.textContent = part.slice(1, -1);
      element.append(code);
    } else {
      element.append(part);
    }
  }
  return element;
}

function effects(title, ours, others) {
  const box = document.createElement('div');
  const name = document.createElement('h3');
  name.textContent = title;
  const list = document.createElement('ul');
  for (const [at, text] of (ours.length ? ours : ['does nothing']).entries()) {
    const item = document.createElement('li');
    item.textContent = text;
    if (text !== others[at]) item.className = 'differs';
    list.append(item);
  }
  box.append(name, list);
  return box;
}

export function drawExpected(place, run, index, go) {
  const { expected, mutant } = run.data;
  place.hidden = !expected;
  if (!expected) return;
  const title = document.createElement('h2');
  title.textContent = 'What should have happened';
  const content = [title];
  const link = (at, text) => {
    const button = document.createElement('button');
    button.textContent = text;
    button.addEventListener('click', () => go(at));
    return button;
  };
  if (expected.knows) {
    const [at, variables] = expected.knows;
    const other = run.stateAt(at)[run.events[at].node];
    const differing = variables.filter((variable, which) => {
      return other[which] === undefined || valueText(other[which]) !== valueText(variable.value);
    });
    const words = differing.map((variable) => `${variable.name} ${valueText(variable.value)}`).join(', ');
    const text = `From step ${at + 1} on node ${run.events[at].node} of '${mutant}' knows something else; without the flaw: ${words}.`;
    content.push(paragraph(text));
    if (at !== expected.event) content.push(link(at, `Go to step ${at + 1}`));
  }
  if (expected.event !== undefined) {
    const at = expected.event;
    content.push(paragraph(`With the same inputs the correct algorithm does something else at step ${at + 1} for the first time.`));
    const both = document.createElement('div');
    both.className = 'both';
    both.append(
      effects(`with '${mutant}'`, expected.broken, expected.correct),
      effects('correct', expected.correct, expected.broken),
    );
    content.push(both, link(at, `Go to step ${at + 1}`));
  }
  place.replaceChildren(...content);
  place.classList.toggle('here', index === expected.event);
}

export function drawStep(place, run, index) {
  const { before, violation, ticks } = run.data;
  const event = run.events[index];
  const content = [];
  if (!event) {
    content.push(paragraph('Before the first step.', 'words'));
  } else {
    const when = ticks ? `time ${event.at / ticks}` : `step ${event.at}`;
    content.push(paragraph(`${index + 1 + before.events} · ${when}`, 'when'));
    content.push(paragraph(event.text, 'words'));
  }
  if (violation && violation.event === index) content.push(paragraph(`✗ ${violation.what}`, 'broken'));
  place.replaceChildren(...content);
}

// The handler that took the step, as it is in the algorithm's source, and what its message says.
export function drawRule(place, run, index) {
  const rule = run.ruleOf(index);
  place.hidden = !rule;
  if (!rule) return;
  const title = document.createElement('h2');
  title.textContent = 'The rule of this step';
  const content = [title];
  if (rule.says) content.push(headerParagraph(rule.says));
  const { mutant, breaks } = run.data;
  if (mutant) content.push(paragraph(`The rule of the correct algorithm. The flaw of '${mutant}': ${breaks}.`, 'flaw'));
  const code = document.createElement('pre');
  code.tabIndex = 0;
  code.setAttribute('aria-label', 'source of the handler');
  code.textContent = rule.code;
  content.push(code);
  if (rule.within) content.push(within(rule.within, place.querySelector('details')?.open));
  place.replaceChildren(...content);
}

// How a message comes to its rule: mostly the same, so it is folded.
function within(source, isOpen) {
  const box = document.createElement('details');
  box.open = Boolean(isOpen);
  const title = document.createElement('summary');
  title.textContent = 'How a message comes there';
  const code = document.createElement('pre');
  code.textContent = source;
  code.tabIndex = 0;
  code.setAttribute('aria-label', 'source of what calls the handler');
  box.append(title, code);
  return box;
}

function counted(count, one, many) {
  return `${count} ${count === 1 ? one : many}`;
}

export function drawCosts(place, run, index) {
  const { theory, before } = run.data;
  const messages = index < 0 ? before.messages : run.messages[index];
  const entries = index < 0 ? before.entries : run.entries[index];
  const range = ([from, to]) => (from === to ? from.toFixed(2) : `${from.toFixed(2)} to ${to.toFixed(2)}`);
  const each = entries ? (messages / entries).toFixed(2) : '–';
  place.replaceChildren(
    paragraph(`${counted(messages, 'message', 'messages')}, ${counted(entries, 'entry', 'entries')}: ${each} per entry`, 'words'),
    paragraph(`Theory: ${theory.messages}. Here ${range(theory.low)} at low load, ${range(theory.high)} at high load.`),
  );
}

export function drawAlgorithm(place, run) {
  const title = document.createElement('summary');
  title.textContent = `The algorithm: ${run.data.title}`;
  place.replaceChildren(title, ...run.data.header.map(headerParagraph));
}
