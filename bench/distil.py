"""Compares students of some of a run's layers, with and without the run as their teacher.

    python bench/distil.py ./jenga --data DATA --models MODELS --runs RUNS --out distil.jsonl

For each corpus and seed, the run of its experiment is trained, then students of three of its six layers by the same recipe; all are
evaluated on dev and test. "from the base model" has these layers of the base model, and no teacher. Some have
texts without labels: 20 000 of the training texts of the other corpora, of GoEmotions and of XQuAD's questions, drawn with one seed.
"without, longer" has as many steps as these, without a teacher.

Each training run is a row of the file, and a run that is there is not repeated. --table prints the results as Markdown: the part of the
loss that is regained is (student - without)/(teacher - without), without longer training.
"""

import argparse
import concurrent.futures
import csv
import json
import pathlib
import random
import statistics
import time

from multitask import spread
from teachers import Study, options_of_studies
from variants import EXPERIMENTS

CORPORA = ("snips", "trec6", "sst", "banking77")
EPOCHS = {"snips": 2, "trec6": 4, "sst": 4, "banking77": 4}  # of the experiments
EXAMPLES = {"snips": 13084, "trec6": 4952, "sst": 6920, "banking77": 9003}  # of training
UNLABELLED = 20_000
RUN, WITHOUT, BASE = "teacher", "without", "from the base model"
LAYERS = [0, 2, 5]
TEXTS = "training.unlabelled={texts}"
STUDENTS = {  # settings, of jenga distil but for those without a teacher
    BASE: [],
    WITHOUT: [],
    "without, longer": ["training.num_epochs={epochs}"],
    "weight 0.5": [],
    "weight 1": ["training.teacher_weight=1"],
    "weight 0.5, states": ["training.match=states"],
    "texts": [TEXTS],
    "texts, weight 1": [TEXTS, "training.teacher_weight=1"],
    "texts, states": [TEXTS, "training.match=states"],
}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", choices=CORPORA, default=CORPORA)
    parser.add_argument("--students", nargs="+", choices=list(STUDENTS), default=list(STUDENTS), help="default: all")
    return options_of_studies(parser)


def others(data, corpus, path):
    """Writes the texts of corpora but one, a text in a line."""
    texts = []
    if corpus != "snips":
        texts += (data / "snips/train/seq.in").read_text(encoding="utf-8").splitlines()
    if corpus != "trec6":
        lines = (data / "trec6/TREC.train.all").read_text(encoding="latin1").splitlines()
        texts += [line.split(" ", 1)[1] for line in lines]
    if corpus != "sst":
        texts += [line.split(" ", 1)[1] for line in (data / "sst/stsa.binary.train").read_text(encoding="utf-8").splitlines()]
    if corpus != "banking77":
        with open(data / "banking77/train.csv", encoding="utf-8", newline="") as file:
            texts += [row["text"] for row in csv.DictReader(file)]
    texts += [line.split("\t")[0] for line in (data / "goemotions/train.tsv").read_text(encoding="utf-8").splitlines()]
    articles = json.loads((data / "xquad_en/xquad.en.json").read_text(encoding="utf-8"))["data"]
    texts += [asked["question"] for article in articles for paragraph in article["paragraphs"] for asked in paragraph["qas"]]
    texts = sorted({" ".join(text.split()) for text in texts} - {""})
    path.write_text("".join(f"{text}\n" for text in random.Random(1).sample(texts, UNLABELLED)), encoding="utf-8")


def train(study, corpus, seed, variant):
    key, args = {"file": corpus, "seed": seed}, study.args
    if study.find(**key, variant=variant):
        return
    folder = args.runs / f"{corpus}-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    run, start = folder / variant.replace(" ", "-").replace(",", ""), time.time()
    texts = folder / "texts.txt"
    others(pathlib.Path(args.data), corpus, texts)
    epochs = round(EPOCHS[corpus] * (1 + UNLABELLED / EXAMPLES[corpus]))
    settings = [f"seed={seed}", *(s.format(texts=texts.resolve(), epochs=epochs) for s in STUDENTS.get(variant, []))]
    more = ["--out", run, "--force", "--json", "--device", args.device, *(word for s in settings for word in ("--set", s))]
    if variant in (RUN, BASE) or variant.startswith(WITHOUT):
        if variant == BASE:
            more += ["--set", f"model.encoder={{layers: {LAYERS}}}"]
        elif variant != RUN:
            encoder = f"{{from: {(folder / RUN).resolve()}, layers: {LAYERS}}}"
            more += ["--set", f"model.encoder={encoder}", "--set", "model.base_model=null"]
        study.jenga("train", EXPERIMENTS / f"{corpus}.yaml", *more)
    else:
        study.jenga("distil", folder / RUN, "--layers", len(LAYERS), *more)
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
                if variant not in (RUN, BASE) and not variant.startswith(WITHOUT) and variant in by and WITHOUT in by:
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
