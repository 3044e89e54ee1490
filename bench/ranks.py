"""Measures training in several processes: beside one process on the same cores, and over links of a given rate.

    go build -tags mpi -o jenga-mpi ./cmd/jenga
    python bench/ranks.py ./jenga-mpi speed --data DATA --models MODELS --out bench/ranks.jsonl
    sudo python bench/ranks.py ./jenga-mpi network --data DATA --models MODELS --out bench/ranks.jsonl
    python bench/ranks.py - table --out bench/ranks.jsonl

speed trains in one process of two threads and in two processes of one thread, in turns: snips, the texts of snips.yaml in its batches,
and full, batches of 16 texts of 128 tokens; with minilm-l6, and with a model of DistilBERT's size and random weights. Each run is a row:
the median over the steps after the first ten.

network trains with the latter model in processes that are each in a network namespace of its own, joined by links of a rate (Linux, as
root, by MPICH's mpiexec, whose launcher enters the namespaces), and one process alone at several sizes of batches, for what a step
computes. table prints all as Markdown, beside the step times that StepTime predicts, and its curve for more processes.

Requires: numpy pyyaml, and an MPI library's mpiexec (pip install mpich)
"""

import argparse
import contextlib
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import numpy as np
import yaml

EXPERIMENTS = pathlib.Path(__file__).parent.parent / "experiments"
DISTILBERT = {
    "model_type": "distilbert", "activation": "gelu", "dim": 768, "hidden_dim": 3072, "n_layers": 6, "n_heads": 12, "dropout": 0.1,
    "attention_dropout": 0.1, "max_position_embeddings": 512, "vocab_size": 30522, "initializer_range": 0.02, "sinusoidal_pos_embds": False,
}
BATCHES = {"snips": (16, 32, 64), "full": (4, 8, 16)}  # sizes for network
CURVE = (2, 4, 8, 16, 32, 64)
SKIPPED = 10  # first steps, which allocate


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the binary, built with -tags mpi")
    parser.add_argument("stage", choices=["speed", "network", "table"])
    parser.add_argument("--mpiexec", default="mpiexec", help="the launcher (default mpiexec)")
    parser.add_argument("--data", default=os.environ.get("JENGA_DATA"), help="folder of corpora (default $JENGA_DATA)")
    parser.add_argument("--models", default=os.environ.get("JENGA_MODELS"), help="folder of models (default $JENGA_MODELS)")
    parser.add_argument("--model", nargs="+", default=["minilm", "distilbert"], choices=["minilm", "distilbert"])
    parser.add_argument("--work", nargs="+", default=["snips", "full"], choices=["snips", "full"])
    parser.add_argument("--rate", nargs="+", default=["none", "1gbit", "10gbit"], help="rates of links, as tc writes them; none: not shaped")
    parser.add_argument("--times", type=int, default=3, help="runs of each measurement")
    parser.add_argument("--steps", type=int, default=30, help="measured steps of a run")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file to which a JSON line is appended for each run")
    args = parser.parse_args()
    if args.stage != "table" and (args.data is None or args.models is None):
        parser.error("--data and --models are required, or JENGA_DATA and JENGA_MODELS in the environment")
    return args


def write_model(folder, tokenizer):
    """Writes a model of DistilBERT's size with random weights, and the tokenizer of another model."""
    c, rng = DISTILBERT, np.random.default_rng(1)
    shapes = {
        "embeddings.word_embeddings.weight": (c["vocab_size"], c["dim"]),
        "embeddings.position_embeddings.weight": (c["max_position_embeddings"], c["dim"]),
    }

    def linear(name, inputs, outputs):
        shapes[name + ".weight"], shapes[name + ".bias"] = (outputs, inputs), (outputs,)

    def norm(name):
        shapes[name + ".weight"], shapes[name + ".bias"] = (c["dim"],), (c["dim"],)

    norm("embeddings.LayerNorm")
    for layer in range(c["n_layers"]):
        at = f"transformer.layer.{layer}."
        for name in ("q_lin", "k_lin", "v_lin", "out_lin"):
            linear(at + "attention." + name, c["dim"], c["dim"])
        norm(at + "sa_layer_norm")
        linear(at + "ffn.lin1", c["dim"], c["hidden_dim"])
        linear(at + "ffn.lin2", c["hidden_dim"], c["dim"])
        norm(at + "output_layer_norm")

    def values(name, shape):
        if "orm.weight" in name:
            return np.ones(shape, np.float32)
        if name.endswith("bias"):
            return np.zeros(shape, np.float32)
        return rng.normal(0, c["initializer_range"], shape).astype(np.float32)

    header, at = {}, 0
    for name, shape in shapes.items():
        size = 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    folder.mkdir()
    with open(folder / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            out.write(values(name, shape).tobytes())
    (folder / "config.json").write_text(json.dumps(c))
    for file in tokenizer.iterdir():
        if file.name not in ("config.json", "model.safetensors"):
            shutil.copy(file, folder)


def write_full(path):
    """Writes labelled texts of more than 128 tokens."""
    words = "the be to of and a in that have it for not on with he as you do at this but his by from they we say her she or".split()
    rng = random.Random(1)
    with open(path, "w", encoding="utf-8") as out:
        for i in range(1600):
            print(json.dumps({"text": " ".join(rng.choices(words, k=140)), "label": str(i % 4)}), file=out)


def experiment(work, base_model, folder):
    """Returns the experiment of a work."""
    if work == "snips":
        e = yaml.safe_load((EXPERIMENTS / "snips.yaml").read_text(encoding="utf-8"))
    else:
        write_full(folder / "full.jsonl")
        e = {
            "project_name": "full", "seed": 1, "model": {"dropout": 0.1}, "tokenizer": {"max_length": 128},
            "tasks": [{"name": "label", "type": "classification", "data": {"train": str(folder / "full.jsonl"), "split": {"dev": 0.02}}}],
            "training": {"learning_rate": 1e-4, "batch_size": 16, "num_epochs": 1},
        }
    e["model"]["base_model"] = str(base_model)
    return e


class Bench:
    """Bench trains, and writes a row of each run."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.jenga = args.jenga.resolve()
        self.version = subprocess.run([self.jenga, "version"], capture_output=True, text=True, check=True).stdout.strip()
        self.models = {"minilm": pathlib.Path(args.models).resolve() / "minilm-l6", "distilbert": folder / "distilbert"}
        if "distilbert" in args.model or args.stage == "network":
            write_model(self.models["distilbert"], self.models["minilm"])

    def run(self, key, command=(), threads=1, settings=()):
        """Trains by a launcher's command, and writes a row of the key and of the median step."""
        path, out = self.folder / "experiment.yaml", self.folder / "run"
        path.write_text(yaml.safe_dump(experiment(key["work"], self.models[key["model"]], self.folder)), encoding="utf-8")
        never = ["max_steps=" + str(SKIPPED + self.args.steps), "eval_strategy=no", "save_strategy=no", "logging_steps=1"]
        words = [word for setting in [*never, *settings] for word in ("--set", "training." + setting)]
        words = [*command, self.jenga, "train", path, "--out", out, "--json", "--threads", threads, *words]
        environment = {**os.environ, "JENGA_DATA": str(pathlib.Path(self.args.data).resolve())}
        with open(self.folder / "stderr", "w+") as err:
            process = subprocess.Popen([str(w) for w in words], env=environment, stdout=subprocess.PIPE, stderr=err, text=True)
            lines = [(json.loads(line), time.monotonic()) for line in process.stdout if line.startswith('{"event":"step"')]
            if process.wait() != 0:
                err.seek(0)
                raise SystemExit(f"{' '.join(map(str, words))} exited with {process.returncode}:\n{err.read()}")
        shutil.rmtree(out, ignore_errors=True)
        lines = [(line, at) for line, at in lines if line["step"] >= SKIPPED]
        steps, seconds = [line for line, _ in lines[1:]], lines[-1][1] - lines[0][1]
        row = {**key, "tokens_per_second": round(statistics.median(line["tokens_per_second"] for line in steps), 1)}
        row["step_seconds"] = round(seconds / len(steps), 4)
        if all("exchange" in line for line in steps):
            for name in ("bytes", "seconds", "waited_seconds"):
                row[name] = round(statistics.mean(line["exchange"][name] for line in steps), 4)
        row["version"] = self.version
        with open(self.args.out, "a", encoding="utf-8") as out:
            print(json.dumps(row), file=out)
        print(json.dumps(row), file=sys.stderr)

    def speed(self):
        for model in self.args.model:
            for work in self.args.work:
                for _ in range(self.args.times):
                    key = {"stage": "speed", "model": model, "work": work}
                    self.run({**key, "ranks": 1}, threads=2)
                    self.run({**key, "ranks": 2}, [self.args.mpiexec, "-n", "2"])

    def network(self):
        key = {"stage": "network", "model": "distilbert"}
        for work in self.args.work:
            batches = BATCHES[work]
            for _ in range(self.args.times):
                for batch in batches:
                    # the half of a batch, which each of two processes has
                    self.run({**key, "work": work, "batch": batch // 2, "ranks": 1}, settings=[f"batch_size={batch // 2}"])
            for rate in self.args.rate:
                with links(self.folder, rate, self.args.mpiexec) as command:
                    for dtype in ("float32", "bf16"):
                        for batch in batches:
                            for _ in range(self.args.times):
                                self.run({**key, "work": work, "batch": batch, "ranks": 2, "rate": rate, "dtype": dtype},
                                         command, settings=[f"batch_size={batch}", f"gradient_dtype={dtype}"])


@contextlib.contextmanager
def links(folder, rate, mpiexec):
    """Makes two network namespaces joined by a link of a rate, and yields the command that starts a process in each."""
    def ip(*words):
        subprocess.run(["ip", *words], check=True)

    names = ["jenga0", "jenga1"]
    hosts, launcher = folder / "hosts", folder / "launcher"
    hosts.write_text("10.9.0.1\n10.9.0.2\n")
    # mpiexec calls it as it would call ssh: options, host, command
    launcher.write_text("""#!/bin/bash
while [ "${1#-}" != "$1" ]; do shift; done
n=$((${1##*.} - 1)); shift
exec ip netns exec jenga$n unshare --uts sh -c "hostname jenga$n; exec $*"
""")
    launcher.chmod(0o755)
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", "jenga0", "type", "veth", "peer", "name", "jenga1")
        for i, name in enumerate(names):
            ip("link", "set", name, "netns", name)
            ip("-n", name, "link", "set", name, "name", "link0")
            ip("-n", name, "addr", "add", f"10.9.0.{i + 1}/24", "dev", "link0")
            ip("-n", name, "link", "set", "link0", "up")
            ip("-n", name, "link", "set", "lo", "up")
            if rate != "none":
                subprocess.run(["tc", "-n", name, "qdisc", "add", "dev", "link0", "root", "tbf", "rate", rate, "burst", "1mb", "latency", "100ms"],
                               check=True)
        path = shutil.which(mpiexec)
        yield ["ip", "netns", "exec", "jenga0", "env", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=link0", "MPIR_CVAR_NOLOCAL=1",
               path, "-launcher", "ssh", "-launcher-exec", launcher, "-f", hosts, "-n", "2", "-ppn", "1", "-iface", "link0"]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


class StepTime:
    """StepTime predicts the seconds of a step of a work in several processes, from measurements that have no shaped link.

    One process of one thread takes update + text * texts. Of several, each has its texts and its part of the update, but all of the
    update of the embedding tables, which each does by itself. Gradients of all else go to the processes that sum them, while the
    backward pass, two thirds of the time of the texts, continues; parameters come back after the update, and nothing hides that. Both
    ways each process sends and receives all but its own part, at the link's rate less 5 % for headers. The processor's work for a byte
    (copying, the kernel's protocol, and rounding to bfloat16 where it is used) is what a step over an unshaped link takes longer than that.
    """

    TABLES = DISTILBERT["dim"] * (DISTILBERT["vocab_size"] + DISTILBERT["max_position_embeddings"])
    LAYER = 4 * DISTILBERT["dim"] ** 2 + 2 * DISTILBERT["dim"] * DISTILBERT["hidden_dim"]
    OTHERS = DISTILBERT["n_layers"] * LAYER

    def __init__(self, rows):
        one = [(r["batch"], r["step_seconds"]) for r in rows if r["ranks"] == 1]
        self.text, self.update = np.polyfit(*zip(*one), 1)
        self.per_byte, longer = {"float32": 0, "bf16": 0}, {"float32": [], "bf16": []}
        for r in rows:
            if r.get("rate") == "none":
                longer[r["dtype"]].append((r["step_seconds"] - self.seconds(2, r["batch"], None, r["dtype"])) / r["bytes"])
        self.per_byte = {dtype: statistics.median(each) for dtype, each in longer.items()}

    def seconds(self, ranks, texts, rate, dtype):
        """Returns the seconds of a step of so many texts, over links of a rate in bit/s (None: unlimited)."""
        tables = self.TABLES / (self.TABLES + self.OTHERS)
        compute, update = self.text * texts / ranks, self.update * (tables + (1 - tables) / ranks)
        back = 4 * self.OTHERS * (ranks - 1) / ranks
        there = back / 2 if dtype == "bf16" else back
        seconds = compute + update + self.per_byte[dtype] * (there + back)
        if rate is None:
            return seconds
        rate *= 0.95 / 8
        # gradients of the last layer to be computed are sent after the backward pass
        return seconds + max(there / rate - compute * 2 / 3, there / DISTILBERT["n_layers"] / rate) + back / rate


def bits(rate):
    """Returns a rate of tc in bit/s, None for "none"."""
    units = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
    return None if rate == "none" else float(rate[:-4]) * units[rate[-4:]]


def network_table(rows):
    print("| work | texts | link | gradients | seconds of a step | hidden | predicted | |")
    print("|---|---|---|---|---|---|---|---|")
    for work in BATCHES:
        of = [row for row in rows if row["work"] == work]
        if not of:
            continue
        model, points = StepTime(of), {}
        for row in of:
            if row["ranks"] == 2:
                points.setdefault((row["batch"], row["rate"], row["dtype"]), []).append(row)
        for (batch, rate, dtype), runs in points.items():
            measured = statistics.median(r["step_seconds"] for r in runs)
            hidden = statistics.median(1 - r["waited_seconds"] / r["seconds"] for r in runs)
            predicted = model.seconds(2, batch, bits(rate), dtype)
            print(f"| {work} | {batch} | {rate} | {dtype} | {measured:.3f} | {hidden:.0%} | {predicted:.3f} | {predicted / measured - 1:+.0%} |")
        print()
        print("| " + work + " | " + " | ".join(f"{n} processes" for n in CURVE) + " |")
        print("|---|" + "---|" * len(CURVE))
        for rate in ("1gbit", "10gbit", "100gbit"):
            for dtype in ("float32", "bf16"):
                texts = BATCHES[work][-1] // 2
                one = model.seconds(1, texts, None, dtype)
                cells = [f"{n * one / model.seconds(n, n * texts, bits(rate), dtype):.1f}" for n in CURVE]
                print(f"| {rate}, {dtype}, {texts} texts each: times one process | " + " | ".join(cells) + " |")
        print()


def table(path):
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    print("| model | work | one process, 2 threads | two, 1 thread each | ratio |")
    print("|---|---|---|---|---|")
    speeds = {}
    for row in rows:
        if row["stage"] == "speed":
            speeds.setdefault((row["model"], row["work"]), {1: [], 2: []})[row["ranks"]].append(row["tokens_per_second"])
    for (model, work), by_ranks in speeds.items():
        one, two = statistics.median(by_ranks[1]), statistics.median(by_ranks[2])
        ratio = statistics.median(b / a for a, b in zip(by_ranks[1], by_ranks[2]))
        print(f"| {model} | {work} | {one:.0f} | {two:.0f} | {ratio:.2f} |")
    print()
    network_table([row for row in rows if row["stage"] == "network"])


def main():
    args = options()
    if args.stage == "table":
        table(args.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        getattr(Bench(args, pathlib.Path(folder)), args.stage)()


if __name__ == "__main__":
    main()
