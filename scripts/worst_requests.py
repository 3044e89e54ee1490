#!/usr/bin/env python3
"""Measures the memory of jenga serve, with its default limits, while thirty clients at once send the worst requests known.

    python scripts/worst_requests.py ./jenga --wordpiece MINILM [--only TEXT] [--rows TEXT]

Writes a table in Markdown: the peak of resident memory beyond that of the idle server, in MB, of runs whose texts are truncated at 512
tokens, and that read them in windows. WordPiece is that of MINILM, a model's folder; byte pairs and Unigram, with sentencepiece's NFKC,
are those of the tests in front of an encoder of BERT-base's size with random weights. It ends with an error beyond --most MB, and for a
status of 500. It needs Linux, 2 GB of disk and Python's standard library.
"""

import argparse
import array
import collections
import gzip
import http.client
import json
import pathlib
import random
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ROOT / "corpus/testdata/families"
BODY, CLIENTS = 1 << 20, 30  # bytes of a body at most, requests at once
SENDING = 6  # seconds during which a client that has its answer, or does not read it, sends again

EXPERIMENT = """
model: {{base_model: {base}, freeze: all, fusion: {{type: attention}}}}
tokenizer: {{max_length: {length}}}
tasks:
  - name: kind
    type: classification
    long: {long}
    data: {{train: {claims}/train.jsonl.gz, dev: {claims}/dev.jsonl, label: claim_type}}
  - {{name: urgency, type: classification, data: {{same_as: kind, label: urgency}}}}
  - {{name: entities, type: ner, data: {{same_as: kind}}}}
training: {{max_steps: 1, num_epochs: 1, batch_size: 4, learning_rate: 1.0e-3, eval_strategy: "no"}}
"""


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the built binary")
    parser.add_argument("--wordpiece", type=pathlib.Path, required=True, help="folder of a model with a WordPiece tokenizer")
    parser.add_argument("--only", default="", help="part of the name of the tokenizer models to measure")
    parser.add_argument("--rows", default="", help="part of the name of the rows to measure")
    parser.add_argument("--most", type=int, default=600, help="MB beyond which it is an error")
    return parser.parse_args()


def base(folder, family):
    """Writes a model of BERT-base's size with random weights in front of the tokenizer of a fixture."""
    folder.mkdir()
    text = gzip.open(FAMILIES / f"{family}.json.gz", "rt").read()
    key = '"precompiled_charsmap":"'
    text = text.replace(key, key + gzip.open(FAMILIES / "nmt_nfkc.gz", "rt").read(), 1)
    (folder / "tokenizer.json").write_text(text)
    ids = [token["id"] for token in json.loads(text)["added_tokens"]]
    vocabulary = max(len(json.loads(text)["model"]["vocab"]), *ids) + 64
    width, layers, up, positions = 768, 12, 3072, 512
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": 12, "intermediate_size": up,
        "vocab_size": vocabulary, "max_position_embeddings": positions, "type_vocab_size": 2, "hidden_act": "gelu",
        "layer_norm_eps": 1e-12}))
    shapes = {"embeddings.word_embeddings.weight": [vocabulary, width], "embeddings.position_embeddings.weight": [positions, width],
              "embeddings.token_type_embeddings.weight": [2, width]}
    norms = ["embeddings.LayerNorm"]
    for i in range(layers):
        at = f"encoder.layer.{i}."
        for name, rows, columns in [("attention.self.query", width, width), ("attention.self.key", width, width),
                                    ("attention.self.value", width, width), ("attention.output.dense", width, width),
                                    ("intermediate.dense", up, width), ("output.dense", width, up)]:
            shapes |= {f"{at}{name}.weight": [rows, columns], f"{at}{name}.bias": [rows]}
        norms += [at + "attention.output.LayerNorm", at + "output.LayerNorm"]
    for norm in norms:
        shapes |= {norm + ".weight": [width], norm + ".bias": [width]}
    header, end = {}, 0
    for name, shape in shapes.items():
        size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    draw = random.Random(1)
    block = array.array("f", [draw.gauss(0, 0.02) for _ in range(99_991)]).tobytes()  # a prime: rows differ
    ones = array.array("f", [1] * width).tobytes()
    with open(folder / "model.safetensors", "wb") as file:
        about = json.dumps(header).encode()
        file.write(struct.pack("<Q", len(about)) + about)
        for name, tensor in header.items():
            size = tensor["data_offsets"][1] - tensor["data_offsets"][0]
            file.write(ones if name.endswith("LayerNorm.weight") else (block * (size // len(block) + 1))[:size])


def text_of(unit, wrap='{{"text": "{}"}}'):
    room = BODY - len(wrap.format("").encode())
    return wrap.format(unit * (room // len(unit.encode()))).encode()


def texts(options):
    one = "a " * ((BODY - 100 - len(options) - 4 * 256) // 256 // 2)
    return ('{"texts": [' + ",".join(f'"{one}"' for _ in range(256)) + "]" + options + "}").encode()


def rows():
    """Name, path, body, and whether the answer is read."""
    predict, words = "/v1/predict", text_of('"a",', '{{"words": [{}"a"]}}')
    letters = text_of("a ")
    return [
        ("one text of U+FDFA, which becomes 18 characters", predict, text_of("\ufdfa"), True),
        ("one text of words of one letter", predict, letters, True),
        ("one word", predict, text_of("a"), True),
        ("exclamation marks", predict, text_of("!"), True),
        ("ideographs", predict, text_of("\u4e00"), True),
        ("accents", predict, text_of("e\u0301"), True),
        ("characters as escapes of JSON", predict, text_of("\\u0041"), True),
        ("a list of words of one letter", predict, words, True),
        ("a list of too many texts", predict, text_of('"",', '{{"texts": [{}""]}}'), True),
        ("a list of empty objects", predict, text_of("{},", '{{"texts": [{}""]}}'), True),
        ("256 texts of words of one letter, `top: 1000`", predict, texts(', "top": 1000'), True),
        ("the same 256 to `/v1/embed`", "/v1/embed", texts(""), True),
        ("a text of 250 words, explained", "/v1/explain", b'{"text": "' + b"a " * 250 + b'"}', True),
        ("the same, and clients that do not read the answer", "/v1/explain", b'{"text": "' + b"a " * 250 + b'"}', False),
        ("a text of words of one letter, and such clients", predict, letters, False),
        ("a list of words of one letter, and such clients", predict, words, False),
    ]


def port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def memory(pid, field):
    return int(re.search(rf"^{field}:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]) / 1e3


def send(at, path, body, read):
    with socket.socket() as s:
        if not read:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(120)
        try:
            s.connect(("127.0.0.1", at))
            s.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
                      f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            if not read:
                time.sleep(SENDING)
            start = s.recv(12)
            while read and s.recv(1 << 16):
                pass
            return start[9:].decode() or "closed"
        except OSError:  # refused before the body was read
            return "closed"


def measured(jenga, run, path, body, read):
    at = port()
    server = subprocess.Popen([jenga, "serve", run, "--listen", f"127.0.0.1:{at}"], stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            time.sleep(0.1)
            try:
                client = http.client.HTTPConnection("127.0.0.1", at, timeout=60)
                client.request("POST", "/v1/predict", json.dumps({"text": "so good " * 200}), {"Content-Type": "application/json"})
                client.getresponse().read()
                break
            except ConnectionError:
                continue
        idle = memory(server.pid, "VmRSS")
        pathlib.Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # VmHWM begins again
        statuses, ready, end = collections.Counter(), threading.Barrier(CLIENTS), time.monotonic() + SENDING

        def client():
            ready.wait()
            while time.monotonic() < end:
                status = send(at, path, body, read)
                statuses[status] += 1
                if status in ("429", "closed"):
                    time.sleep(0.2)

        clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        return memory(server.pid, "VmHWM") - idle, dict(statuses)
    finally:
        server.terminate()
        server.wait()


def main():
    given = options()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        work, table, names = pathlib.Path(folder), {}, []
        for name, family in [("WordPiece", ""), ("byte pairs", "roberta"), ("Unigram", "xlmr")]:
            if given.only not in name:
                continue
            names.append(name)
            model = given.wordpiece.resolve() if not family else work / "model"
            if family:
                base(model, family)
            for long in ["truncate", "windows"]:
                (work / "experiment.yaml").write_text(EXPERIMENT.format(
                    base=model, claims=ROOT / "experiments/claims", length=512, long=long))
                run = work / "run"
                done = subprocess.run([given.jenga, "train", "experiment.yaml", "--out", run], cwd=work, capture_output=True, text=True)
                if done.returncode:
                    sys.exit(done.stderr)
                for row, path, body, read in rows():
                    if given.rows not in row:
                        continue
                    peak, statuses = measured(given.jenga.resolve(), run, path, body, read)
                    table.setdefault(row, []).append(f"{peak:.0f}")
                    bad = peak > given.most or "500" in statuses
                    failed |= bad
                    print(f"{name}, {long}, {row}: {peak:.0f} MB, {statuses}{' FAILS' if bad else ''}", file=sys.stderr, flush=True)
                subprocess.run(["rm", "-r", run], check=True)
            if family:
                subprocess.run(["rm", "-r", model], check=True)
    print("| requests | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for row, peaks in table.items():
        print(f"| {row} | " + " | ".join(", ".join(peaks[i:i + 2]) for i in range(0, len(peaks), 2)) + " |")
    sys.exit(1 if failed else 0)


main()
