// The weights that the fusion of each task gives to tokens.

import {el} from './dom.js';
import {weight} from './format.js';
import {largest, numbersTable, tokenList} from './tokens.js';

/** Returns the panel of the fusion. */
export function fusionPanel({window, tasks, texts, direction, figures}) {
  const shown = tasks.filter((task) => window.fusion?.[task]);
  const withFigures = tasks.filter((task) => figures?.[task]);
  return [
    withFigures.length > 0 ? [el('p', {class: 'hint'}, 'The fusion of a task, whatever the text is.'),
      withFigures.map((task) => figuresOf(task, figures[task]))] : [],
    shown.length > 0 ? el('p', {class: 'hint'}, 'The weight of each token in what a task sees of the text.') : [],
    shown.map((task) => {
      const weights = window.fusion[task];
      const most = largest(weights);
      return el('section', {class: 'part'},
        el('div', {class: 'heading'}, el('h3', {}, el('bdi', {}, task)),
          el('p', {class: 'hint number'}, `full bar: ${weight(most)}`)),
        el('div', {dir: direction}, tokenList(window.tokens, {values: weights, most, describe: weight, texts,
          label: `Tokens, and their weights for ${task}`})));
    }),
    shown.length > 0
      ? numbersTable(window.tokens, shown.map((task) => [task, window.fusion[task], weight]), texts, 'Fusion weights')
      : [],
  ].flat(2);
}

/** Bars of the numbers of a task's fusion, as the weights of the encoder's layers. */
function figuresOf(task, figures) {
  const most = largest(figures);
  return el('section', {class: 'part'}, el('h3', {}, el('bdi', {}, task)),
    el('ol', {class: 'bars'}, figures.map((figure, i) => el('li', {},
      el('span', {class: 'what'}, String(i)),
      el('span', {class: 'bar', 'aria-hidden': 'true', '--part': (Math.abs(figure) / most).toFixed(3)}),
      el('span', {class: 'number'}, weight(figure))))));
}
