"""Compares training together with each task alone, and with teachers that label the texts of other tasks, on experiments of several
corpora.

    python bench/teachers.py ./jenga --data DATA --models MODELS --runs RUNS --out teachers.jsonl

Each variant is trained with three seeds, and evaluated on dev and test; that of the best mean on dev with seed 1 is the one whose test
counts. The teachers of a run are the tasks alone. Each seed of a file has a run folder in RUNS, so that all its variants have the same
teachers, and what was interrupted goes on.

Each training run is a row of the file, and a run that is there is not repeated. --table prints the results as Markdown. It needs PyYAML.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import threading
import time

from multitask import FILES, metrics, spread
from variants import EXPERIMENTS, rows

TEACHERS = "training.teachers=alone"
# Settings of the variants by their names in tables.
VARIANTS = {
    "others' texts": [TEACHERS, "training.teacher_weight=0"],
    "weight 0.5": [TEACHERS],
    "annealed": [TEACHERS, "training.anneal=true"],
    "annealed, temperature 2": [TEACHERS, "training.anneal=true", "training.temperature=2"],
    "plain sum": [],
}
ALONE, BEST = "alone", "best"


def options_of_studies(parser):
    """Adds the options that every study has to its parser, and reads the command line."""
    parser.add_argument("jenga", type=pathlib.Path, help="the built binary")
    parser.add_argument("--data", default=os.environ.get("JENGA_DATA"), help="folder of corpora (default $JENGA_DATA)")
    parser.add_argument("--models", default=os.environ.get("JENGA_MODELS"), help="folder of models (default $JENGA_MODELS)")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--at-once", type=int, default=1, help="number of seeds and files in parallel")
    parser.add_argument("--threads", type=int, help="threads of each training run (default: the machine's)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda:N or auto (default cpu)")
    parser.add_argument("--runs", type=pathlib.Path, required=True, help="folder of run folders")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file of a JSON line for each training run")
    parser.add_argument("--table", action="store_true", help="only print the tables of the rows")
    args = parser.parse_args()
    if not args.table and (args.data is None or args.models is None):
        parser.error("--data and --models are required, or JENGA_DATA and JENGA_MODELS in the environment")
    return args


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="+", default=FILES, help="experiments, by the names of shipped files or as paths (default: all)")
    parser.add_argument("--variants", nargs="+", choices=[*VARIANTS, BEST], default=list(VARIANTS),
                        help="best: that of the best mean on dev with seed 1, of those with teachers (default: all)")
    return options_of_studies(parser)


class Study:
    """Study trains what its file of rows lacks."""

    def __init__(self, args):
        self.args, self.rows, self.lock = args, rows(args.out), threading.Lock()
        if not args.table:
            self.version = self.jenga("version").strip()

    def jenga(self, *words):
        environment = {**os.environ, "JENGA_DATA": str(self.args.data), "JENGA_MODELS": str(self.args.models)}
        if self.args.threads:
            words += ("--threads", self.args.threads)
        done = subprocess.run([self.args.jenga.resolve(), *map(str, words)], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"jenga {' '.join(map(str, words))} exited with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def find(self, **key):
        return [row for row in self.rows if all(row[name] == value for name, value in key.items())]

    def add(self, run, seconds, **key):
        """Evaluates a run, and adds its row."""
        row = {**key, "device": self.args.device}
        for split in ("dev", "test"):
            line = self.jenga("eval", run, "--split", split, "--json", "--device", self.args.device).splitlines()[-1]
            row[split] = metrics(json.loads(line))
        row.update(seconds=seconds, version=self.version)
        with self.lock, open(self.args.out, "a", encoding="utf-8") as out:
            print(json.dumps(row), file=out)
        print(json.dumps(row), flush=True)
        self.rows.append(row)

    def train(self, file, seed, variant):
        """Trains a variant, and adds its row and, where it has teachers, those of the tasks alone."""
        key = {"file": pathlib.Path(file).stem, "seed": seed}
        variant = best(self, key["file"]) if variant == BEST else variant
        if self.find(**key, variant=variant):
            return
        run = self.args.runs / f"{key['file']}-{seed}"
        doing = run.with_suffix(".variant")
        path = EXPERIMENTS / f"{file}.yaml" if "/" not in file else file
        words = [word for setting in [f"seed={seed}", "training.save_task_bests=false", *VARIANTS[variant]] for word in ("--set", setting)]
        again = doing.exists() and doing.read_text(encoding="utf-8") == variant
        doing.write_text(variant, encoding="utf-8")
        start = time.time()
        self.jenga("train", path, "--out", run, "--json", "--device", self.args.device, "--resume" if again else "--force", *words)
        self.add(run, round(time.time() - start), **key, variant=variant)
        doing.unlink()
        for teacher in sorted((run / "teachers").glob("*/")) if TEACHERS in VARIANTS[variant] else []:
            if not self.find(**key, variant=f"{ALONE} {teacher.name}"):
                self.add(teacher, 0, **key, variant=f"{ALONE} {teacher.name}")


def best(study, file):
    """Returns the variant with teachers of the best mean on dev with seed 1."""
    rows_of = [row for row in study.find(file=file, seed=1) if TEACHERS in VARIANTS.get(row["variant"], [])]
    return max(rows_of, key=lambda row: statistics.mean(value for _, value in row["dev"].values()), default={"variant": None})["variant"]


def table(study, file, split):
    values = collections.defaultdict(lambda: collections.defaultdict(list))  # by task and variant
    for row in study.find(file=file):
        for task, (name, value) in row[split].items():
            variant = ALONE if row["variant"].startswith(ALONE) else row["variant"]
            values[f"{task}, {name}"][variant].append(value)
    variants = [v for v in (ALONE, *VARIANTS) if any(v in by for by in values.values())]
    chosen = best(study, file)
    print(f"| {file}, {split} | " + " | ".join(f"**{v}**" if v == chosen else v for v in variants) + " |")
    print("|---|" + "---|" * len(variants))
    for task, by in values.items():
        print(f"| {task} | " + " | ".join(spread(by[v]) for v in variants) + " |")
    print()


def main():
    args = options()
    study = Study(args)
    if not args.table:
        args.runs.mkdir(parents=True, exist_ok=True)

        def work(job):
            for variant in args.variants:
                study.train(*job, variant)

        with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
            for _ in pool.map(work, [(file, seed) for seed in args.seeds for file in args.files]):
                pass
    for file in args.files:
        for split in ("dev", "test"):
            table(study, pathlib.Path(file).stem, split)


if __name__ == "__main__":
    main()
