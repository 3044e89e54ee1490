"""Runs jenga, PyTorch and ONNX Runtime on the same work, in alternation, and prints medians and ratios.

    python bench/peers/compare.py ./jenga --data DATA --models MODELS

README.md in this folder describes what is measured.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).parent
STEPS = {"full": 3, "snips": 7, "sst": 5}  # measured batches, after one for warm-up
BATCH = 32  # texts in a batch of snips and sst
FULL = 2048  # tokens in a batch of full
ALL = ["jenga", "torch", "onnxruntime"]
ENGINES = {"train": ["jenga", "torch"], "infer": ALL, "one": ALL}
PRECISIONS = {"float32": ALL, "bf16": ["jenga", "torch"], "int8": ["jenga", "onnxruntime"]}  # and the engines that have them
SNIPS = {"epochs": 4, "batch": 32, "rate": 1e-4}
RANDOM = ["roberta", "xlm-roberta", "electra", "mpnet", "modernbert", "ettin-17m", "mmbert-small"]  # of random_model.py


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", help="the built binary")
    parser.add_argument("--data", default=os.environ.get("JENGA_DATA"), help="folder of corpora (default $JENGA_DATA)")
    parser.add_argument("--models", default=os.environ.get("JENGA_MODELS"), help="folder of models (default $JENGA_MODELS)")
    parser.add_argument("--model", nargs="+", default=["distilbert", "minilm"], choices=["distilbert", "minilm", "bilstm", *RANDOM])
    parser.add_argument("--work", nargs="+", default=[*STEPS, "one"], choices=[*STEPS, "one"])
    parser.add_argument("--measure", nargs="+", default=["train", "infer"], choices=["train", "infer"])
    parser.add_argument("--times", type=int, default=3, help="runs of each measurement; medians are printed")
    parser.add_argument("--length", type=int, default=128, help="tokens of a text of full, whose batches have 2048")
    parser.add_argument("--threads", type=int, default=cores(), help="threads of each engine (default: all cores)")
    parser.add_argument("--precision", default="float32", choices=PRECISIONS, help="of the products; int8 in inference alone")
    parser.add_argument("--whole-process", action="store_true", help="time whole training runs on SNIPS instead")
    parser.add_argument("--epochs", type=int, default=SNIPS["epochs"], help="epochs of a whole training run")
    parser.add_argument("--limit", type=int, help="maximum number of training texts of a whole training run")
    parser.add_argument("--out", default="peers.jsonl", help="file to which a JSON line is appended for each run")
    args = parser.parse_args()
    for name in ("data", "models"):
        folder = getattr(args, name)
        if folder is None or not pathlib.Path(folder).is_dir():
            parser.error(f"--{name}: folder {folder!r} not found; set --{name} or JENGA_{name.upper()}")
        setattr(args, name, pathlib.Path(folder).resolve())
    given = {name for name in vars(args) if getattr(args, name) != parser.get_default(name)}
    other = given & ({"model", "work", "measure", "length", "precision"} if args.whole_process else {"epochs", "limit"})
    if other:
        where = "without" if args.whole_process else "with"
        parser.error(f"{', '.join(f'--{name}' for name in sorted(other))}: {where} --whole-process only")
    if args.precision == "int8":
        args.measure = ["infer"]
    args.jenga = pathlib.Path(args.jenga).resolve()
    args.minilm = args.models / "minilm-l6"
    return args


def cores():
    """Counts the processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def run(command):
    """Runs a command and returns its output."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))} exited with {done.returncode}:\n{done.stderr}")
    return done.stdout


def last_line(command):
    """Runs a command and decodes the last line of its output, which is JSON."""
    return json.loads(run(command).splitlines()[-1])


def python(script, *words):
    return last_line([sys.executable, HERE / script, *words])


class Comparison:
    """One model and the files that all engines read."""

    def __init__(self, args, model, folder):
        self.args, self.model, self.folder = args, model, folder
        self.exported = folder / f"{model}.onnx"
        self.quantized = folder / f"{model}-int8.onnx"
        self.weights = folder / model if model in RANDOM else args.minilm

    def prepare(self):
        """Writes a model of random weights, the ONNX file, and the shuffled texts of each work: the same batches for all engines."""
        if self.model in RANDOM:
            run([sys.executable, HERE / "random_model.py", self.model, self.weights])
        if any("onnxruntime" in self.engines(measure) for _, measure in self.cells()):
            run([sys.executable, HERE / "onnxruntime_peer.py", "export", "--model", self.model, "--threads", "1",
                 "--weights", self.weights, "--out", self.exported])
            if self.args.precision == "int8":
                run([sys.executable, HERE / "onnxruntime_peer.py", "quantize", "--model", self.model, "--threads", "1",
                     "--weights", self.exported, "--out", self.quantized])
        for work in self.args.work:
            if work not in ("snips", "sst"):
                continue
            texts = read_texts(self.args.data, work)
            random.Random(1).shuffle(texts)
            with open(self.texts(work), "w", encoding="utf-8") as out:
                for text in texts[:BATCH * (STEPS[work] + 1)]:
                    print(json.dumps({"text": text}), file=out)

    def texts(self, work):
        return self.folder / f"{work}.jsonl"

    def cells(self):
        """Lists the pairs of work and measure to run."""
        works = [work for work in self.args.work if work != "one"]
        cells = [(work, measure) for work in works for measure in self.args.measure]
        return cells + [("one", "one")] * ("one" in self.args.work)

    def engines(self, measure):
        """Lists the engines for a measure; only DistilBERT and MiniLM are exported to ONNX."""
        engines = [engine for engine in ENGINES[measure] if engine in PRECISIONS[self.args.precision]]
        return [engine for engine in engines if engine != "onnxruntime" or self.model in ("distilbert", "minilm")]

    def run(self, engine, work, measure):
        """Measures one engine in a process of its own."""
        if engine == "jenga":
            return self.run_jenga(work, measure)
        words = [measure, "--model", self.model, "--threads", self.args.threads]
        exported = self.quantized if self.args.precision == "int8" else self.exported
        words += ["--precision", self.args.precision, "--weights", self.weights if engine == "torch" else exported]
        if work != "one":
            words += ["--steps", STEPS[work]]
        if work in ("snips", "sst"):
            words += ["--tokenizer", self.args.minilm, "--texts", self.texts(work)]
        elif work == "full":
            words += ["--batch", max(1, FULL // self.args.length), "--length", self.args.length]
        return python(f"{engine}_peer.py", *words)

    def run_jenga(self, work, measure):
        words = ["bench", "--json", "--measure", measure, "--threads", self.args.threads]
        words += ["--precision", self.args.precision]
        words += [self.model if self.model in ("distilbert", "bilstm") else self.weights]
        if work in ("snips", "sst"):
            words += ["--data", self.texts(work), "--tokenizer", self.args.minilm]
        elif work == "full":
            words += ["--length", self.args.length]
        line = last_line([self.args.jenga, *words])
        if work == "one":
            return {"ms": line["one_text_ms"], "kernel": line["kernel"]}
        return {"tokens_s": line[f"{measure}_tokens_s"], "step_s": line[f"{measure}_step_s"],
                "peak_memory": line["peak_memory"], "kernel": line["kernel"]}


def read_texts(data, work):
    if work == "snips":
        return (data / "snips/train/seq.in").read_text(encoding="utf-8").splitlines()
    lines = (data / "sst/stsa.binary.train").read_text(encoding="utf-8").splitlines()
    return [line.split(" ", 1)[1] for line in lines]


class Record:
    """Writes each run to a file and to stderr, and keeps its figures for the table."""

    def __init__(self, path):
        self.file = open(path, "a", encoding="utf-8")
        self.runs = collections.defaultdict(list)  # by row and engine

    def add(self, row, engine, figures, **about):
        line = {**about, "engine": engine, **figures}
        print(json.dumps(line), file=self.file, flush=True)
        print(json.dumps(line), file=sys.stderr, flush=True)
        self.runs[row, engine].append(figures)

    def median(self, row, engine, key):
        values = [run[key] for run in self.runs[row, engine] if key in run]
        return statistics.median(values) if values else None


def rotated(engines, by):
    """Rotates the engines by a number of places, so that each comes first in turn."""
    by %= len(engines)
    return engines[by:] + engines[:by]


def compare(args, record):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        models = [Comparison(args, model, pathlib.Path(folder)) for model in args.model]
        for model in models:
            model.prepare()
            rows += [(model.model, *cell) for cell in model.cells()]
        for number in range(args.times):
            for model in models:
                for work, measure in model.cells():
                    for engine in rotated(model.engines(measure), number):
                        figures = model.run(engine, work, measure)
                        record.add((model.model, work, measure), engine, figures, model=model.model, work=work,
                                   measure=measure, run=number + 1, threads=args.threads, precision=args.precision,
                                   **({"length": args.length} if work == "full" else {}))
    show_speeds(rows, record)


def show_speeds(rows, record):
    """Prints a line for each row: the engines' medians, jenga's ratios to the others, peak memory."""
    names = f"{'jenga':>9}{'torch':>9}{'ort':>9}"
    print(f"{'':28}{names}{'/ torch':>10}{'/ ort':>8}   GiB:{names}")
    for row in rows:
        model, work, measure = row
        key = "ms" if work == "one" else "tokens_s"
        what = f"{model}, one text, ms" if work == "one" else f"{model}, {work}, {measure}"
        speeds = [record.median(row, engine, key) for engine in ALL]
        peaks = [record.median(row, engine, "peak_memory") for engine in ALL]
        digits = 2 if work == "one" else 0
        ratios = [speeds[0] / speed if speed else None for speed in speeds[1:]]
        memory = [peak / 2**30 if peak and work != "one" else None for peak in peaks]
        print(f"{what:28}{cells(speeds, 9, digits)}  {cells(ratios, 8, 2)}       {cells(memory, 9, 2)}")


def cells(values, width, digits):
    return "".join(f"{'-' if value is None else f'{value:.{digits}f}':>{width}}" for value in values)


def experiment(args, seed):
    """Returns an experiment file with the recipe of torch_snips.py. JSON is also YAML."""
    splits = {name: str(args.data / "snips" / split) for name, split in
              {"train": "train", "dev": "valid", "test": "test"}.items()}
    if args.limit:
        splits["limit"] = args.limit
    return json.dumps({
        "project_name": "snips", "seed": seed,
        "model": {"base_model": str(args.minilm), "dropout": 0.1},
        "tokenizer": {"max_length": 128},
        "tasks": [
            {"name": "intent", "type": "classification", "data": splits},
            {"name": "slots", "type": "ner", "data": {"same_as": "intent"}}],
        "training": {
            "learning_rate": SNIPS["rate"], "batch_size": SNIPS["batch"], "num_epochs": args.epochs,
            "warmup_ratio": 0.1, "weight_decay": 0.01, "max_grad_norm": 1.0,
            "metric_for_best_model": "eval_all_right"}})


def whole_jenga(args, seed):
    """Trains, and evaluates the best model on test, as two commands."""
    with tempfile.TemporaryDirectory() as folder:
        file, run = pathlib.Path(folder) / "snips.yaml", pathlib.Path(folder) / "run"
        file.write_text(experiment(args, seed), encoding="utf-8")
        threads = ["--threads", args.threads]
        last_line([args.jenga, "train", file, "--out", run, "--json", *threads])
        metrics = last_line([args.jenga, "eval", run, "--split", "test", "--json", *threads])
    tasks = metrics["tasks"]
    return {"intent": tasks["intent"]["heads"]["intent"]["accuracy"],
            "slots": tasks["slots"]["heads"]["slots"]["span_f1"],
            "all_right": metrics["groups"][0]["all_right"]}


def whole_torch(args, seed):
    words = [args.data / "snips", args.minilm, "--threads", args.threads, "--seed", seed]
    words += ["--epochs", args.epochs, "--rate", SNIPS["rate"], "--batch", SNIPS["batch"]]
    return python("torch_snips.py", *words, *(["--limit", args.limit] if args.limit else []))


def compare_whole(args, record):
    """Times whole training runs, from start to metrics on test; each repetition has its own seed."""
    engines = {"jenga": whole_jenga, "torch": whole_torch}
    row = "whole process"
    for number in range(args.times):
        for engine in rotated([*engines], number):
            start = time.perf_counter()
            metrics = engines[engine](args, number + 1)
            figures = {"seconds": time.perf_counter() - start, **metrics}
            record.add(row, engine, figures, work="snips, whole process", seed=number + 1, epochs=args.epochs,
                       limit=args.limit, threads=args.threads)
    print(f"{'':12}{'seconds':>9}{'intent':>9}{'slots':>9}{'both':>9}")
    for engine in engines:
        metrics = [100 * record.median(row, engine, key) for key in ("intent", "slots", "all_right")]
        print(f"{engine:12}" + cells([record.median(row, engine, "seconds")], 9, 1) + cells(metrics, 9, 2))
    ratio = record.median(row, "jenga", "seconds") / record.median(row, "torch", "seconds")
    print(f"jenga takes {ratio:.2f} of PyTorch's time")


def main():
    args = options()
    record = Record(args.out)
    if args.whole_process:
        compare_whole(args, record)
    else:
        compare(args, record)


if __name__ == "__main__":
    main()
