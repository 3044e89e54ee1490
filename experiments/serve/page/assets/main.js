// The page: asks for the tasks, sends the form, shows answers and where the model looked.

import {el} from './dom.js';
import {count, time} from './format.js';
import {send, keepToken, explainFailure} from './api.js';
import {answerCards, spokenAnswers, notices} from './answers.js';
import {lookView} from './look.js';

const part = (id) => document.getElementById(id);
const likeliest = 5; // labels whose probabilities are shown

let runs = []; // of GET v1/tasks
let current = null; // controller of the request that goes on
let request = null; // that was answered last

function run() {
  return runs.find((r) => r.run === part('run').value) ?? runs[0];
}

/** Asks for the runs and their tasks; false if the server does not tell them. */
async function loadRuns() {
  try {
    runs = (await send('v1/tasks')).runs;
  } catch (failure) {
    showFailure(failure);
    return false;
  }
  showError('token-error', '');
  part('token-field').hidden = true;
  part('run').replaceChildren(...runs.map((r) => el('option', {value: r.run}, r.run)));
  part('run-field').hidden = runs.length < 2;
  showRun();
  return true;
}

/** Shows the fields that the tasks of the chosen run read. */
function showRun() {
  const {run: name, tasks} = run();
  const single = [el('bdi', {}, name), ' · ', count(tasks.length, 'task')];
  part('served').replaceChildren(...(runs.length < 2 ? single : [count(runs.length, 'run')]));
  const paired = tasks.filter((task) => !task.single);
  const only = paired.filter((task) => task.pairs);
  const questions = paired.length > 0 && paired.every((task) => task.heads.every((head) => head.output === 'span'));
  part('pair-field').hidden = paired.length === 0;
  const first = only.length === tasks.length ? 'Question' : 'Text or question';
  part('text-label').textContent = questions ? first : 'Text';
  part('pair-label').textContent = questions ? 'Context' : 'Second text';
  const others = only.length < tasks.length ? '; other tasks are answered without it' : '';
  part('pair-hint').textContent = only.length === 0 ? 'May be left empty.'
    : `Needed by ${only.map((task) => task.name).join(', ')}${others}.`;
}

function showError(id, message) {
  const error = part(id);
  error.textContent = message;
  error.hidden = message === '';
  const field = part(id.replace('-error', ''));
  if (message) field.setAttribute('aria-invalid', 'true');
  else field.removeAttribute('aria-invalid');
}

function showFailure(failure) {
  if (failure.name === 'AbortError') return; // another request took its place
  const message = explainFailure(failure);
  part('status').textContent = '';
  if (failure.status === 401) {
    const again = !part('token-field').hidden;
    part('token-field').hidden = false;
    showError('token-error', again ? message : '');
    part('token').focus();
  } else {
    showError('text-error', message);
    part('text').focus();
  }
}

function clearAnswers() {
  part('answers').hidden = true;
  part('look').hidden = true;
  look.clear();
}

async function submit() {
  current?.abort();
  const controller = current = new AbortController();
  showError('text-error', '');
  const tokenGiven = !part('token-field').hidden;
  if (tokenGiven) keepToken(part('token').value.trim());
  if ((runs.length === 0 || tokenGiven) && !await loadRuns()) return;
  const text = part('text').value;
  if (text.trim() === '') {
    if (!tokenGiven) showError('text-error', 'Write a text first.');
    part('text').focus();
    return;
  }
  const asked = {text, run: run().run, offsets: 'utf16'};
  if (!part('pair-field').hidden && part('pair').value.trim() !== '') asked.pair = part('pair').value;
  part('send').textContent = 'Predicting…';
  const begin = performance.now();
  try {
    const {predictions: [prediction]} = await send('v1/predict', {...asked, top: likeliest}, controller.signal);
    request = asked;
    showAnswers(prediction, performance.now() - begin);
    look.ask(asked);
  } catch (failure) {
    if (current !== controller) return;
    clearAnswers();
    showFailure(failure);
  } finally {
    if (current === controller) part('send').textContent = 'Predict';
  }
}

function showAnswers(prediction, took) {
  const {tasks} = run();
  part('cards').replaceChildren(...answerCards(prediction, tasks));
  part('notices').replaceChildren(...notices(prediction, tasks));
  part('took').textContent = time(took);
  part('answers').hidden = false;
  const answered = count(Object.keys(prediction.tasks).length, 'answer');
  part('status').textContent = `${answered} in ${time(took)}. ${spokenAnswers(prediction, tasks)}`;
}

const look = lookView(part('look-body'), {
  shown: (shown) => { part('look').hidden = !shown; },
  order: () => run().tasks.map((task) => task.name),
  explain: (options, signal) => send('v1/explain', {...request, ...options}, signal),
});

part('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  submit();
});
part('ask').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.isComposing) {
    event.preventDefault();
    submit();
  }
});
part('run').addEventListener('change', () => {
  clearAnswers();
  showRun();
  part('status').textContent = '';
});
part('look-toggle').addEventListener('click', (event) => {
  const open = part('look-body').hidden;
  part('look-body').hidden = !open;
  event.target.setAttribute('aria-expanded', String(open));
  event.target.textContent = open ? 'Hide' : 'Show';
  look.open(open);
});
if (/Mac|iPhone|iPad/.test(navigator.platform)) part('shortcut').firstElementChild.textContent = '⌘';
if (await loadRuns()) part('text').focus();
