// What can happen next: a button for each, with a digit for the first nine.

const GROUPS = [
  ['Messages arrive', ['message']],
  ['Applications', ['ask', 'leave']],
  ['Time and detector', ['timer', 'suspect']],
  ['Crashes', ['crash']],
  ['Crashes in the middle of a step', ['cut']],
];

// `choose` is given the step; `point` a message to show, or nothing.
export function drawChoices(place, state, plan, choose, point) {
  const title = document.createElement('h2');
  title.textContent = 'What happens next?';
  const content = [title];
  let number = 0;
  for (const [name, kinds] of GROUPS) {
    const these = state.possible.filter(({ kind }) => kinds.includes(kind));
    if (these.length === 0) continue;
    const list = document.createElement('div');
    list.className = 'choices';
    list.setAttribute('role', 'group');
    list.setAttribute('aria-label', name);
    for (const it of these) {
      number += 1;
      list.append(choiceButton(it, number, it.step === plan, choose, point));
    }
    if (kinds[0] === 'cut') {
      const rare = document.createElement('details');
      const summary = document.createElement('summary');
      summary.textContent = `${name} (${these.length})`;
      rare.append(summary, list);
      rare.open = these.some(({ step }) => step === plan);
      content.push(rare);
    } else {
      const heading = document.createElement('h3');
      heading.textContent = name;
      content.push(heading, list);
    }
  }
  if (state.possible.length === 0) {
    const end = document.createElement('p');
    end.textContent = 'Nothing can happen any more. Undo a step, or start over.';
    content.push(end);
  }
  place.replaceChildren(...content);
}

function choiceButton(it, number, isPlanned, choose, point) {
  const button = document.createElement('button');
  button.type = 'button';
  button.dataset.step = it.step;
  button.className = `choice ${it.kind}${isPlanned ? ' planned' : ''}`;
  if (number <= 9) {
    const key = document.createElement('kbd');
    key.textContent = number;
    button.append(key);
    button.setAttribute('aria-keyshortcuts', String(number));
  }
  button.append(it.words);
  button.addEventListener('click', () => choose(it.step));
  button.addEventListener('pointerenter', () => point(it.message));
  button.addEventListener('pointerleave', () => point(null));
  button.addEventListener('focus', () => point(it.message));
  button.addEventListener('blur', () => point(null));
  return button;
}
