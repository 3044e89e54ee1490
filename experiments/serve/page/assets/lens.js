// The lens of a focus head: a Gaussian over the tokens, for each token one, drawn as a curve above the words.

import {el, svg, choice, keepingFocus} from './dom.js';
import {weight} from './format.js';
import {numbersTable, tokenList} from './tokens.js';

const height = 120; // of the curve, in pixels
const between = 6; // points of the curve from one token to the next

// What was chosen last stays chosen.
const lensChoice = {key: null, lens: 0, token: 0};

/** The lens' value at a position; positions are in lengths of the window. */
function gaussian(position, centre, aperture) {
  return Math.exp(-((position - centre) ** 2) / (2 * aperture ** 2));
}

/** Returns the panel of the lenses. */
export function lensPanel({window, tasks, texts, direction}) {
  const node = el('div', {});
  const all = tasks.flatMap((task) => Object.entries(window.lenses[task] ?? {}).map(([head, lens]) =>
    ({key: `${task}/${head}`, title: head === task ? task : `${task}, ${head}`, lens})));
  const {tokens} = window;
  const show = () => {
    const one = all.find((l) => l.key === lensChoice.key) ?? all[0];
    const {centre, aperture} = one.lens;
    lensChoice.lens = Math.min(lensChoice.lens, centre.length - 1);
    lensChoice.token = Math.min(lensChoice.token, tokens.length - 1);
    const focused = node.querySelector('.lens')?.contains(document.activeElement);
    const [mu, sigma] = [centre[lensChoice.lens][lensChoice.token], aperture[lensChoice.lens][lensChoice.token]];
    const position = (i) => (tokens.length > 1 ? i / (tokens.length - 1) : 0);
    const values = tokens.map((_, i) => gaussian(position(i), mu, sigma));
    const scrolled = node.querySelector('.lens')?.scrollLeft ?? 0;
    const again = (change) => {
      Object.assign(lensChoice, change);
      keepingFocus(node, show);
    };
    const list = tokenList(tokens, {pick: (token) => again({token}), picked: lensChoice.token, texts,
      label: 'Tokens: choose one to see its lens'});
    const curve = svg('svg', {height, 'aria-hidden': 'true'});
    const nearest = tokens[Math.round(Math.min(1, Math.max(0, mu)) * (tokens.length - 1))];
    node.replaceChildren(
      el('div', {class: 'choices'},
        all.length > 1 ? choice('Head', all.map((l) => [l.key, l.title]), one.key,
          (key) => again({key, lens: 0})) : null,
        centre.length > 1 ? choice('Lens', centre.map((_, i) => [i, String(i)]), lensChoice.lens,
          (lens) => again({lens: Number(lens)})) : null),
      el('p', {class: 'hint', role: 'status'}, 'The lens of ',
        el('strong', {}, el('bdi', {}, tokens[lensChoice.token].token)),
        ': its centre is at ', el('bdi', {}, nearest.token),
        ` (${mu.toFixed(2)} of the window), its aperture ${sigma.toFixed(2)}.`),
      el('div', {class: 'lens', dir: direction}, curve, list),
      numbersTable(tokens, [['Lens of the token', values, weight], ['Centre', centre[lensChoice.lens], weight],
        ['Aperture', aperture[lensChoice.lens], weight]], texts, 'Lens'));
    node.querySelector('.lens').scrollLeft = scrolled;
    if (focused) list.querySelector('[aria-pressed="true"]').focus();
    requestAnimationFrame(() => draw(curve, list, (i) => gaussian(position(i), mu, sigma)));
  };
  show();
  return node;
}

/** Draws the curve above the tokens of the list. at returns its height at token i, a fraction between two. */
function draw(curve, list, at) {
  const base = list.getBoundingClientRect();
  const middles = [...list.children].map((item) => {
    const box = item.getBoundingClientRect();
    return box.left - base.left + box.width / 2;
  });
  const heightAt = (i) => (height - 4 - at(i) * (height - 12)).toFixed(1);
  const point = (i) => {
    const [left, right] = [middles[Math.floor(i)], middles[Math.ceil(i)]];
    return `${(left + (right - left) * (i % 1)).toFixed(1)} ${heightAt(i)}`;
  };
  const points = Array.from({length: (middles.length - 1) * between + 1}, (_, k) => point(k / between));
  const [first, last] = [points[0].split(' ')[0], points.at(-1).split(' ')[0]];
  curve.setAttribute('width', String(list.scrollWidth));
  curve.replaceChildren(
    svg('path', {class: 'under', d: `M${first} ${height - 4}L${points.join('L')}L${last} ${height - 4}Z`}),
    svg('path', {class: 'curve', d: `M${points.join('L')}`}),
    ...middles.map((x, i) => svg('circle', {cx: x.toFixed(1), cy: heightAt(i), r: 2.5})));
}
