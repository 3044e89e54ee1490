"""Compares samplers and weightings with the plain sum and with each task alone, on experiments of several corpora.

    python bench/multitask.py ./jenga search --data DATA --models MODELS --out multitask.jsonl
    python bench/multitask.py ./jenga final --data DATA --models MODELS --out multitask.jsonl

search trains one seed for two epochs: samplers with the plain sum, then weightings with the sampler of the best mean on dev.
final trains three seeds for the experiment's epochs, and evaluates on test: the setting of the best mean on dev, the plain sum and
each task alone, on its own examples for as many epochs, so that both have the same budget. The last experiment is trained from
scratch too.

Each training run is a row of the file, and a run that is there is not repeated, so that a stopped script can be started again.
--at-once runs train in parallel, on one thread each. --table prints the results as Markdown. It needs PyYAML.
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

import yaml
from variants import EXPERIMENTS, rows, train

FILES = ("sentence_pairs", "word_tags", "short_texts")
PLAIN = ("proportional", "fixed")
SAMPLERS = ("proportional", "round_robin", "uniform", "temperature", "annealed", "dynamic")
WEIGHTINGS = {name: name for name in ("uncertainty", "rlw", "gradnorm", "pcgrad", "cagrad", "famo")}
WEIGHTINGS["dwa"] = "{type: dwa, every: 100}"  # of epochs, the first two have equal weights
MAIN = ("span_f1", "tag_accuracy", "accuracy", "pearson")  # metrics that select, one for each kind of head
SCRATCH = {"type": "transformer", "layers": 4, "width": 256, "heads": 4, "feed_forward": 1024, "max_positions": 128}
SCRATCH_RATE = 5e-4


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the built binary")
    parser.add_argument("stage", choices=["search", "final"])
    parser.add_argument("--data", default=os.environ.get("JENGA_DATA"), help="folder of corpora (default $JENGA_DATA)")
    parser.add_argument("--models", default=os.environ.get("JENGA_MODELS"), help="folder of models (default $JENGA_MODELS)")
    parser.add_argument("--files", nargs="+", choices=FILES, default=FILES, help="experiments (default: all)")
    parser.add_argument("--at-once", type=int, default=2, help="number of parallel training runs, each on one thread")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="file of a JSON line for each training run")
    parser.add_argument("--table", action="store_true", help="only print the tables of the rows")
    args = parser.parse_args()
    if not args.table and (args.data is None or args.models is None):
        parser.error("--data and --models are required, or JENGA_DATA and JENGA_MODELS in the environment")
    return args


def experiment(file, task=None, scratch=False):
    """Returns a shipped experiment, or that of one of its tasks alone, or with an encoder that is not pretrained."""
    e = yaml.safe_load((EXPERIMENTS / f"{file}.yaml").read_text(encoding="utf-8"))
    if task is not None:
        by_name = {t["name"]: t for t in e["tasks"]}
        alone = by_name[task]
        if "same_as" in alone["data"]:
            data = {**by_name[alone["data"]["same_as"]]["data"], **alone["data"]}
            alone["data"] = {key: value for key, value in data.items() if key != "same_as"}
            if "value" in data:
                alone["data"].pop("label", None)
        e["tasks"] = [alone]
    if scratch:
        e["model"] = {"dropout": e["model"]["dropout"], "encoder": SCRATCH}
        e["tokenizer"]["train"] = {"vocab_size": 8000}
        e["training"]["learning_rate"] = SCRATCH_RATE
    return e


def sampling(file, sampler):
    """Returns the value of training.sampling. dynamic draws by the gaps to 100 %: two evaluations show no other gaps."""
    if sampler != "dynamic":
        return sampler
    targets = {task["name"]: 1 for task in experiment(file)["tasks"]}
    return yaml.safe_dump({"type": "dynamic", "targets": targets}, default_flow_style=True, width=10_000).strip()


def metrics(line):
    """Returns the main metric of each task of a line of eval --json, in per cent: all tasks have one head."""
    main = {}
    for task, values in line["tasks"].items():
        [head] = values["heads"].values()
        name = next(name for name in MAIN if name in head)
        main[task] = (name, 100 * head[name])
    return main


def mean(row):
    return statistics.mean(value for _, value in row["metrics"].values())


class Study:
    """Study trains what its file of rows lacks."""

    def __init__(self, args):
        self.args, self.lock = args, threading.Lock()
        self.rows = rows(args.out)
        if not args.table:
            self.version = subprocess.run([args.jenga.resolve(), "version"], capture_output=True, text=True, check=True).stdout.strip()

    def find(self, **key):
        return [r for r in self.rows if all(r[name] == value for name, value in key.items())]

    def run(self, jobs):
        """Trains the jobs: pairs of a row's key and of the settings."""
        jobs = [job for job in jobs if not self.find(**job[0])]
        with concurrent.futures.ThreadPoolExecutor(self.args.at_once) as pool:
            for _ in pool.map(self.work, jobs):
                pass

    def work(self, job):
        key, settings = job
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "experiment.yaml"
            path.write_text(yaml.safe_dump(experiment(key["file"], key["task"], key["scratch"])), encoding="utf-8")
            line, seconds = train(self.args, path, settings, key["seed"], "dev" if key["stage"] == "search" else "test")
        row = {**key, "metrics": metrics(line), "seconds": seconds, "version": self.version}
        with self.lock, open(self.args.out, "a", encoding="utf-8") as out:
            print(json.dumps(row), file=out)
            self.rows.append(row)
        print(json.dumps(row), file=sys.stderr)

    def job(self, stage, file, seed, sampler, weighting, task=None, scratch=False):
        key = {"stage": stage, "file": file, "scratch": scratch, "task": task, "sampling": sampler, "weighting": weighting, "seed": seed}
        settings = [f"training.sampling={sampling(file, sampler)}", f"training.weighting={WEIGHTINGS.get(weighting, weighting)}"]
        if stage == "search":
            settings.append("training.num_epochs=2")
        return key, settings

    def best(self, file, **key):
        """Returns the row of the best mean on dev; of equal ones the first."""
        found = self.find(stage="search", file=file, **key)
        return max(found, key=mean) if found else None

    def search(self, file):
        self.run([self.job("search", file, 1, sampler, "fixed") for sampler in SAMPLERS])
        sampler = self.best(file, weighting="fixed")["sampling"]
        self.run([self.job("search", file, 1, sampler, weighting) for weighting in WEIGHTINGS])

    def final(self, file):
        best = self.best(file)
        settings = dict.fromkeys([PLAIN, (best["sampling"], best["weighting"])])  # the best may be the plain sum
        tasks = [task["name"] for task in experiment(file)["tasks"]]
        for seed in (1, 2, 3):
            jobs = [self.job("final", file, seed, *setting) for setting in settings]
            jobs += [self.job("final", file, seed, *PLAIN, task=task) for task in tasks]
            if file == FILES[-1]:
                jobs.append(self.job("final", file, seed, *PLAIN, scratch=True))
                jobs += [self.job("final", file, seed, *PLAIN, task=task, scratch=True) for task in tasks]
            self.run(jobs)


def search_table(study, file):
    found = study.find(stage="search", file=file)
    if not found:
        return
    names = found[0]["metrics"]
    print(f"| {file}, dev | weighting | " + " | ".join(f"{task}, {name}" for task, (name, _) in names.items()) + " | mean |")
    print("|---|---|" + "---|" * (len(names) + 1))
    for row in found:
        cells = [f"{row['metrics'][task][1]:.2f}" for task in names]
        print(f"| {row['sampling']} | {row['weighting']} | " + " | ".join(cells) + f" | {mean(row):.2f} |")
    print()


def final_table(study, file):
    values = collections.defaultdict(lambda: collections.defaultdict(list))  # by task and setting
    for row in study.find(stage="final", file=file):
        setting = "alone" if row["task"] else "plain sum" if (row["sampling"], row["weighting"]) == PLAIN else f"{row['sampling']}, {row['weighting']}"
        for task, (name, value) in row["metrics"].items():
            values[f"{task}, {name}"][setting + (", from scratch" if row["scratch"] else "")].append(value)
    settings = list(dict.fromkeys(setting for by_setting in values.values() for setting in sorted(by_setting)))
    if not settings:
        return
    print(f"| {file}, test | " + " | ".join(settings) + " |")
    print("|---|" + "---|" * len(settings))
    for task, by_setting in values.items():
        print(f"| {task} | " + " | ".join(spread(by_setting[setting]) for setting in settings) + " |")
    print()


def spread(values):
    if not values:
        return "-"
    deviation = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.2f}{deviation} ({len(values)})"


def main():
    args = options()
    study = Study(args)
    for file in args.files:
        if not args.table:
            getattr(study, args.stage)(file)
        {"search": search_table, "final": final_table}[args.stage](study, file)


if __name__ == "__main__":
    main()
