"""Compares training together with each task alone, and with teachers that label the texts of other tasks, on experiments of several
corpora.

    python bench/teachers.py ./jenga search --data DATA --models MODELS --runs RUNS --out teachers.jsonl
    python bench/teachers.py ./jenga final --data DATA --models MODELS --runs RUNS --out teachers.jsonl

search trains one seed, with all variants, and evaluates on dev. final trains three seeds with the plain sum and the variant of the best
mean on dev, and evaluates on test. In both, the teachers of a run are the tasks alone. Each seed of a file has a run folder in RUNS, so that
all its variants have the same teachers, and what was interrupted goes on.

Each training run is a row of the file, and a run that is there is not repeated. --table prints the results as Markdown. It needs PyYAML.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import time

from multitask import FILES, mean, metrics, spread
from variants import EXPERIMENTS, rows

TEACHERS = "training.teachers=alone"
# Settings of the variants by their names in tables.
VARIANTS = {
    "plain sum": [],
    "others' texts": [TEACHERS, "training.teacher_weight=0"],
    "weight 0.5": [TEACHERS],
    "annealed": [TEACHERS, "training.anneal=true"],
    "annealed, temperature 2": [TEACHERS, "training.anneal=true", "training.temperature=2"],
}
PLAIN, ALONE = "plain sum", "alone"


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the built binary")
    parser.add_argument("stage", choices=["search", "final"])
    parser.add_argument("--data", default=os.environ.get("JENGA_DATA"), help="folder of corpora (default $JENGA_DATA)")
    parser.add_argument("--models", default=os.environ.get("JENGA_MODELS"), help="folder of models (default $JENGA_MODELS)")
    parser.add_argument("--files", nargs="+", default=FILES, help="experiments, by the names of shipped files or as paths (default: all)")
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), help="of search (default: all)")
    parser.add_argument("--runs", type=pathlib.Path, required=True, help="folder of run folders")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file of a JSON line for each training run")
    parser.add_argument("--table", action="store_true", help="only print the tables of the rows")
    args = parser.parse_args()
    if not args.table and (args.data is None or args.models is None):
        parser.error("--data and --models are required, or JENGA_DATA and JENGA_MODELS in the environment")
    return args


class Study:
    """Study trains what its file of rows lacks."""

    def __init__(self, args):
        self.args, self.rows = args, rows(args.out)
        if not args.table:
            self.version = self.jenga("version").strip()

    def jenga(self, *words):
        environment = {**os.environ, "JENGA_DATA": str(self.args.data), "JENGA_MODELS": str(self.args.models)}
        done = subprocess.run([self.args.jenga.resolve(), *map(str, words)], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"jenga {' '.join(map(str, words))} exited with {done.returncode}:\n{done.stderr}")
        return done.stdout

    def find(self, **key):
        return [row for row in self.rows if all(row[name] == value for name, value in key.items())]

    def add(self, line, seconds, **key):
        row = {**key, "metrics": metrics(line), "seconds": seconds, "version": self.version}
        with open(self.args.out, "a", encoding="utf-8") as out:
            print(json.dumps(row), file=out)
        print(json.dumps(row), flush=True)
        self.rows.append(row)

    def train(self, stage, file, seed, variant):
        """Trains a variant, and adds its row and, where it has teachers, those of the tasks alone."""
        key = {"stage": stage, "file": file, "seed": seed}
        if self.find(**key, variant=variant):
            return
        split = "dev" if stage == "search" else "test"
        run, doing = self.args.runs / f"{pathlib.Path(file).stem}-{seed}", self.args.runs / f"{pathlib.Path(file).stem}-{seed}.variant"
        path = EXPERIMENTS / f"{file}.yaml" if "/" not in file else file
        words = [word for setting in [f"seed={seed}", "training.save_task_bests=false", *VARIANTS[variant]] for word in ("--set", setting)]
        again = doing.exists() and doing.read_text(encoding="utf-8") == variant
        doing.write_text(variant, encoding="utf-8")
        start = time.time()
        self.jenga("train", path, "--out", run, "--json", "--resume" if again else "--force", *words)
        seconds = round(time.time() - start)
        self.add(json.loads(self.jenga("eval", run, "--split", split, "--json").splitlines()[-1]), seconds, **key, variant=variant)
        doing.unlink()
        for teacher in sorted((run / "teachers").glob("*/")) if TEACHERS in VARIANTS[variant] else []:
            if not self.find(**key, variant=f"{ALONE} {teacher.name}"):
                line = json.loads(self.jenga("eval", teacher, "--split", split, "--json").splitlines()[-1])
                self.add(line, 0, **key, variant=f"{ALONE} {teacher.name}")

    def best(self, file):
        """Returns the variant with teachers of the best mean on dev; of equal ones the first."""
        found = [row for row in self.find(stage="search", file=file) if TEACHERS in VARIANTS.get(row["variant"], [])]
        return max(found, key=mean)["variant"]

    def search(self, file):
        for variant in self.args.variants:
            self.train("search", file, 1, variant)

    def final(self, file):
        for seed in (1, 2, 3):
            for variant in (self.best(file), PLAIN):
                self.train("final", file, seed, variant)


def table(study, stage, file):
    values = collections.defaultdict(lambda: collections.defaultdict(list))  # by task and variant
    for row in study.find(stage=stage, file=file):
        for task, (name, value) in row["metrics"].items():
            variant = ALONE if row["variant"].startswith(ALONE) else row["variant"]
            values[f"{task}, {name}"][variant].append(value)
    variants = [v for v in (ALONE, *VARIANTS) if any(v in by for by in values.values())]
    print(f"| {pathlib.Path(file).stem}, {'dev' if stage == 'search' else 'test'} | " + " | ".join(variants) + " |")
    print("|---|" + "---|" * len(variants))
    for task, by in values.items():
        print(f"| {task} | " + " | ".join(spread(by[v]) for v in variants) + " |")
    print()


def main():
    args = options()
    study = Study(args)
    for file in args.files:
        if not args.table:
            args.runs.mkdir(parents=True, exist_ok=True)
            getattr(study, args.stage)(file)
        table(study, args.stage, file)


if __name__ == "__main__":
    main()
