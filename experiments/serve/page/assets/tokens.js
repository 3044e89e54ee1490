// Tokens as the model reads them, in a row that wraps, and numbers of theirs as tints, bars and a table.

import {el, table, disclosure, scrolling} from './dom.js';

/** The largest size of some numbers, at least a tiny one, so that they can be divided by it. */
export function largest(values) {
  return values.reduce((most, v) => Math.max(most, Math.abs(v)), 1e-12);
}

/** A character as its number, as U+200D. */
function codePoint(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
}

function content({token, in: where}) {
  if (where === 'special') return el('bdi', {}, token);
  if (/^[\p{C}\p{Z}\p{M}]+$/u.test(token)) return el('bdi', {}, [...token].map(codePoint).join(' ')); // nothing to see
  const [, joint, rest] = /^(##|▁|Ġ)?(.*)$/su.exec(token);
  return el('bdi', {}, joint ? el('span', {class: 'joint'}, joint) : null, rest);
}

/**
 * Returns a list of tokens. values, if there are any, tint them: from 0 to most, or from -most to most if they are
 * signed. describe says a value in words, for the title. pick makes them buttons, of which the one at picked is
 * pressed: arrow keys move between them, and pick is called with the index. The title has the token's part of texts if
 * that is another string, as of [UNK].
 */
export function tokenList(tokens, options) {
  const {values = null, most = 1, isSigned = false, describe = String, texts = null, label} = options;
  const {pick = null, picked = 0} = options;
  let part = 'text';
  const items = tokens.map((token, i) => {
    const value = values?.[i] ?? 0;
    const size = Math.min(1, Math.abs(value) / most);
    const attributes = {
      class: `token ${token.in}`, 'data-i': String(i), '--size': values ? size.toFixed(3) : null,
      'data-sign': values && isSigned && size >= 0.05 ? (value > 0 ? 'plus' : 'minus') : null,
      title: titleOf(token, texts, values ? describe(value) : ''),
    };
    const bar = values && !isSigned ? el('span', {class: 'level', 'aria-hidden': 'true'}) : null;
    const spoken = values ? el('span', {class: 'unseen'}, ` ${describe(value)}`) : null;
    const node = pick
      ? el('button', {...attributes, type: 'button', 'aria-pressed': String(i === picked),
        tabindex: i === picked ? '0' : '-1', onclick: () => pick(i)}, bar, content(token), spoken)
      : el('span', attributes, bar, content(token), spoken);
    const breaks = token.in === 'pair' && part !== 'pair';
    if (token.in !== 'special') part = token.in;
    return el('li', {class: breaks ? 'second' : null}, node);
  });
  const list = el('ol', {class: values && !isSigned ? 'tokens levels' : 'tokens', 'aria-label': label}, items);
  if (pick) list.addEventListener('keydown', (event) => moveFocus(event, list));
  return pick ? list : scrolling(list);
}

/** What a token is of the text, unless it is the same string, and its value. */
function titleOf(token, texts, value) {
  const text = texts ? textOf(token, texts) : '';
  return [text === token.token ? '' : text, value].filter(Boolean).join(': ') || null;
}

/** Moves the focus between the buttons of a list by arrow keys, Home and End, in the direction of the list. */
function moveFocus(event, list) {
  const buttons = [...list.querySelectorAll('button')];
  const at = buttons.indexOf(document.activeElement);
  const forward = getComputedStyle(list).direction === 'rtl' ? 'ArrowLeft' : 'ArrowRight';
  const steps = {[forward]: 1, ArrowDown: 1, [forward === 'ArrowRight' ? 'ArrowLeft' : 'ArrowRight']: -1, ArrowUp: -1,
    Home: -at, End: buttons.length - 1 - at};
  const next = buttons[at + (steps[event.key] ?? Number.NaN)];
  if (!next) return;
  event.preventDefault();
  buttons[at].tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
  next.click();
}

let numbersOpen = false; // as it was left

/** Returns a button that shows the numbers of tokens in a table. columns are [heading, values, format]. */
export function numbersTable(tokens, columns, texts, caption) {
  const toggled = (open) => { numbersOpen = open; };
  return disclosure('Show numbers', 'Hide numbers', numbersOpen, toggled, () => table(caption,
    ['#', 'Token', 'Text', ...columns.map(([heading]) => heading)],
    tokens.map((token, i) => [String(i), el('bdi', {}, token.token), el('bdi', {}, textOf(token, texts)),
      ...columns.map(([, values, format]) => format(values[i]))])));
}

/** The part of the text that a token is; "" of special tokens. */
export function textOf(token, {text, pair = ''}) {
  return token.in === 'special' ? '' : (token.in === 'pair' ? pair : text).slice(token.start, token.end);
}

const scripts = ['Hebrew', 'Arabic', 'Syriac', 'Thaana', 'Nko', 'Adlam'];
const rightToLeft = new RegExp(`[${scripts.map((name) => `\\p{Script=${name}}`).join('')}]`, 'u');

/** The direction of the first letter of the tokens' texts. */
export function directionOf(tokens, texts) {
  const letters = tokens.map((token) => /\p{L}/u.exec(textOf(token, texts))?.[0] ?? '');
  return rightToLeft.test(letters.find(Boolean) ?? '') ? 'rtl' : 'ltr';
}
