"""Compares students of some of a run's layers, with and without the run as their teacher.

    python bench/distil.py ./jenga --data DATA --models MODELS --runs RUNS --out distil.jsonl

For each corpus and seed, the run of its experiment is trained, then students of three of its six layers by the same recipe; all are
evaluated on dev and test.

Each training run is a row of the file, and a run that is there is not repeated. --table prints the results as Markdown: the part of the
loss that is regained is (student - without)/(teacher - without).
"""

import argparse
import concurrent.futures
import statistics
import time

from multitask import spread
from teachers import Study, options_of_studies
from variants import EXPERIMENTS

CORPORA = ("snips", "trec6", "sst", "banking77")
RUN, WITHOUT = "teacher", "without"
LAYERS = [0, 2, 5]
STUDENTS = {  # settings of jenga distil
    WITHOUT: None,
    "weight 0.5": [],
    "weight 1": ["training.teacher_weight=1"],
    "weight 0.5, states": ["training.match=states"],
}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=CORPORA)
    parser.add_argument("--students", nargs="+", choices=list(STUDENTS), default=list(STUDENTS), help="default: all")
    return options_of_studies(parser)


def train(study, corpus, seed, variant):
    key, args = {"file": corpus, "seed": seed}, study.args
    if study.find(**key, variant=variant):
        return
    folder = args.runs / f"{corpus}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    run, start = folder / variant.replace(" ", "-").replace(",", ""), time.time()
    more = ["--out", run, "--force", "--json", "--device", args.device, "--set", f"seed={seed}"]
    if variant in (RUN, WITHOUT):
        if variant == WITHOUT:
            encoder = f"{{from: {(folder / RUN).resolve()}, layers: {LAYERS}}}"
            more += ["--set", f"model.encoder={encoder}", "--set", "model.base_model=null"]
        study.jenga("train", EXPERIMENTS / f"{corpus}.yaml", *more)
    else:
        settings = [word for setting in STUDENTS[variant] for word in ("--set", setting)]
        study.jenga("distil", folder / RUN, "--layers", len(LAYERS), *more, *settings)
    study.add(run, round(time.time() - start), **key, variant=variant)


def table(study, corpora, split):
    print(f"| {split} | " + " | ".join((RUN, *STUDENTS)) + " |")
    print("|---|" + "---|" * (1 + len(STUDENTS)))
    for corpus in corpora:
        values = {}  # by task and variant
        for row in study.find(file=corpus):
            for task, (metric, value) in row[split].items():
                values.setdefault(f"{task}, {metric}", {}).setdefault(row["variant"], []).append(value)
        for task, by in values.items():
            cells = []
            for variant in (RUN, *STUDENTS):
                cell = spread(by.get(variant, []))
                if variant not in (RUN, WITHOUT) and variant in by and WITHOUT in by:
                    without, lost = statistics.mean(by[WITHOUT]), statistics.mean(by[RUN]) - statistics.mean(by[WITHOUT])
                    if lost > 0:
                        cell += f" {100 * (statistics.mean(by[variant]) - without) / lost:.0f} %"
                cells.append(cell)
            print(f"| {corpus}: {task} | " + " | ".join(cells) + " |")
    print()


def main():
    args = options()
    study = Study(args)
    if not args.table:

        def work(job):
            for variant in (RUN, *args.students):
                train(study, *job, variant)

        with concurrent.futures.ThreadPoolExecutor(args.at_once) as pool:
            for _ in pool.map(work, [(corpus, seed) for seed in args.seeds for corpus in args.corpora]):
                pass
    for split in ("dev", "test"):
        table(study, args.corpora, split)


if __name__ == "__main__":
    main()
