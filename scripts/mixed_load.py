#!/usr/bin/env python3
"""Loads jenga serve with good and bad requests, slow clients, disconnects and reloads, and compares each answer with jenga predict's.

    python scripts/mixed_load.py ./jenga RUN TEXTS --minutes 10

TEXTS has a text on each line. It ends with an error for a status of 500 or more, an answer other than predict's or without an answer,
and memory or goroutines that grow. Python's standard library suffices.
"""

import argparse
import collections
import contextlib
import http.client
import json
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

JSON = {"Content-Type": "application/json"}
SLOW = 3  # seconds over which a slow client sends its body
BAD = [
    (400, b'{"text": "ends early'), (422, b'{"text": 1}'), (400, b"[" * 100_000), (400, b'{"texts": []}'), (400, b"{}"),
    (400, b'{"text": "a", "unknown": 1}'), (400, b'{"text": "a", "tasks": ["unknown"]}'), (400, b'{"text": "\xff"}'),
    (400, b'{"text": "a", "top": -1}'), (404, b'{"text": "a", "run": "unknown"}'), (422, b'{"text": ""}'),
    (422, b'{"text": "a", "pair": "b"}'), (413, b'{"text": "' + b"a" * (2 << 20) + b'"}'),
    (413, b'{"texts": [' + b'"",' * (1 << 20) + b'""]}'),
]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the built binary")
    parser.add_argument("run", type=pathlib.Path, help="a run of tasks on single texts, with one of several labels")
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--reload", type=float, default=60, help="seconds between reloads")
    parser.add_argument("--port", type=int, default=8097)
    parser.add_argument("--precision", default="float32")
    return parser.parse_args()


class Load:
    """What all clients share."""

    def __init__(self, args, texts, expected):
        self.args, self.texts, self.expected = args, texts, expected
        self.counts, self.wrong, self.lock = collections.Counter(), [], threading.Lock()
        self.until = time.monotonic() + 60 * args.minutes

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def fault(self, what):
        with self.lock:
            self.counts["FAULT"] += 1
            if len(self.wrong) < 20:
                self.wrong.append(what)

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.args.port, timeout=60)


class Client(threading.Thread):
    """Sends requests of all sorts, one after the other."""

    def __init__(self, load, seed):
        super().__init__(daemon=True)
        self.load, self.random, self.http = load, random.Random(seed), load.connection()

    def run(self):
        sorts = [self.one] * 10 + [self.many] * 4 + [self.explain] * 3 + [self.bad] * 4 + [self.leave] * 2 + [self.slow]
        while time.monotonic() < self.load.until:
            sort = self.random.choice(sorts)
            try:
                sort()
            except Exception as error:  # no answer, or one that cannot be read
                self.load.fault(f"{sort.__name__}: {error!r}")
                self.http.close()
                self.http = self.load.connection()

    def post(self, path, body, what):
        """Returns the status and the object of an answer."""
        self.http.request("POST", path, body if isinstance(body, bytes) else json.dumps(body), JSON)
        answer = self.http.getresponse()
        text = answer.read()
        self.load.count(f"{what} {answer.status}")
        if answer.status >= 500:
            self.load.fault(f"{what}: {answer.status} {text[:200]}")
        return answer.status, json.loads(text)

    def compare(self, number, form, got, what):
        want = self.load.expected[form][number]
        if got.get("tasks") != want or got.get("text") != self.load.texts[number]:
            self.load.fault(f"{what} of text {number}: {got}; want {want}")

    def some(self):
        return self.random.randrange(len(self.load.texts))

    def one(self):
        number, form = self.some(), self.random.choice(sorted(self.load.expected))
        status, got = self.post("/v1/predict", {"text": self.load.texts[number], **json.loads(form)}, "one")
        if status == 200:
            self.compare(number, form, got["predictions"][0], "one")

    def many(self):
        numbers, form = [self.some() for _ in range(self.random.randint(2, 40))], self.random.choice(sorted(self.load.expected))
        body = {"texts": [self.load.texts[n] for n in numbers], **json.loads(form)}
        status, got = self.post("/v1/predict", body, "many")
        for number, prediction in zip(numbers, got["predictions"] if status == 200 else []):
            self.compare(number, form, prediction, "many")

    def explain(self):
        number, form = self.some(), self.random.choice(sorted(self.load.expected))
        if "min_probability" in form:
            return
        body = {"text": self.load.texts[number], "attention": self.random.random() < 0.5, **json.loads(form)}
        status, got = self.post("/v1/explain", body, "explain")
        if status == 200 and self.load.args.precision == "float32":
            self.compare(number, form, got["prediction"], "explain")

    def bad(self):
        want, body = self.random.choice(BAD)
        try:
            status, _ = self.post("/v1/predict", body, "bad")
        except OSError:  # a body that is refused need not be read
            if want != 413:
                raise
            self.load.count("bad, closed")
            self.http.close()
            return
        if status not in (want, 429):
            self.load.fault(f"bad: {status}, want {want}: {body[:100]}")

    def send(self, body, *pauses):
        """Sends a request in parts, and returns the open socket."""
        s = socket.create_connection(("127.0.0.1", self.load.args.port), timeout=60)
        s.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        size = -(-len(body) // (len(pauses) + 1))
        for at, pause in zip(range(0, len(body), size), (*pauses, 0)):
            s.sendall(body[at : at + size])
            time.sleep(pause)
        return s

    def leave(self):
        body = json.dumps({"texts": [self.load.texts[self.some()] for _ in range(20)]}).encode()
        with self.send(body if self.random.random() < 0.5 else body[:-1] + b" " * 9):
            self.load.count("left")

    def slow(self):
        number = self.some()
        body = json.dumps({"text": self.load.texts[number]}).encode()
        with self.send(body, *[SLOW / 3] * 3) as s:
            answer = http.client.HTTPResponse(s)
            answer.begin()
            got = json.loads(answer.read())
        self.load.count(f"slow {answer.status}")
        if answer.status == 200:
            self.compare(number, "{}", got["predictions"][0], "slow")
        elif answer.status != 429:
            self.load.fault(f"slow: {answer.status} {got}")


def predict(args, folder, texts, *flags):
    """The tasks that jenga predict answers for each text."""
    path = folder / "texts"
    path.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts), encoding="utf-8")
    done = subprocess.run([args.jenga, "predict", args.run, path, "--precision", args.precision, *flags], check=True, capture_output=True)
    return [json.loads(line)["tasks"] for line in done.stdout.splitlines()]


def sample(args, pid):
    """Resident memory in MiB, and the number of goroutines."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", args.port, timeout=60)) as metrics:
        metrics.request("GET", "/metrics")
        text = metrics.getresponse().read().decode()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1024, int(re.search(r"\ngo_goroutines (\d+)", text).group(1))


def watch(load, server):
    """Reloads the runs, by signal and by request in turn, and returns samples."""
    samples, reloads = [], 0
    begun = time.monotonic()
    while time.monotonic() < load.until:
        time.sleep(2)
        samples.append(sample(load.args, server.pid))
        if time.monotonic() < begun + load.args.reload * (reloads + 1):
            continue
        reloads += 1
        if reloads % 2:
            server.send_signal(signal.SIGHUP)
            load.count("reload by signal")
            continue
        with contextlib.closing(load.connection()) as c:
            c.request("POST", "/v1/reload", "", JSON)
            status = c.getresponse().status
        load.count(f"reload {status}")
        if status not in (200, 409):
            load.fault(f"reload: {status}")
    return samples


def start(args, log):
    """Starts the server, and waits until it answers."""
    server = subprocess.Popen([args.jenga, "serve", args.run, "--listen", f"127.0.0.1:{args.port}", "--precision", args.precision],
                              stdout=log, stderr=log)
    for _ in range(100):
        if server.poll() is not None:
            break
        with contextlib.suppress(OSError):
            sample(args, server.pid)
            return server
        time.sleep(0.1)
    server.kill()
    raise SystemExit(f"the server does not answer:\n{pathlib.Path(log.name).read_text(encoding='utf-8')}")


def run(args, load, server):
    """Loads the server, and ends it. Returns samples under load, and one after it."""
    clients = [Client(load, seed) for seed in range(args.clients)]
    try:
        for client in clients:
            client.start()
        samples = watch(load, server)
        for client in clients:
            client.join(120)
            if client.is_alive():
                load.fault("a client waits for an answer")
        time.sleep(2)
        idle = sample(args, server.pid)
        server.terminate()
        if server.wait(60) != 0:
            load.fault(f"the server ended with {server.returncode}")
    finally:
        server.kill()
    return samples, idle


def main():
    args = options()
    texts = list(dict.fromkeys(t.strip() for t in args.texts.read_text(encoding="utf-8").splitlines() if t.strip()))[:2000]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        expected = {
            "{}": predict(args, folder, texts), '{"top": 3}': predict(args, folder, texts, "--top", "3"),
            '{"min_probability": 0.4}': predict(args, folder, texts, "--min-probability", "0.4"),
        }
        load = Load(args, texts, expected)
        with open(folder / "log", "w", encoding="utf-8") as log:
            samples, idle = run(args, load, start(args, log))
        bad = [line for line in (folder / "log").read_text(encoding="utf-8").splitlines() if "panic" in line or '"ERROR"' in line]
        load.wrong += bad[:5]

    for what, n in sorted(load.counts.items()):
        print(f"{what:24}{n:9}")
    half = (len(samples) + 1) // 2
    grows = False
    for at, what in enumerate(("memory, MiB", "goroutines")):
        values = [s[at] for s in samples]
        first, last = max(values[:half]), max(values[-half:])
        print(f"{what}: {min(values):.0f} to {max(values):.0f}; most in the first half {first:.0f}, in the second {last:.0f}; idle {idle[at]:.0f}")
        grows = grows or last > 1.2 * first
    if grows or load.wrong or load.counts["FAULT"]:
        print("\n".join(load.wrong), file=sys.stderr)
        raise SystemExit("memory or goroutines grow" if grows else "there were faults")


if __name__ == "__main__":
    main()
