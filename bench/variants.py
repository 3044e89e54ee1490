"""Trains variants of shipped experiments with several seeds, and compares their metrics on test: fusions, and heads
for tags.

    python bench/variants.py ./jenga fusion --data DATA --models MODELS --out fusion.jsonl
    python bench/variants.py ./jenga heads --data DATA --models MODELS --out heads.jsonl

Each training run is a row of the file, and a run that is there is not repeated, so that a stopped script can be started again.
--at-once runs train in parallel, on one thread each. --table prints means and standard deviations as Markdown.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

EXPERIMENTS = pathlib.Path(__file__).parent.parent / "experiments"
FOUR = ["training.num_epochs=4", "training.learning_rate=1.0e-4"]


def fusion_settings(variant):
    """Settings of a variant: off, concat, or a scale of AttentionFusion."""
    if variant in ("off", "concat"):
        return ["model.fusion.type=concat"] if variant == "concat" else []
    return ["model.fusion.type=attention", f"model.fusion.scale={variant}"]


def head_settings(task, *options):
    return [f"tasks.{task}.heads.{task}.{option}" for option in options]


# Each study: variants of experiments (file and settings), and the columns of its table: task and metric, or a group's all_right.
STUDIES = {
    "fusion": (
        {("three_tasks", v): fusion_settings(v) for v in ("off", "exact", "length", "residual", "gated", "concat")},
        {"three_tasks": [("intent", "accuracy"), ("slots", "span_f1"), ("intent", "all_right"), ("question", "accuracy"), ("sentiment", "accuracy")]},
    ),
    "heads": (
        {
            ("wnut17", "linear"): [],
            ("wnut17", "crf"): head_settings("entities", "type=crf"),
            ("wnut17", "focus"): head_settings("entities", "type=focus", "lstm_layers=0"),
            ("snips", "linear"): FOUR,
            ("snips", "crf"): [*FOUR, *head_settings("slots", "type=crf")],
            ("snips", "focus"): [*FOUR, *head_settings("slots", "type=focus", "lstm_layers=0")],
        },
        {"wnut17": [("entities", "span_f1"), ("entities", "span_f1_strict")], "snips": [("intent", "accuracy"), ("slots", "span_f1"), ("intent", "all_right")]},
    ),
}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the built binary")
    parser.add_argument("study", choices=list(STUDIES))
    parser.add_argument("--data", default=os.environ.get("JENGA_DATA"), help="folder of corpora (default $JENGA_DATA)")
    parser.add_argument("--models", default=os.environ.get("JENGA_MODELS"), help="folder of models (default $JENGA_MODELS)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--at-once", type=int, default=2, help="number of parallel training runs, each on one thread")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file of a JSON line for each training run")
    parser.add_argument("--table", action="store_true", help="only print the table of the rows")
    args = parser.parse_args()
    if not args.table and (args.data is None or args.models is None):
        parser.error("--data and --models are required, or JENGA_DATA and JENGA_MODELS in the environment")
    return args


def rows(path):
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def train(args, experiment, settings, seed, split="test"):
    """Trains the experiment's file and returns the line of eval --json for the split, and the seconds that both took."""
    environment = {**os.environ, "JENGA_DATA": str(args.data), "JENGA_MODELS": str(args.models)}

    def jenga(*words):
        done = subprocess.run([args.jenga.resolve(), *map(str, words), "--threads", "1"], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"jenga {' '.join(map(str, words))} exited with {done.returncode}:\n{done.stderr}")
        return json.loads(done.stdout.splitlines()[-1])

    with tempfile.TemporaryDirectory() as folder:
        start = time.time()
        words = [word for setting in [f"seed={seed}", *settings] for word in ("--set", setting)]
        jenga("train", experiment, "--out", pathlib.Path(folder) / "run", "--json", *words)
        return jenga("eval", pathlib.Path(folder) / "run", "--split", split, "--json"), round(time.time() - start)


def value_of(line, task, metric):
    """Reads a metric from a line of eval --json."""
    if metric == "all_right":
        return next(g["all_right"] for g in line["groups"] if task in g["tasks"])
    heads = line["tasks"][task]["heads"]
    return heads[next(iter(heads))][metric]


def table(study, measured):
    for file, names in STUDIES[study][1].items():
        print(f"| {file} | seeds | " + " | ".join(f"{task} {metric}" for task, metric in names) + " |")
        print("|---|---|" + "---|" * len(names))
        variants = collections.defaultdict(list)
        for row in measured:
            if row["file"] == file:
                variants[row["variant"]].append(row["test"])
        for variant, tests in variants.items():
            cells = []
            for task, metric in names:
                values = [100 * test[f"{task} {metric}"] for test in tests]
                spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
                cells.append(f"{statistics.mean(values):.2f}{spread}")
            print(f"| {variant} | {len(tests)} | " + " | ".join(cells) + " |")
        print()


def main():
    args = options()
    variants, names = STUDIES[args.study]
    lock = threading.Lock()

    def work(job):
        (file, variant), settings, seed = job
        line, seconds = train(args, EXPERIMENTS / f"{file}.yaml", settings, seed)
        test = {f"{task} {metric}": value_of(line, task, metric) for task, metric in names[file]}
        row = {"study": args.study, "file": file, "variant": variant, "seed": seed, "test": test, "seconds": seconds, "version": version}
        with lock, open(args.out, "a", encoding="utf-8") as out:
            print(json.dumps(row), file=out)
        print(json.dumps(row), file=sys.stderr)

    if not args.table:
        version = subprocess.run([args.jenga.resolve(), "version"], capture_output=True, text=True, check=True).stdout.strip()
        done = {(r["file"], r["variant"], r["seed"]) for r in rows(args.out)}
        jobs = [(key, settings, seed) for seed in args.seeds for key, settings in variants.items() if (*key, seed) not in done]
        with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
            for _ in pool.map(work, jobs):
                pass
    table(args.study, rows(args.out))


if __name__ == "__main__":
    main()
