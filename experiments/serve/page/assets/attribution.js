// The tokens of a window, and what each adds to the logit of an answer.

import {el, choice, keepingFocus} from './dom.js';
import {signed, count} from './format.js';
import {explainFailure} from './api.js';
import {largest, numbersTable, textOf, tokenList} from './tokens.js';

const steps = 64; // of integrated gradients

// What was chosen last stays chosen.
const answerChoice = {answer: null, method: 'gradient_input'};

const methods = [['gradient_input', 'Gradient × input'], ['integrated_gradients', 'Integrated gradients']];

/** Returns the answers of a window as {key, title, task, of}: of is an Attribution. */
function answersOf({window, tasks, texts}) {
  const all = [];
  for (const task of tasks) {
    for (const [head, answers] of Object.entries(window.answers?.[task] ?? {})) {
      const name = head === task ? task : `${task}, ${head}`;
      answers.forEach((of, i) => all.push({key: `${task}/${head}/${i}`, task, head, i, of,
        title: `${name}: ${of.label}${wordOf(of, texts, task, head)}`}));
    }
  }
  return all;
}

/** The word that an answer is about, in quotation marks. */
function wordOf(of, texts, task, head) {
  if (of.word === undefined || of.word === null) return '';
  const span = texts.tasks[task]?.[head]?.words?.[of.word];
  return span ? ` – “${texts.text.slice(span[0], span[1])}”` : ` – word ${of.word + 1}`;
}

/** Returns the panel of the tokens. */
export function tokensPanel(context) {
  const node = el('div', {});
  const show = () => keepingFocus(node, () => node.replaceChildren(...content()));
  const content = () => {
    const {window, texts, direction} = context;
    const answers = answersOf(context);
    const answer = answers.find((a) => a.key === answerChoice.answer) ?? answers[0];
    if (!answer) {
      return [el('p', {class: 'hint'}, `${count(window.tokens.length, 'token')}, as the model reads them.`),
        el('div', {dir: direction}, tokenList(window.tokens, {texts, label: 'Tokens'})),
        numbersTable(window.tokens, [], texts, 'Tokens')];
    }
    const values = answer.of[answerChoice.method];
    return [
      el('div', {class: 'choices'},
        choice('Answer', answers.map((a) => [a.key, a.title]), answer.key, (key) => {
          answerChoice.answer = key;
          show();
        }),
        choice('Method', methods, answerChoice.method, (method) => {
          answerChoice.method = method;
          show();
        })),
      values ? attributed(context, answer, values) : missing(context, answer, show),
    ].flat();
  };
  show();
  return node;
}

/** The tokens with what each adds. */
function attributed({window, texts, direction}, answer, values) {
  const tokens = window.tokens;
  const sum = values.reduce((all, v) => all + v, 0);
  const [, method] = methods.find(([name]) => name === answerChoice.method);
  return [
    el('ul', {class: 'legend signs'},
      el('li', {}, el('span', {class: 'swatch', 'data-sign': 'plus', 'aria-hidden': 'true'}), 'raises the logit'),
      el('li', {}, el('span', {class: 'swatch', 'data-sign': 'minus', 'aria-hidden': 'true'}), 'lowers it'),
      el('li', {class: 'number'}, `logit ${signed(answer.of.logit)}`),
      answerChoice.method === 'integrated_gradients' && answer.of.baseline !== undefined
        ? el('li', {class: 'number'}, `without the text ${signed(answer.of.baseline)}`) : null,
      el('li', {class: 'number'}, `sum of the tokens ${signed(sum)}`)),
    el('div', {dir: direction}, tokenList(tokens, {values, most: largest(values), isSigned: true, describe: signed,
      texts, label: `Tokens, and what each adds to ${answer.title}`})),
    numbersTable(tokens, [[method, values, signed]], texts, `${method} of ${answer.title}`),
  ];
}

/** Why an answer has no gradients, as far as the notes say. */
function reasonOf(notes, {task, head}) {
  const own = `${task}, ${head}: `;
  const reasons = notes.filter((note) => note.startsWith(own) || /encoder has no gradients/.test(note));
  return reasons.map((note) => `: ${note.replace(own, '')}`).join('');
}

/** Asks for integrated gradients, which are not there yet; gradient × input always is, if the model has it. */
function missing(context, answer, show) {
  const asks = context.more && answerChoice.method === 'integrated_gradients' && answer.of.gradient_input;
  if (!asks || context.asked) {
    return [el('p', {class: 'hint'}, `There are none for this answer${reasonOf(context.notes, answer)}.`),
      el('div', {dir: context.direction}, tokenList(context.window.tokens, {texts: context.texts, label: 'Tokens'}))];
  }
  const note = el('p', {class: 'hint', role: 'status'}, `Computing in ${count(steps, 'step')}…`);
  context.more({attention: false, gradients: true, steps}).then(() => {
    context.asked = true;
    show();
  }).catch((failure) => {
    if (failure.name !== 'AbortError') note.textContent = explainFailure(failure);
  });
  return [note];
}
