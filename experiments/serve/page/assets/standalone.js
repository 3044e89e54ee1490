// A page with one explanation, which is in the page: that of jenga explain.

import {el, scrolling} from './dom.js';
import {answerCards, notices} from './answers.js';
import {explanationView} from './look.js';

const explanation = JSON.parse(document.getElementById('data').textContent);
const {prediction} = explanation;

const original = (text) => scrolling(el('p', {class: 'text', dir: 'auto'}, text));
document.getElementById('explanation').replaceChildren(
  el('section', {'aria-labelledby': 'text-title'}, el('h2', {id: 'text-title'}, 'Text'), original(prediction.text),
    prediction.pair ? original(prediction.pair) : null),
  el('section', {'aria-labelledby': 'answers-title'},
    el('div', {class: 'heading'}, el('h2', {id: 'answers-title'}, 'Answers')),
    notices(prediction, []), el('div', {class: 'answers'}, answerCards(prediction, []))),
  el('section', {'aria-labelledby': 'look-title'},
    el('div', {class: 'heading'}, el('h2', {id: 'look-title'}, 'Where the model looked')),
    explanationView(explanation)));
