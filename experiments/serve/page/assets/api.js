// Requests to the server. The token stays in this tab: sessionStorage is emptied when it is closed.

const tokenKey = 'jenga.token';

/** An answer that is not 200. status is 0 without an answer; retryAfter is in seconds, null if it is not said. */
export class Failure extends Error {
  constructor(status, message, retryAfter = null) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

export function keepToken(token) {
  sessionStorage.setItem(tokenKey, token);
}

/** Sends a request with a JSON body, or a GET without one, and returns the JSON of the answer. */
export async function send(path, body, signal) {
  const headers = {};
  const token = sessionStorage.getItem(tokenKey);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(path, {method: body ? 'POST' : 'GET', headers, body: body && JSON.stringify(body), signal,
      cache: 'no-store', credentials: 'same-origin', redirect: 'error'});
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Failure(0, 'The server does not answer.');
  }
  const answer = await response.json().catch((error) => {
    if (error.name === 'AbortError') throw error;
    return {error: `The answer is not JSON (status ${response.status}).`};
  });
  if (response.ok && !answer.error) return answer;
  const seconds = Number.parseInt(response.headers.get('Retry-After') ?? '', 10);
  const message = answer.error ?? `status ${response.status}`;
  throw new Failure(response.status, message, Number.isNaN(seconds) ? null : seconds);
}

/** What to tell who asked: the server's words, and what to do. */
export function explainFailure(failure) {
  const words = `${failure.message.charAt(0).toUpperCase()}${failure.message.slice(1)}`.replace(/\.?$/, '.');
  const wait = failure.retryAfter ? ` in ${failure.retryAfter} s` : '';
  switch (failure.status) {
    case 0: return `${words} Is it still running?`;
    case 401: return 'The token is missing or wrong.';
    case 429: return `The server is busy. ${words} Try again${wait}.`;
    case 503: return `${words} Try again${wait}.`;
    default: return words;
  }
}
