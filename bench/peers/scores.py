"""Trains jenga's shipped experiments with several seeds, and a reference by PyTorch where it is given, and compares test scores.

    python bench/peers/scores.py ./jenga --data DATA --models MODELS --out scores.jsonl
    python bench/peers/scores.py ./jenga --data DATA --models MODELS --out scores.jsonl --reference train_ref.py --shared SHARED

Each training is a row of the file, which keeps what was measured: called again, the script goes on where it was stopped. A reference
script is run as SHARED TASK SEED and ends with a JSON line that has a dictionary test, in per cent.
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

# Each task: its experiment, and its figures by the reference's names: group, or task, head and metric.
TASKS = {
    "sst2": ("sst", {"accuracy": ("sentiment", "accuracy"), "f1": ("sentiment", "labels", "1", "f1")}),
    "trec6": ("trec6", {"accuracy": ("question", "accuracy")}),
    "mrpc": ("mrpc", {"accuracy": ("paraphrase", "accuracy"), "f1": ("paraphrase", "labels", "1", "f1")}),
    "stsb": ("stsb", {"pearson": ("likeness", "pearson"), "spearman": ("likeness", "spearman")}),
    "snips": ("snips", {"accuracy": ("intent", "accuracy"), "span_f1": ("slots", "f1"), "sentence": None}),
    "wnut17": ("wnut17", {"span_f1": ("entities", "f1")}),
    "banking77": ("banking77", {"accuracy": ("intent", "accuracy")}),
    "sick_ent": ("sick", {"accuracy": ("entailment", "accuracy")}),
    "sick_rel": ("sick", {"pearson": ("likeness", "pearson"), "spearman": ("likeness", "spearman")}),
    "ewt_pos": ("ud_ewt", {"tag_accuracy": ("pos", "accuracy")}),
    "xquad": ("xquad", {"f1": ("answer", "f1"), "exact_match": ("answer", "exact_match")}),
    "goemotions": ("goemotions", {"micro_f1@.3": ("feelings", "f1"), "macro_f1@.3": ("feelings", "f1_macro")}),
}
# What the reference has and a file has not: the same recipe for all, and thresholds that are not tuned.
SETTINGS = {
    "snips": ["training.num_epochs=4", "training.learning_rate=1.0e-4"],
    "goemotions": ["tasks.feelings.heads.feelings.threshold=0.3", "tasks.feelings.heads.feelings.tune=none"],
}
# Where the corpus has no dev set, the reference's own: so many lines of a shuffled training file, always the same.
DEV = {"trec6": ("trec6/TREC.train.all", 500), "banking77": ("banking77/train.csv", 1000)}
HERE = pathlib.Path(__file__).parent


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the built binary")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("JENGA_DATA"), help="folder of corpora (default $JENGA_DATA)")
    parser.add_argument("--models", type=pathlib.Path, default=os.environ.get("JENGA_MODELS"), help="of models (default $JENGA_MODELS)")
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=1, help="of each training by jenga")
    parser.add_argument("--at-once", type=int, default=1, help="trainings side by side")
    parser.add_argument("--reference", type=pathlib.Path, help="script that trains a task by PyTorch")
    parser.add_argument("--shared", type=pathlib.Path, help="what the reference script takes first")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file that keeps a JSON line for each training")
    parser.add_argument("--table", action="store_true", help="train nothing: print what the rows say")
    args = parser.parse_args()
    if args.data is None or args.models is None:
        parser.error("--data and --models name the corpora and the models")
    if (args.reference is None) != (args.shared is None):
        parser.error("--reference and --shared go together")
    return args


def rows(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def split(args, task, folder):
    """Writes a training file's dev set apart as the reference takes it, and returns the settings that name both parts."""
    if task == "xquad":
        return split_articles(args, folder)
    if task not in DEV:
        return []
    name, n = DEV[task]
    path = args.data / name
    chance = random.Random(0)
    if path.suffix == ".csv":
        import csv

        with open(path, encoding="utf-8", newline="") as f:
            header, *lines = csv.reader(f)
        chance.shuffle(lines)
        parts = {"train.csv": lines[n:], "dev.csv": lines[:n]}
        for part, chosen in parts.items():
            with open(folder / part, "w", encoding="utf-8", newline="") as f:
                csv.writer(f).writerows([header, *chosen])
    else:
        lines = path.read_bytes().splitlines(keepends=True)
        chance.shuffle(lines)
        parts = {"train": lines[n:], "dev": lines[:n]}
        for part, chosen in parts.items():
            (folder / part).write_bytes(b"".join(chosen))
    train, dev = parts
    return [f"train={folder / train}", f"dev={folder / dev}"]


def split_articles(args, folder):
    """Divides XQuAD by article, always alike: of 48, 34 for training, 5 for dev and 9 for test."""
    articles = json.loads((args.data / "xquad_en/xquad.en.json").read_text(encoding="utf-8"))["data"]
    random.Random(0).shuffle(articles)
    for name, part in {"train": articles[14:], "dev": articles[:5], "test": articles[5:14]}.items():
        (folder / f"{name}.json").write_text(json.dumps({"data": part}), encoding="utf-8")
    return [f"{name}={folder / name}.json" for name in ("train", "dev", "test")]


def experiment(args, task, seed, folder):
    """Writes the experiment of a task and seed."""
    name, _ = TASKS[task]
    text = (HERE.parent.parent / "experiments" / f"{name}.yaml").read_text(encoding="utf-8")
    if task == "sick_ent":
        text = text[:text.index("  - name: likeness")] + text[text.index("training:"):]
    if task == "sick_rel":  # the second task, with the first one's files
        files = text[text.index("    data:\n"):text.index("      label: entailment")]
        text = text[:text.index("  - name: entailment")] + "  - name: likeness\n    type: regression\n" + files \
            + "      value: relatedness_score\n" + text[text.index("training:"):]
    for setting in split(args, task, folder):
        part, path = setting.split("=", 1)
        lines = [line for line in text.splitlines() if not line.strip().startswith((f"{part}:", "path:", "split:"))]
        at = next(i for i, line in enumerate(lines) if line.strip() == "data:")
        lines.insert(at + 1, f"      {part}: {path}")
        text = "\n".join(lines) + "\n"
    path = folder / f"{task}.yaml"
    path.write_text(text, encoding="utf-8")
    return [path, "--set", f"seed={seed}"] + [word for s in SETTINGS.get(task, []) for word in ("--set", s)]


def figures(task, line):
    """Reads the reference's figures from a line of eval --json."""
    found = {}
    for name, way in TASKS[task][1].items():
        if way is None:
            found[name] = line["groups"][0]["all_right"]
            continue
        heads = line["tasks"][way[0]]["heads"]
        value = heads[next(iter(heads))]
        for key in way[1:]:
            value = value[key]
        found[name] = value
    return {name: round(100 * value, 2) for name, value in found.items()}


def train_jenga(args, task, seed):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        environment = {**os.environ, "JENGA_DATA": str(args.data.resolve()), "JENGA_MODELS": str(args.models.resolve())}

        def jenga(*words):
            done = subprocess.run([args.jenga.resolve(), *map(str, words)], env=environment, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"jenga {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr}")
            return done.stdout

        start = time.time()
        jenga("train", *experiment(args, task, seed, folder), "--out", folder / "run", "--threads", args.threads, "--json")
        seconds = time.time() - start
        test = json.loads(jenga("eval", folder / "run", "--split", "test", "--json", "--threads", args.threads))
        dev = json.loads(jenga("eval", folder / "run", "--split", "dev", "--json", "--threads", args.threads))
        version = jenga("version").strip()
    return {"dev": figures(task, dev), "test": figures(task, test), "seconds": round(seconds), "version": version}


def train_reference(args, task, seed):
    with tempfile.TemporaryDirectory() as folder:
        command = [args.reference, args.shared, task]
        if task == "xquad":  # which the reference script does not know
            split_articles(args, pathlib.Path(folder))
            command = [HERE / "torch_span.py", folder, args.models / "minilm-l6"]
        command = [*map(str, command), str(seed)]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    last = json.loads(done.stdout.splitlines()[-1])
    return {"dev": last["dev"], "test": last["test"], "seconds": last["train_s"]}


def table(have):
    """Prints means and what the distance between them is allowed to be: the larger of 0.7 and twice its standard error."""
    print(f"{'task':12}{'figure':14}{'jenga':>8}{'seeds':>7}{'torch':>9}{'seeds':>7}{'apart':>8}{'allowed':>9}")
    for task, (_, names) in TASKS.items():
        for name in names:
            sides = {engine: [r["test"][name] for r in have if r["task"] == task and r["engine"] == engine] for engine in ("jenga", "torch")}
            if not sides["jenga"]:
                continue
            ours, theirs = sides["jenga"], sides["torch"]
            words = f"{task:12}{name:14}{statistics.mean(ours):8.2f}{len(ours):7}"
            if theirs:
                squares = [statistics.variance(s) / len(s) for s in (ours, theirs) if len(s) > 1]
                allowed = max(0.7, 2 * math.sqrt(sum(squares)))
                apart = statistics.mean(ours) - statistics.mean(theirs)
                words += f"{statistics.mean(theirs):9.2f}{len(theirs):7}{apart:8.2f}{allowed:9.2f}{'' if apart >= -allowed else '  missed'}"
            print(words)


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
        done = {(r["task"], r["seed"], r["engine"]) for r in rows(args.out)}
        jobs = [job for seed in args.seeds for task in args.tasks for engine in engines if (job := (task, seed, engine)) not in done]
        with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
            for _ in pool.map(work, jobs):
                pass
    table(rows(args.out))


if __name__ == "__main__":
    main()
