// A view for each kind of answers, chosen by the answer's fields: kinds of other modules may have the same ones. Fields
// that a view does not know are shown as JSON, and so is an answer without a view.

import {el, scrolling} from './dom.js';
import {number, percent} from './format.js';
import {legend, markedText, palette, taggedText} from './marks.js';

/** Returns {body, wide, spoken} of an answer: its nodes, whether it needs the whole width, and a summary. */
export function answerView(answer, {text, pair = ''}) {
  const isObject = answer !== null && typeof answer === 'object' && !Array.isArray(answer);
  const found = isObject && views.find(({fits}) => fits(answer));
  if (!found) return {body: [inJSON(answer)], wide: true, spoken: ''};
  const view = found.show(answer, text, pair);
  const rest = Object.entries(answer).filter(([field]) => !found.fields.includes(field));
  return rest.length === 0 ? view : {...view, body: [...view.body, inJSON(Object.fromEntries(rest))]};
}

const isText = (v) => typeof v === 'string';
const isProbability = (v) => v === null || typeof v === 'number';
const isGuess = (v) => isText(v?.label) && isProbability(v.probability);
const isSpan = (v) => Number.isInteger(v?.start) && Number.isInteger(v?.end);
const isMark = (v) => isSpan(v) && isText(v.label);
const isNumber = (v) => typeof v.value === 'number' || typeof v.alarm === 'boolean' || isEmpty(v);
const isEmpty = (v) => Object.keys(v).length === 0; // a number that is not finite
const isTag = (v) => v === null || isText(v);
const isPair = (v) => Array.isArray(v) && v.every(Number.isInteger);
const isToken = (v) => isText(v?.token) && isProbability(v.probability);
const isListOf = (list, is) => Array.isArray(list) && list.every(is);

const views = [
  {fields: ['label', 'probability', 'top', 'abstained', 'set'], show: label, fits: isGuess},
  {fields: ['labels', 'top'], show: labels, fits: (a) => isListOf(a.labels, isGuess)},
  {fields: ['spans', 'words', 'tags'], show: spans, fits: (a) => isListOf(a.spans, isMark)},
  {fields: ['words', 'tags'], show: tags, fits: (a) => isListOf(a.tags, isTag) && isListOf(a.words, isPair)},
  {fields: ['answer'], show: extracted, fits: (a) => isSpan(a.answer) && isText(a.answer.text)},
  {fields: ['hidden'], show: hidden, fits: (a) => isListOf(a.hidden, (h) => isSpan(h) && isListOf(h.guesses, isToken))},
  {fields: ['value', 'alarm'], show: value, fits: isNumber},
];

function label(answer) {
  const top = answer.top?.length ? answer.top : [answer];
  const isAnswer = (one) => one.label === answer.label && !answer.abstained;
  return {
    body: [
      el('p', {class: 'verdict'},
        answer.abstained ? el('span', {class: 'none'}, 'no answer') : el('bdi', {}, answer.label)),
      bars(top, isAnswer), isListOf(answer.set, isText) ? setOf(answer.set) : null,
    ],
    spoken: `${answer.abstained ? 'no answer, likeliest ' : ''}${answer.label}, ${percent(answer.probability)}`,
  };
}

/** A set of labels that the right one is among with a probability that was chosen. */
function setOf(names) {
  return el('p', {class: 'hint'}, 'Set: ', names.length === 0 ? 'empty'
    : names.flatMap((name, i) => [i > 0 ? ', ' : '', el('bdi', {}, name)]));
}

function labels(answer) {
  const held = answer.labels.map((one) => one.label);
  const rest = (answer.top ?? []).filter((one) => !held.includes(one.label));
  const verdict = held.length === 0 ? [el('span', {class: 'none'}, 'no label')]
    : held.map((name) => el('bdi', {class: 'chip'}, name));
  return {
    body: [el('p', {class: 'verdict'}, verdict), bars([...answer.labels, ...rest], (one) => held.includes(one.label))],
    spoken: held.join(', ') || 'no label',
  };
}

/** Bars of probabilities; those that are the answer stand out. */
function bars(all, isAnswer) {
  return el('ul', {class: 'bars'}, all.map((one) => el('li', {class: isAnswer(one) ? 'chosen' : null},
    el('bdi', {class: 'what'}, one.label ?? one.token),
    el('span', {class: 'bar', 'aria-hidden': 'true', '--part': String(one.probability ?? 0)}),
    el('span', {class: 'number'}, percent(one.probability)))));
}

function spans(answer, text) {
  const hueOf = palette();
  const found = answer.spans;
  return {
    wide: true, body: [markedText(text, found, hueOf),
      found.length ? legend(found.map((s) => s.label), hueOf) : el('p', {class: 'none'}, 'No spans.')],
    spoken: found.map((s) => `${s.label} ${s.text}`).join(', ') || 'no spans',
  };
}

function tags(answer, text) {
  const hueOf = palette();
  const named = answer.tags.filter((tag) => tag !== null && tag !== 'O');
  return {
    wide: true, body: [taggedText(text, answer.words, answer.tags, hueOf), legend(named, hueOf)],
    spoken: `${named.length} tagged words`,
  };
}

function extracted({answer}, text, pair) {
  const found = answer.text !== '';
  const span = {...answer, label: 'answer'};
  return {
    wide: true,
    body: [
      el('p', {class: 'verdict'},
        found ? el('bdi', {}, answer.text) : el('span', {class: 'none'}, 'no answer in the context')),
      bars([{label: found ? answer.text : 'no answer', probability: answer.probability}], () => true),
      found ? markedText(pair, [span], palette()) : null,
    ],
    spoken: `${found ? answer.text : 'no answer'}, ${percent(answer.probability)}`,
  };
}

function hidden(answer, text, pair) {
  const hueOf = palette();
  const numbered = answer.hidden.map((h, i) => ({...h, label: String(i + 1)}));
  const marksOf = (inPair) => numbered.filter((h) => Boolean(h.in_pair) === inPair);
  if (numbered.length === 0) return {body: [el('p', {class: 'none'}, 'No mask token in the text.')], spoken: ''};
  return {
    wide: true,
    body: [
      markedText(text, marksOf(false), hueOf), marksOf(true).length ? markedText(pair, marksOf(true), hueOf) : null,
      el('ol', {class: 'guesses'}, answer.hidden.map((h) => el('li', {}, bars(h.guesses, (g) => g === h.guesses[0])))),
    ],
    spoken: answer.hidden.map((h) => h.guesses[0]?.token).join(', '),
  };
}

function value(answer) {
  const text = 'value' in answer ? number(answer.value) : 'not a finite number';
  const alarm = answer.alarm === undefined ? '' : answer.alarm ? 'alarm' : 'no alarm';
  return {
    body: [el('p', {class: 'verdict number'}, text,
      alarm ? el('span', {class: answer.alarm ? 'chip alarm' : 'chip'}, alarm) : null)],
    spoken: `${text} ${alarm}`.trim(),
  };
}

function inJSON(answer) {
  return scrolling(el('pre', {class: 'json', dir: 'auto'}, JSON.stringify(answer, null, 2)));
}
