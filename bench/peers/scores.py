"""Trains jenga's shipped experiments with several seeds, and a PyTorch reference if one is given, and compares metrics on test.

    python bench/peers/scores.py ./jenga --data DATA --models MODELS --out scores.jsonl
    python bench/peers/scores.py ./jenga --data DATA --models MODELS --out scores.jsonl --tasks trec6 --precisions bf16 int8 --onnxruntime int8
    python bench/peers/scores.py ./jenga --data DATA --models MODELS --out gpu.jsonl --device cuda:0 --train-precision bf16
    python bench/peers/scores.py ./jenga --data DATA --models MODELS --out scores.jsonl --reference train_ref.py --shared SHARED

Each training run is a row of the file, and a run that is there is not repeated, so that a stopped script can be started again, unless
--precisions or --onnxruntime name evaluations that no row of the run has: of each evaluation the last row counts. Rows of another device or
precision of training belong in a file of their own. A reference script is called with the arguments SHARED TASK SEED; its last line of
output is a JSON object with an object "test" of metrics in per cent.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# Each task: its experiment, and for each metric, by the reference's name, its path in the output of eval: task, then keys of the head's
# metrics; None is the group's all_right.
TASKS = {
    "sst2": ("sst", {"accuracy": ("sentiment", "accuracy"), "f1": ("sentiment", "labels", "1", "f1")}),
    "trec6": ("trec6", {"accuracy": ("question", "accuracy")}),
    "mrpc": ("mrpc", {"accuracy": ("paraphrase", "accuracy"), "f1": ("paraphrase", "labels", "1", "f1")}),
    "stsb": ("stsb", {"pearson": ("similarity", "pearson"), "spearman": ("similarity", "spearman")}),
    "snips": ("snips", {"accuracy": ("intent", "accuracy"), "span_f1": ("slots", "span_f1"), "sentence": None}),
    "wnut17": ("wnut17", {"span_f1": ("entities", "span_f1")}),
    "banking77": ("banking77", {"accuracy": ("intent", "accuracy")}),
    "sick_ent": ("sick", {"accuracy": ("entailment", "accuracy")}),
    "sick_rel": ("sick", {"pearson": ("relatedness", "pearson"), "spearman": ("relatedness", "spearman")}),
    "ewt_pos": ("ud_ewt", {"tag_accuracy": ("pos", "accuracy")}),
    "xquad": ("xquad", {"f1": ("answer", "f1"), "exact_match": ("answer", "exact_match")}),
    "goemotions": ("goemotions", {"micro_f1@.3": ("feelings", "f1_micro"), "macro_f1@.3": ("feelings", "f1_macro")}),
}
# Settings of the reference that differ from the file's: the same recipe for all, and thresholds that are not tuned.
SETTINGS = {
    "snips": ["training.num_epochs=4", "training.learning_rate=1.0e-4"],
    "goemotions": ["tasks.feelings.heads.feelings.threshold=0.3", "tasks.feelings.heads.feelings.tune=none"],
}
# Evaluations in fewer bits, and of ONNX Runtime in float32, by their keys in a row, with the titles of their losses.
LOWER = {"test_bf16": "bf16", "test_int8": "int8", "test_onnxruntime": "ONNX Runtime float32",
         "test_onnxruntime_int8": "ONNX Runtime int8"}
# Tasks with heads that onnxruntime_scores.py does not compute.
WITHOUT_ONNXRUNTIME = {"xquad", "goemotions"}
# The reference's dev set of corpora without one: the first lines of the training file, shuffled with a fixed seed.
DEV = {"trec6": ("trec6/TREC.train.all", 500), "banking77": ("banking77/train.csv", 1000)}
HERE = pathlib.Path(__file__).parent


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the built binary")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("JENGA_DATA"), help="folder of corpora (default $JENGA_DATA)")
    parser.add_argument("--models", type=pathlib.Path, default=os.environ.get("JENGA_MODELS"), help="folder of models (default $JENGA_MODELS)")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=1, help="threads of each training run of jenga")
    parser.add_argument("--precisions", nargs="*", default=[], choices=["bf16", "int8"],
                        help="also evaluate each trained run on test in these")
    parser.add_argument("--onnxruntime", choices=["int8"],
                        help="also evaluate each trained run on test with ONNX Runtime in this, and in float32 as a check")
    parser.add_argument("--device", default="cpu", help="what jenga's encoder is trained and evaluated on: cpu, cuda:N or auto (default cpu)")
    parser.add_argument("--train-precision", choices=["float32", "bf16"], help="training.precision, in place of the files' float32")
    parser.add_argument("--at-once", type=int, default=1, help="number of parallel training runs")
    parser.add_argument("--reference", type=pathlib.Path, help="script that trains a task with PyTorch")
    parser.add_argument("--shared", type=pathlib.Path, help="first argument of the reference script")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file of a JSON line for each training run")
    parser.add_argument("--table", action="store_true", help="only print the table of the rows")
    args = parser.parse_args()
    if args.data is None or args.models is None:
        parser.error("--data and --models are required, or JENGA_DATA and JENGA_MODELS in the environment")
    if (args.reference is None) != (args.shared is None):
        parser.error("--reference requires --shared, and --shared requires --reference")
    without = sorted(WITHOUT_ONNXRUNTIME.intersection(args.tasks))
    if args.onnxruntime and without:
        parser.error(f"--onnxruntime: --tasks must not have {', '.join(without)}, whose heads it does not compute")
    return args


def rows(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def evaluations(args, engine):
    """The keys of the evaluations on test that a run of an engine must have."""
    if engine != "jenga":
        return {"test"}
    return {"test", *(f"test_{precision}" for precision in args.precisions)} | \
        ({"test_onnxruntime", "test_onnxruntime_int8"} if args.onnxruntime else set())


def last(measured, key):
    """The last row of each run that has an evaluation, by task, seed and engine."""
    return {(row["task"], row["seed"], row["engine"]): row for row in measured if key in row}


def split(args, task, folder):
    """Splits the reference's dev set off the training file, writes both files, and returns the settings that name them."""
    if task == "xquad":
        return split_articles(args, folder)
    if task not in DEV:
        return []
    name, n = DEV[task]
    path = args.data / name
    rng = random.Random(0)
    if path.suffix == ".csv":
        import csv

        with open(path, encoding="utf-8", newline="") as f:
            header, *lines = csv.reader(f)
        rng.shuffle(lines)
        parts = {"train.csv": lines[n:], "dev.csv": lines[:n]}
        for part, chosen in parts.items():
            with open(folder / part, "w", encoding="utf-8", newline="") as f:
                csv.writer(f).writerows([header, *chosen])
    else:
        lines = path.read_bytes().splitlines(keepends=True)
        rng.shuffle(lines)
        parts = {"train": lines[n:], "dev": lines[:n]}
        for part, chosen in parts.items():
            (folder / part).write_bytes(b"".join(chosen))
    train, dev = parts
    return [f"train={folder / train}", f"dev={folder / dev}"]


def split_articles(args, folder):
    """Splits XQuAD's 48 articles with a fixed seed: 34 for training, 5 for dev and 9 for test."""
    articles = json.loads((args.data / "xquad_en/xquad.en.json").read_text(encoding="utf-8"))["data"]
    random.Random(0).shuffle(articles)
    for name, part in {"train": articles[14:], "dev": articles[:5], "test": articles[5:14]}.items():
        (folder / f"{name}.json").write_text(json.dumps({"data": part}), encoding="utf-8")
    return [f"{name}={folder / name}.json" for name in ("train", "dev", "test")]


def experiment(args, task, seed, folder):
    """Writes the experiment of a task, and returns the arguments of jenga train."""
    name, _ = TASKS[task]
    text = (HERE.parent.parent / "experiments" / f"{name}.yaml").read_text(encoding="utf-8")
    if task == "sick_ent":
        text = text[:text.index("  - name: relatedness")] + text[text.index("training:"):]
    if task == "sick_rel":  # the second task, with the data files of the first
        files = text[text.index("    data:\n"):text.index("      label: entailment")]
        text = text[:text.index("  - name: entailment")] + "  - name: relatedness\n    type: regression\n" + files \
            + "      value: relatedness_score\n    heads: [{name: relatedness, type: regression, scale: none}]\n" \
            + text[text.index("training:"):]
    for setting in split(args, task, folder):
        part, path = setting.split("=", 1)
        lines = [line for line in text.splitlines() if not line.strip().startswith((f"{part}:", "path:", "split:"))]
        at = next(i for i, line in enumerate(lines) if line.strip() == "data:")
        lines.insert(at + 1, f"      {part}: {path}")
        text = "\n".join(lines) + "\n"
    path = folder / f"{task}.yaml"
    path.write_text(text, encoding="utf-8")
    return [path, "--set", f"seed={seed}"] + [word for s in SETTINGS.get(task, []) for word in ("--set", s)]


def metrics(task, line):
    """Reads the metrics of a task, by the reference's names, from a line of eval --json."""
    found = {}
    for name, keys in TASKS[task][1].items():
        if keys is None:
            found[name] = line["groups"][0]["all_right"]
            continue
        heads = line["tasks"][keys[0]]["heads"]
        value = heads[next(iter(heads))]
        for key in keys[1:]:
            value = value[key]
        found[name] = value
    return {name: round(100 * value, 2) for name, value in found.items()}


def run(*command, **settings):
    """Runs a command and returns its output."""
    command = [*map(str, command)]
    done = subprocess.run(command, capture_output=True, text=True, **settings)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}:\n{done.stderr}")
    return done.stdout


def train_jenga(args, task, seed):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = {**os.environ, "JENGA_DATA": str(args.data.resolve()), "JENGA_MODELS": str(args.models.resolve())}
        binary, where = args.jenga.resolve(), ["--threads", args.threads, "--device", args.device]
        settings = ["--set", f"training.precision={args.train_precision}"] if args.train_precision else []

        def jenga(*words):
            return run(binary, *words, env=environment)

        def evaluate(split, *words):
            return metrics(task, json.loads(jenga("eval", folder / "run", "--split", split, "--json", *where, *words)))

        start = time.time()
        jenga("train", *experiment(args, task, seed, folder), *settings, "--out", folder / "run", *where, "--json")
        seconds = time.time() - start
        row = {"dev": evaluate("dev"), "test": evaluate("test")}
        for precision in args.precisions:
            row[f"test_{precision}"] = evaluate("test", "--precision", precision)
        if args.onnxruntime:
            lines = json.loads(run(sys.executable, HERE / "onnxruntime_scores.py", binary, folder / "run", "--threads", args.threads))
            row["test_onnxruntime"], row["test_onnxruntime_int8"] = (metrics(task, lines[name]) for name in ("float32", "int8"))
        version = jenga("version").strip()
    row["device"], row["precision"] = args.device, args.train_precision or "float32"
    return {**row, "seconds": round(seconds), "version": version}


def train_reference(args, task, seed):
    with tempfile.TemporaryDirectory() as folder:
        command = [args.reference, args.shared, task]
        if task == "xquad":  # the reference script does not have it
            split_articles(args, pathlib.Path(folder))
            command = [HERE / "torch_span.py", folder, args.models / "minilm-l6"]
        line = json.loads(run(sys.executable, *command, seed).splitlines()[-1])
    return {"dev": line["dev"], "test": line["test"], "seconds": line["train_s"]}


def table(measured):
    """Prints means, their difference, and how far jenga's may be below: the larger of 0.7 and twice the standard error."""
    print(f"{'task':12}{'metric':14}{'jenga':>8}{'seeds':>7}{'torch':>9}{'seeds':>7}{'diff':>8}{'allowed':>9}")
    measured = last(measured, "test").values()
    for task, (_, names) in TASKS.items():
        for name in names:
            sides = {engine: [r["test"][name] for r in measured if r["task"] == task and r["engine"] == engine] for engine in ("jenga", "torch")}
            if not sides["jenga"]:
                continue
            ours, theirs = sides["jenga"], sides["torch"]
            words = f"{task:12}{name:14}{statistics.mean(ours):8.2f}{len(ours):7}"
            if theirs:
                squares = [statistics.variance(s) / len(s) for s in (ours, theirs) if len(s) > 1]
                allowed = max(0.7, 2 * math.sqrt(sum(squares)))
                difference = statistics.mean(ours) - statistics.mean(theirs)
                words += f"{statistics.mean(theirs):9.2f}{len(theirs):7}{difference:8.2f}{allowed:9.2f}{'' if difference >= -allowed else '  missed'}"
            print(words)


def losses(measured):
    """Prints what runs of jenga lose on test against its own float32, in points: means over seeds, with their number."""
    columns = {key: last(measured, key).values() for key in LOWER}
    if not any(columns.values()):
        return
    print(f"\n{'loss (seeds)':14}{'metric':12}" + "".join(f"{title:>22}" for title in LOWER.values()))
    for task, (_, names) in TASKS.items():
        for name in names:
            found = [[r["test"][name] - r[key][name] for r in chosen if r["task"] == task] for key, chosen in columns.items()]
            if any(found):
                cells = [f"{round(statistics.mean(values), 2) + 0.0:.2f} ({len(values)})" if values else "" for values in found]
                print((f"{task:14}{name:12}" + "".join(f"{cell:>22}" for cell in cells)).rstrip())


def main():
    args = options()
    engines = {"jenga": train_jenga} | ({"torch": train_reference} if args.reference else {})
    lock = threading.Lock()

    def work(job):
        task, seed, engine = job
        row = {"task": task, "seed": seed, "engine": engine, **engines[engine](args, task, seed)}
        with lock, open(args.out, "a", encoding="utf-8") as out:
            print(json.dumps(row), file=out)
        print(json.dumps(row), file=sys.stderr)

    if not args.table:
        measured = rows(args.out)
        done = {engine: set.intersection(*(set(last(measured, key)) for key in evaluations(args, engine))) for engine in engines}
        jobs = [(task, seed, engine) for seed in args.seeds for task in args.tasks for engine in engines]
        jobs = [job for job in jobs if job not in done[job[2]]]
        with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
            for _ in pool.map(work, jobs):
                pass
    measured = rows(args.out)
    table(measured)
    losses(measured)


if __name__ == "__main__":
    main()
