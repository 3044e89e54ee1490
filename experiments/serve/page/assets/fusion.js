// The weights that the fusion of each task gives to tokens.

import {el} from './dom.js';
import {weight} from './format.js';
import {largest, numbersTable, tokenList} from './tokens.js';

/** Returns the panel of the fusion. */
export function fusionPanel({window, tasks, texts, direction}) {
  const shown = tasks.filter((task) => window.fusion[task]);
  return [
    el('p', {class: 'hint'}, 'The weight of each token in what a task sees of the text.'),
    shown.map((task) => {
      const weights = window.fusion[task];
      const most = largest(weights);
      return el('section', {class: 'part'},
        el('div', {class: 'heading'}, el('h3', {}, el('bdi', {}, task)),
          el('p', {class: 'hint number'}, `full bar: ${weight(most)}`)),
        el('div', {dir: direction}, tokenList(window.tokens, {values: weights, most, describe: weight,
          label: `Tokens, and their weights for ${task}`})));
    }),
    numbersTable(window.tokens, shown.map((task) => [task, window.fusion[task], weight]), texts, 'Fusion weights'),
  ].flat();
}
