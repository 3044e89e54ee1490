"""Loads jenga serve, and a FastAPI server with ONNX Runtime, in alternation with wrk: requests a second, and their delays.

    python bench/peers/serving.py ./jenga --data DATA --models MODELS

Both answer the same texts (SNIPS' training texts, shuffled, one a request) by minilm-l6 and four linear heads. wrk is required.
"""

import argparse
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).parent
EXPERIMENT = """
model: {base_model: %s}
tokenizer: {max_length: 128}
tasks:
  - name: intent
    type: classification
    data: {train: snips/train, dev: snips/valid, limit: 64}
    heads: [%s]
training: {num_epochs: 1, batch_size: 32}
"""
SCRIPT = """
local bodies = {}
for line in io.lines("%s") do bodies[#bodies + 1] = line end
local headers = {["Content-Type"] = "application/json"}
local at = 0
request = function()
  at = at %% #bodies + 1
  return wrk.format("POST", "/v1/predict", headers, bodies[at])
end
done = function(summary, latency, requests)
  local bad = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status + summary.errors.timeout
  io.write(string.format("RESULT %%f %%f %%f %%d\\n", summary.requests / summary.duration * 1e6,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, bad))
end
"""


def options(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the built binary")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("JENGA_DATA"), help="folder of corpora (default $JENGA_DATA)")
    parser.add_argument("--models", type=pathlib.Path, default=os.environ.get("JENGA_MODELS"), help="folder of models (default $JENGA_MODELS)")
    parser.add_argument("--precision", nargs="+", default=["float32", "int8"], choices=["float32", "int8"])
    parser.add_argument("--connections", nargs="+", type=int, default=[1, 8, 64])
    parser.add_argument("--seconds", type=int, default=10, help="of each measurement")
    parser.add_argument("--times", type=int, default=3, help="runs of each measurement; medians are printed")
    parser.add_argument("--threads", type=int, default=2, help="of each server")
    parser.add_argument("--out", default="serving.jsonl", help="file to which a JSON line is appended for each run")
    return parser.parse_args()


def train(args, model, heads, folder):
    """Trains a run with linear heads."""
    experiment = folder.with_suffix(".yaml")
    experiment.write_text(EXPERIMENT % (model, ", ".join(f"{{name: head{i}}}" for i in range(heads))), encoding="utf-8")
    environment = {**os.environ, "JENGA_DATA": str(args.data.resolve()), "JENGA_MODELS": str(args.models.resolve())}
    subprocess.run([args.jenga.resolve(), "train", experiment, "--out", folder], env=environment, check=True, capture_output=True)


def write_texts(args, folder):
    """Writes the texts, and the script with which wrk sends them."""
    texts = (args.data / "snips/train/seq.in").read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(texts)
    with open(folder / "bodies", "w", encoding="utf-8") as out:
        for text in texts:
            print(json.dumps({"text": text}), file=out)
    (folder / "load.lua").write_text(SCRIPT % (folder / "bodies"), encoding="utf-8")


def prepare(args, folder):
    """Trains the run that jenga serves, and exports the models that ONNX Runtime serves."""
    train(args, "minilm-l6", 4, folder / "four")
    for precision in args.precision:
        subprocess.run([sys.executable, HERE / "server_peer.py", "export", "--weights", args.models / "minilm-l6", "--precision",
                        precision, "--out", folder / f"{precision}.onnx"], check=True, capture_output=True)
    write_texts(args, folder)


def jenga(args, run, precision, port):
    return [args.jenga.resolve(), "serve", run, "--listen", f"127.0.0.1:{port}", "--precision", precision, "--threads", str(args.threads)]


def command(args, engine, precision, folder, port):
    if engine == "jenga":
        return jenga(args, folder / "four", precision, port)
    return [sys.executable, HERE / "server_peer.py", "serve", "--weights", folder / f"{precision}.onnx", "--tokenizer",
            args.models / "minilm-l6", "--port", str(port), "--threads", str(args.threads)]


def measure(args, command, connections, folder, port):
    """Starts a server by a command, warms it up, loads it, and ends it."""
    with open(folder / "log", "w", encoding="utf-8") as log:
        server = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1)
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise SystemExit(f"{command[0]} is not ready:\n{(folder / 'log').read_text(encoding='utf-8')}")
        load = ["wrk", "-t1", f"-c{connections}", "-s", folder / "load.lua", f"http://127.0.0.1:{port}"]
        for seconds in (2, args.seconds):
            done = subprocess.run([*map(str, load), f"-d{seconds}s", "--timeout", "30s"], check=True, capture_output=True, text=True)
        rate, p50, p99, bad = re.search(r"RESULT (\S+) (\S+) (\S+) (\S+)", done.stdout).groups()
        if int(bad):
            raise SystemExit(f"{command[0]}: {bad} requests failed")
        with open(f"/proc/{server.pid}/status", encoding="utf-8") as status:
            memory = int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))
    finally:
        server.terminate()
        server.wait()
    return {"requests_s": float(rate), "p50_ms": float(p50), "p99_ms": float(p99), "bad": int(bad), "memory_mib": memory // 1024}


def main():
    args = options(__doc__)
    rows = []
    with tempfile.TemporaryDirectory() as name, open(args.out, "a", encoding="utf-8") as out:
        folder = pathlib.Path(name)
        prepare(args, folder)
        port = 8100
        for number in range(args.times):
            for precision in args.precision:
                for connections in args.connections:
                    for engine in ("jenga", "fastapi")[::1 if number % 2 == 0 else -1]:
                        port += 1
                        row = {"engine": engine, "precision": precision, "connections": connections,
                               **measure(args, command(args, engine, precision, folder, port), connections, folder, port)}
                        rows.append(row)
                        print(json.dumps(row), file=out, flush=True)
                        print(json.dumps(row), file=sys.stderr)
    print(f"{'':22}{'requests/s':>20}{'p50 ms':>16}{'p99 ms':>16}{'MiB':>14}")
    for precision in args.precision:
        for connections in args.connections:
            words = f"{precision}, {connections} connections"
            medians = {}
            for engine in ("jenga", "fastapi"):
                own = [r for r in rows if (r["engine"], r["precision"], r["connections"]) == (engine, precision, connections)]
                medians[engine] = {key: statistics.median(r[key] for r in own) for key in ("requests_s", "p50_ms", "p99_ms", "memory_mib")}
            cells = "".join(f"{medians['jenga'][key]:>9.{digits}f}{medians['fastapi'][key]:>8.{digits}f}"
                            for key, digits in (("requests_s", 0), ("p50_ms", 1), ("p99_ms", 1), ("memory_mib", 0)))
            print(f"{words:24}{cells}   ratio {medians['jenga']['requests_s'] / medians['fastapi']['requests_s']:.2f}")


if __name__ == "__main__":
    main()
