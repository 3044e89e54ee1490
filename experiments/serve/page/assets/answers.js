// The answers of all tasks, a card for each task.

import {el} from './dom.js';
import {count} from './format.js';
import {answerView} from './kinds.js';

/** The tasks of a prediction in the order of the run's tasks, those that the run does not list last. */
export function taskNames(prediction, tasks) {
  const known = tasks.map((task) => task.name).filter((name) => name in prediction.tasks);
  return [...known, ...Object.keys(prediction.tasks).filter((name) => !known.includes(name))];
}

/**
 * Returns the cards of a prediction's tasks: those that need the whole width after the others. tasks are those of the
 * run, [] if they are not known.
 */
export function answerCards(prediction, tasks) {
  const cards = taskNames(prediction, tasks).map((name) => {
    const heads = Object.entries(prediction.tasks[name]);
    const views = heads.map(([head, answer]) => [head, answerView(answer, prediction)]);
    const titled = heads.length > 1 || heads[0]?.[0] !== name;
    return el('article', {class: views.some(([, view]) => view.wide) ? 'card wide' : 'card', 'data-task': name},
      el('h3', {}, el('bdi', {}, name)),
      views.map(([head, view]) => el('div', {class: 'head', 'data-head': head},
        titled ? el('h4', {}, el('bdi', {}, head)) : null, view.body)));
  });
  const isWide = (card) => card.classList.contains('wide');
  return [false, true].map((wide) => cards.filter((card) => isWide(card) === wide)).filter((some) => some.length > 0)
    .map((some) => el('div', {class: isWide(some[0]) ? 'cards wide' : 'cards'}, some));
}

/** Returns a sentence with the answers, for screen readers. */
export function spokenAnswers(prediction, tasks) {
  return taskNames(prediction, tasks).map((name) => {
    const views = Object.values(prediction.tasks[name]).map((answer) => answerView(answer, prediction).spoken);
    return `${name}: ${views.filter(Boolean).join(', ') || 'answered'}`;
  }).join('; ');
}

/** Returns what to know of how the text was read: tokens that were not, windows, tasks without an answer. */
export function notices(prediction, tasks) {
  const all = [];
  if (prediction.truncated > 0) {
    all.push(`The text is too long: ${count(prediction.truncated, 'token')} at its end were not read.`);
  }
  if (prediction.windows > 1) all.push(`The text is long: it was read in ${prediction.windows} windows.`);
  const left = tasks.filter((task) => !(task.name in prediction.tasks)).map((task) => task.name);
  if (left.length > 0) {
    const why = prediction.pair ? 'single texts only' : 'a second text is needed';
    all.push(`No answer of ${left.join(', ')}: ${why}.`);
  }
  return all.length > 0 ? [el('ul', {class: 'notice'}, all.map((text) => el('li', {}, text)))] : [];
}
