// 'Predict the next step': the page asks what a node will do, and compares.
import { button } from './controls.js';

function box(label, value) {
  const element = document.createElement('label');
  const field = document.createElement('input');
  field.type = 'checkbox';
  field.value = value;
  element.append(field, label);
  return element;
}

// What the last step of a state did: entries and messages, as the boxes are called.
function outcomes(state) {
  const step = state.steps.length;
  const events = state.run.events.filter((event) => event.at === step);
  const done = new Set();
  for (const event of events) {
    if (event.granted !== undefined) done.add('enters');
    for (const { kind, to } of event.sends ?? []) done.add(`${kind} ${to}`);
  }
  return done;
}

export class Exercise {
  constructor(place) {
    this.place = place;
    this.right = 0;
    this.asked = 0;
  }

  get score() {
    return this.asked === 0 ? '' : `${this.right} of ${this.asked} right`;
  }

  // Asks what happens when `choice` is taken, which leads to `next`. Resolves once the user has seen it.
  ask(choice, next) {
    return new Promise((resolve) => {
      const { place } = this;
      const title = document.createElement('h2');
      title.textContent = 'Predict the next step';
      const question = document.createElement('p');
      question.className = 'words';
      question.textContent = `${choice.words}. What does node ${choice.node} do then?`;
      const form = document.createElement('form');
      const boxes = document.createElement('div');
      boxes.className = 'boxes';
      boxes.append(box(`node ${choice.node} enters`, 'enters'));
      boxes.append(this.messages(choice.node, next));
      const hint = document.createElement('p');
      hint.className = 'when';
      hint.textContent = 'Tick all that it does; tick nothing if it does nothing.';
      const check = button('Check', 'Enter', () => {});
      check.type = 'submit';
      const finish = () => {
        place.hidden = true;
        place.replaceChildren();
        resolve();
      };
      const skip = button('Skip', 'Escape', finish);
      const row = document.createElement('div');
      row.className = 'row';
      row.append(check, skip);
      form.append(hint, boxes, row);
      form.addEventListener('submit', (event) => {
        event.preventDefault();
        if (check.disabled) return finish();
        check.disabled = true;
        this.compare(form, row, next, finish);
      });
      form.addEventListener('keydown', (event) => {
        if (event.key === 'Escape') finish();
        if (event.key === 'Enter' && event.target.type === 'checkbox') {
          event.preventDefault();
          form.requestSubmit();
        }
      });
      place.replaceChildren(title, question, form);
      place.hidden = false;
      place.scrollIntoView({ block: 'nearest' });
      boxes.querySelector('input').focus();
    });
  }

  // A row for each other node, a column for each kind of message.
  messages(me, next) {
    const table = document.createElement('table');
    const head = table.createTHead().insertRow();
    for (const text of ['sends', ...next.kinds]) {
      const cell = document.createElement('th');
      cell.scope = 'col';
      cell.textContent = text;
      head.append(cell);
    }
    const body = table.createTBody();
    for (let node = 0; node < next.run.nodes; node += 1) {
      if (node === me) continue;
      const row = body.insertRow();
      const name = document.createElement('th');
      name.scope = 'row';
      name.textContent = `to node ${node}`;
      row.append(name);
      for (const kind of next.kinds) {
        const label = box('', `${kind} ${node}`);
        label.firstChild.setAttribute('aria-label', `sends ${kind} to node ${node}`);
        row.insertCell().append(label);
      }
    }
    const scroll = document.createElement('div');
    scroll.className = 'scroll';
    scroll.append(table);
    return scroll;
  }

  compare(form, row, next, finish) {
    const done = outcomes(next);
    const fields = [...form.querySelectorAll('input')];
    let isRight = true;
    for (const field of fields) {
      const happens = done.has(field.value);
      field.disabled = true;
      if (happens) field.parentElement.classList.add('happens');
      if (field.checked !== happens) {
        isRight = false;
        field.parentElement.classList.add('wrong');
      }
    }
    this.asked += 1;
    this.right += isRight ? 1 : 0;
    const verdict = document.createElement('p');
    verdict.className = isRight ? 'holds' : 'broken';
    verdict.setAttribute('role', 'status');
    const events = next.run.events.filter((event) => event.at === next.steps.length);
    const words = events.map((event) => event.text).join('; ');
    verdict.textContent = `${isRight ? '✓ Right' : '✗ Not quite'}: ${words}. ${this.score}.`;
    const go = button('Go on', 'Enter', finish);
    row.replaceChildren(go);
    form.insertBefore(verdict, row);
    go.focus();
  }
}
