"""Computes the predictions, losses and metrics of trained runs again, from the documentation alone, and compares them with jenga's.

    python scripts/reference.py --jenga ./jenga RUN…
    python scripts/reference.py --jenga ./jenga --all FOLDER [--only NAME]

It reads best/ of a run (docs/checkpoints.md) and computes what docs/parts.md and docs/formulas.md say in PyTorch, for each record of
the split dev: predictions are compared with `jenga predict`, losses and metrics with `jenga eval --json`; thresholds, class weights, the
unit of numbers, the Gaussian of attention_pattern and the changes of LoRA with the saved tensors. Nothing of it is a translation of
jenga's code: where it disagrees, either the code or the documentation is wrong. Tokens are those of `jenga tokenize`, and metrics are
computed of jenga's own predictions, which have been compared before. --all trains small runs of every part into FOLDER first
(reference_runs.py). The exit status is 1 if anything disagrees.

The losses and metrics of mlm depend on random numbers of Go, and are not computed; the encoder hugot is not either. Data is read from
JSON lines alone.

Requires: torch==2.15.0 (Debian 12's 1.13.1 does too) numpy==2.4.6 safetensors==0.8.0 pyyaml
"""

import argparse
import itertools
import json
import math
import pathlib
import sys

import torch

import reference_metrics as metrics
import reference_runs
from reference_data import Run
from reference_encoders import load
from reference_heads import (CRF, AttentionPattern, ManyLabels, MaskedWords, Number, OneLabel, Reconstruction, Similarity, Span, Tags,
                             fit_gaussian)

# Predictions have four digits behind the point, which is half of this tolerance.
PREDICTION = 1e-4
LOSS = 1e-6
# Metrics are of numbers with seven digits.
METRIC = 1e-5
# Choices between values that differ by less are not compared: float32 may decide them differently.
TIE = 1e-5


class Report:
    """Counts comparisons by what they are of, with the largest difference, and prints those that disagree."""

    def __init__(self):
        self.kinds, self.failures = {}, 0

    def number(self, kind, where, want, got, tolerance, relative=False):
        if want is None or got is None:
            return self.same(kind, where, want, got)
        difference = abs(want - got) / (max(abs(want), 1e-3) if relative else max(abs(want), 1))
        count, most = self.kinds.get(kind, (0, 0))
        self.kinds[kind] = count + 1, max(most, difference)
        if not difference <= tolerance:
            self.fail(where, want, got)

    def same(self, kind, where, want, got):
        count, most = self.kinds.get(kind, (0, 0))
        self.kinds[kind] = count + 1, most
        if want != got:
            self.fail(where, want, got)

    def fail(self, where, want, got):
        self.failures += 1
        if self.failures <= 100:
            print(f"{where}: reference {str(want)[:300]}, jenga {str(got)[:300]}")

    def summary(self):
        for kind, (count, most) in sorted(self.kinds.items()):
            print(f"{kind}: {count} compared, largest difference {most:.2g}")
        print(f"{self.failures} disagree")


def compare_label(report, where, head, logits, got):
    p = head.probabilities(logits)
    number = head.labels.index(got["label"])
    report.number("probability of a label", where, float(p[number]), got["probability"], PREDICTION)
    if p.max() - p[number] > TIE:
        report.fail(where, head.labels[int(p.argmax())], got["label"])


def compare_labels(report, where, head, logits, got):
    p, limits = head.probabilities(logits), head.tensors["thresholds"]
    found = {row["label"]: row["probability"] for row in got["labels"]}
    order = [row["probability"] for row in got["labels"]]
    report.same("order of labels", where, sorted(order, reverse=True), order)
    for label, probability, limit in zip(head.labels, p, limits):
        if label in found:
            report.number("probability of one of many labels", f"{where} {label}", float(probability), found[label], PREDICTION)
        if abs(probability - limit) > TIE:
            report.same("one of many labels", f"{where} {label}", bool(probability >= limit), label in found)


def compare_tags(report, where, head, logits, got, words):
    p, tags = head.probabilities(logits), got["tags"]
    numbers = [None if tag is None else head.labels.index(tag) for tag in tags]
    report.same("words with a tag", where, [x is not None for x in logits], [tag is not None for tag in tags])
    if isinstance(head, CRF):
        best = head.decode(logits)
        if best != numbers and head.path_score(logits, best) - head.path_score(logits, numbers) > TIE:
            report.fail(where, [t if t is None else head.labels[t] for t in best], tags)
    else:
        for word, (x, number) in enumerate(zip(p, numbers)):
            if x is not None and x.max() - x[number] > TIE:
                report.fail(f"{where} word {word}", head.labels[int(x.argmax())], tags[word])
    if "spans" in got:
        compare_spans(report, where, p, numbers, got, words)


def compare_spans(report, where, p, numbers, got, words):
    spans = metrics.spans_of([tag or "O" for tag in got["tags"]])
    report.same("spans", where, [(label, words[a][0], words[b - 1][1]) for label, a, b in spans],
                [(s["label"], s["start"], s["end"]) for s in got["spans"]])
    for (_, a, b), span in zip(spans, got["spans"]):
        mean = sum(float(p[t][numbers[t]]) for t in range(a, b)) / (b - a)
        report.number("probability of a span of tags", f"{where} {span['text']}", mean, span["probability"], PREDICTION)


def compare_answer(report, where, head, outputs, got, context):
    start, end, probability, distance = head.predict(outputs)
    answer = got["answer"]
    if distance < TIE:
        return
    report.same("answer", where, (start, end, context[start:end]), (answer["start"], answer["end"], answer["text"]))
    report.number("probability of an answer", where, probability, answer["probability"], PREDICTION)


def compare_masks(report, where, guesses, hidden, vocabulary, count):
    report.same("masks", where, [(a, b) for a, b, _ in guesses], [(row["start"], row["end"]) for row in hidden])
    numbers = {token: number for number, token in enumerate(vocabulary)}
    for (start, _, p), row in zip(guesses, hidden):
        best = p.topk(count).values.tolist()
        report.same("guesses", where, count, len(row["guesses"]))
        for probability, guess in zip(best, row["guesses"]):
            place, got = f"{where} {start} {guess['token']}", guess["probability"]
            report.number("probability of a guess", place, float(p[numbers[guess["token"]]]), got, PREDICTION)
            report.number("probability of a guess", place, probability, got, PREDICTION)


def compare_prediction(report, where, run, task, head, record, got):
    """Compares the prediction of a head for a record with jenga's."""
    output = run.output(task, head, record)
    if isinstance(head, Tags):
        compare_tags(report, where, head, output, got, run.word_offsets(task, record))
    elif isinstance(head, OneLabel):
        compare_label(report, where, head, output, got)
    elif isinstance(head, ManyLabels):
        compare_labels(report, where, head, output, got)
    elif isinstance(head, Span):
        compare_answer(report, where, head, output, got, task.parts(record)[2])
    elif isinstance(head, MaskedWords):
        compare_masks(report, where, output, got["hidden"], run.vocabulary(), head.options["guesses"])
    else:
        value = head.value(output)
        report.number(f"prediction of {head.type}", where, value, got["value"], PREDICTION)
        if "alarm" in got and abs(value - head.threshold()) > TIE * abs(value):
            report.same("alarm", where, value > head.threshold(), got["alarm"])


def compare_file(report, run, name, path):
    """Compares the predictions of a file of data, and returns those of jenga by task."""
    rows = run.command("predict", run.folder, path)
    records = run.read(path)
    run.learn_words(records, rows)
    predicted = {}
    for task in run.tasks:
        # Tasks that were trained on single texts read both texts of a pair too.
        expected = task.spec.get("single") or len(run.parts(task, records[0])) > 1
        report.same("tasks of a text", f"{name} {path.name} {task.name}", bool(expected), task.name in rows[0]["tasks"])
        if not expected:
            continue
        run.prepare(task, records)
        predicted[task.name] = [row["tasks"][task.name] for row in rows]
        for number, (record, row) in enumerate(zip(records, rows, strict=True), 1):
            for head in task.heads:
                where = f"{name} {path.name}:{number} {task.name}.{head.name}"
                compare_prediction(report, where, run, task, head, record, row["tasks"][task.name][head.name])
    return predicted


def loss_of(run, task, head, records):
    """The loss of a head on records; None where it has none."""
    total = units = 0
    for record in records:
        gold = task.gold(record, head.name)
        if gold is None:
            continue
        if isinstance(head, Span):
            gold = task.gold_span(record)
        found = head.loss(run.output(task, head, record), gold)
        total, units = (total + found[0], units + found[1]) if found else (total, units)
    return total / units if units else None


def batches(run, group, records):
    """The batches of an evaluation: by length, equally long ones in the order of the data."""
    training = run.experiment["training"]
    lengths = [run.count_tokens(group, record) for record in records]
    made, tokens = [[]], 0
    for number in sorted(range(len(records)), key=lengths.__getitem__):
        limit = training["batch_tokens"]
        full = len(made[-1]) == 2 * training["batch_size"] or limit and tokens + lengths[number] > 2 * limit
        if made[-1] and full:
            made.append([])
            tokens = 0
        made[-1].append(records[number])
        tokens += lengths[number]
    return made


def similarity_loss(run, task, head, records):
    total = pairs = 0
    for batch in batches(run, task, records):
        known = [(run.output(task, head, record), task.gold(record, head.name)) for record in batch]
        known = [(cosine, gold) for cosine, gold in known if gold is not None]
        if known:
            total, pairs = total + head.batch_loss(*zip(*known)), pairs + len(known)
    return total / pairs if pairs else None


def metric_tolerance(name, values):
    """The tolerance of a metric of numbers with seven digits: rounding changes correlations of numbers that differ little, and the ranks
    of those that are nearly equal."""
    if name == "pearson":
        return METRIC * max(1, max(map(abs, values)) / (max(values) - min(values)))
    if name not in ("spearman", "auroc", "average_precision"):
        return METRIC
    order = sorted(values)
    ties = sum(b - a < 2e-6 * max(1, abs(b)) for a, b in zip(order, order[1:]))
    return METRIC + ties * (1 if name == "average_precision" else 12 / len(values)) / len(values)


def nearly_equal(values):
    """Whether numbers differ so little that their correlations are those of their rounding."""
    return max(values) - min(values) < 1e-3 * max(map(abs, values))


def head_metrics(task, head, records, rows):
    """The metrics of a head, of jenga's predictions."""
    known = [(task.gold(record, head.name), row[head.name], record) for record, row in zip(records, rows)]
    known = [(gold, row, record) for gold, row, record in known if gold is not None]
    golds, found = [gold for gold, _, _ in known], [row for _, row, _ in known]
    if isinstance(head, Tags):
        tags = [[tag or "O" for tag in row["tags"]] for row in found]
        if task.type == "ner":
            return metrics.spans(golds, tags, any(label[:2] in ("E-", "S-") for label in head.labels))
        words = [(g, p) for gold, row in zip(golds, tags) for g, p in zip(gold, row) if g]
        return metrics.classification(*zip(*words))
    if isinstance(head, OneLabel):
        return metrics.classification(golds, [row["label"] for row in found])
    if isinstance(head, ManyLabels):
        return metrics.many_labels([set(gold) for gold in golds], [{label["label"] for label in row["labels"]} for row in found])
    if isinstance(head, Span):
        texts = [[a if isinstance(a, str) else a["text"] for a in gold] for gold in golds]
        return metrics.answers(texts, [row["answer"]["text"] for row in found])
    if isinstance(head, (Number, Similarity)):
        return metrics.numbers([float(gold) for gold in golds], [row["value"] for row in found])
    return metrics.distances([not gold for gold in golds], [row["value"] for row in found], [row["alarm"] for row in found])


def is_right(task, head, gold, row):
    """Whether a prediction is right; None for numbers, distances and hidden tokens."""
    row = row[head.name]
    if isinstance(head, Tags):
        return all(g == (p or "O") for g, p in zip(gold, row["tags"]) if g)
    if isinstance(head, OneLabel):
        return gold == row["label"]
    if isinstance(head, ManyLabels):
        return set(gold) == {label["label"] for label in row["labels"]}
    texts = [a if isinstance(a, str) else a["text"] for a in gold]
    return metrics.answers([texts], [row["answer"]["text"]])["exact_match"] == 1


def all_right(run, tasks, records, predicted):
    """The fraction of texts for which all heads of tasks on the same texts are right, among texts labelled for all."""
    heads = [(task, head) for task in tasks for head in task.heads if isinstance(head, (OneLabel, ManyLabels, Span))]
    if len(heads) < 2:
        return None
    found = []
    for number, record in enumerate(records):
        golds = [task.gold(record, head.name) for task, head in heads]
        if all(gold is not None for gold in golds):
            found.append(all(is_right(task, head, gold, predicted[task.name][number]) for (task, head), gold in zip(heads, golds)))
    return sum(found) / len(found) if found else None


# The first metric of each type of task, and the one that eval_overall_f1 is the mean of.
MAIN = {"classification": "accuracy", "sentiment": "accuracy", "tagging": "accuracy", "mlm": "accuracy", "multi_label": "f1_micro",
        "qa_qc": "f1_micro", "regression": "pearson", "similarity": "pearson", "ner": "span_f1", "question_answering": "f1",
        "anomaly": "auroc"}
F1 = {"classification": "f1_macro", "sentiment": "f1_macro", "tagging": "f1_macro", "multi_label": "f1_micro", "qa_qc": "f1_micro",
      "ner": "span_f1", "question_answering": "f1"}


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values) if values else None


def compare_evaluation(report, run, name, data, predicted):
    """Compares the losses and metrics of the split dev with those of jenga."""
    got = run.command("eval", run.folder, "--json")[0]
    losses, mains, f1s = [], [], []
    for task in run.tasks:
        total = None
        for head in task.heads:
            row, where = got["tasks"][task.name]["heads"][head.name], f"{name} eval {task.name}.{head.name}"
            loss = row.get("loss") if isinstance(head, MaskedWords) else compare_head(report, run, where, task, head, data, predicted, row)
            if loss is not None:
                total = (total or 0) + head.weight * loss
            mains.append(row.get(MAIN[task.type]))
            f1s.append(row.get(F1.get(task.type)))
        losses.append(total)
    overall = got["overall"]
    report.number("eval_loss", f"{name} eval_loss", mean(losses), overall.get("eval_loss"), LOSS, True)
    report.number("metrics", f"{name} eval_overall", mean(mains), overall["eval_overall"], 1e-9)
    report.number("metrics", f"{name} eval_overall_f1", mean(f1s), overall.get("eval_overall_f1"), 1e-9)
    compare_groups(report, run, name, data, predicted, got)


def compare_head(report, run, where, task, head, data, predicted, row):
    """Compares the loss and the metrics of a head, and returns its loss."""
    records = data[task.root]
    loss = None
    if isinstance(head, Similarity):
        loss = similarity_loss(run, task, head, records)
    elif not isinstance(head, AttentionPattern):
        loss = loss_of(run, task, head, records)
    report.number(f"loss of {head.type} in {task.type}", where + " loss", loss, row.get("loss"), LOSS, True)
    rows = predicted[task.name]
    values = [prediction[head.name].get("value", 0.0) for prediction in rows]
    for name, value in head_metrics(task, head, records, rows).items():
        if name not in ("pearson", "spearman") or not nearly_equal(values):
            report.number("metrics", f"{where} {name}", value, row.get(name), metric_tolerance(name, values))
    return loss


def compare_groups(report, run, name, data, predicted, got):
    figures = {}
    for root in dict.fromkeys(task.root for task in run.tasks):
        tasks = [task for task in run.tasks if task.root == root]
        figure = all_right(run, tasks, data[root], predicted)
        if figure is not None:
            figures[frozenset(t.name for t in tasks if any(isinstance(h, (OneLabel, ManyLabels, Span)) for h in t.heads))] = figure
    found = {frozenset(group["tasks"]): group["all_right"] for group in got.get("groups") or []}
    report.same("groups of all_right", f"{name} groups", set(figures), set(found))
    for names in set(figures) & set(found):
        report.number("metrics", f"{name} all_right {sorted(names)}", figures[names], found[names], 1e-9)
    report.number("metrics", f"{name} eval_all_right", mean(list(figures.values())), got["overall"].get("eval_all_right"), 1e-9)


def tuned(rows, start):
    """The threshold for lists of (probability, whether the label holds): of the highest F1, nearest to a half, the higher one."""
    values = sorted({p for p, _ in rows})
    if not any(holds for _, holds in rows):
        return start
    candidates = [values[0] / 2] + [(a + b) / 2 for a, b in zip(values, values[1:])]
    holding = sum(holds for _, holds in rows)

    def rank(limit):
        chosen = [holds for p, holds in rows if p >= limit]
        return 2 * sum(chosen) / (len(chosen) + holding), -abs(limit - 0.5), limit

    return max(candidates, key=rank)


def compare_thresholds(report, run, where, task, head, records):
    """Compares the thresholds that the evaluation on dev has chosen."""
    if isinstance(head, ManyLabels):
        known = [(head.probabilities(run.output(task, head, record)), task.gold(record, head.name)) for record in records
                 if task.gold(record, head.name) is not None]
        columns = [[(float(p[c]), label in gold) for p, gold in known] for c, label in enumerate(head.labels)]
        limit, tune = head.options["threshold"], head.options["tune"]
        want = {"none": lambda: [limit] * len(columns), "each": lambda: [tuned(column, limit) for column in columns],
                "shared": lambda: [tuned(sum(columns, []), limit)] * len(columns)}[tune]()
        for label, value, got in zip(head.labels, want, head.tensors["thresholds"].tolist()):
            report.number(f"threshold, tune {tune}", f"{where} threshold {label}", value, got, TIE)
    elif isinstance(head, (Reconstruction, AttentionPattern)):
        values = sorted(head.value(run.output(task, head, record)) for record in records if task.gold(record, head.name))
        k = math.floor(head.options["false_alarms"] * len(values))
        if k < len(values):
            report.number("threshold of alarms", where + " threshold", values[len(values) - k - 1], head.threshold(), PREDICTION)


def compare_fitted(report, run, where, task, head, records):
    """Compares what a head has from the training data: weights of labels, the unit of numbers, a Gaussian."""
    golds = [(task.gold(record, head.name), record) for record in records]
    golds = [(gold, record) for gold, record in golds if gold is not None]
    if isinstance(head, OneLabel) and head.options.get("class_weights") == "balanced":
        compare_class_weights(report, run, where, task, head, golds)
    if isinstance(head, ManyLabels) and head.options.get("pos_weight") == "balanced":
        for label, got in zip(head.labels, head.tensors["pos_weight"].tolist()):
            count = sum(label in gold for gold, _ in golds)
            report.number("balanced pos_weight", where, max(len(golds) - count, 1) / count if count else 1, got, LOSS)
    if "unit" in head.tensors:
        values = torch.tensor([float(gold) for gold, _ in golds], dtype=torch.float64)
        report.number("unit", where + " mean", float(values.mean()), head.mean, LOSS)
        report.number("unit", where + " deviation", float(values.std(unbiased=False)) or 1, head.deviation, LOSS)
    if isinstance(head, AttentionPattern):
        compare_gaussian(report, run, where, task, head, [record for gold, record in golds if gold])


def compare_class_weights(report, run, where, task, head, golds):
    if isinstance(head, Tags):
        run.prepare(task, [record for _, record in golds])
        units = [tag for gold, record in golds for tag, x in zip(gold, run.output(task, head, record)) if tag and x is not None]
    else:
        units = [gold for gold, _ in golds]
    for label, got in zip(head.labels, head.tensors["class_weights"].tolist()):
        count = units.count(label)
        report.number("balanced class_weights", f"{where} {label}", len(units) / (len(head.labels) * count) if count else 1, got, LOSS)


def compare_gaussian(report, run, where, task, head, normal):
    """Compares distances by the Gaussian that is fitted here with those by the one that was saved."""
    run.prepare(task, normal)
    n = min(head.options["fit_texts"], len(normal))
    texts = [run.text(task, normal[i * len(normal) // n]) for i in range(n)]
    features = [sum(head.features(window) for window in text.windows) / len(text.windows) for text in texts]
    mean, distance = fit_gaussian(features)
    report.number("mean of the Gaussian", where + " mean", 0, float((mean - head.tensors["mean"]).abs().max()), TIE)
    for f in features:
        saved = float((head.tensors["white"] @ (f - head.tensors["mean"])).norm())
        report.number("distance by the Gaussian fitted here", where + " Gaussian", distance(f), saved, 10 * PREDICTION)


def compare_lora(report, run, name):
    """Compares the weights that LoRA has changed with those of the base model, plus A and B."""
    place = run.place / "lora"
    if not place.exists():
        return
    config = json.loads((place / "adapter_config.json").read_text())
    base = load(run.folder / run.experiment["model"]["base_model"] / "model.safetensors")
    saved, changes = load(run.place / "model.safetensors"), load(place / "adapter_model.safetensors")
    for module in config["target_modules"]:
        a, b = (changes[f"base_model.model.{module}.lora_{half}.weight"] for half in "AB")
        want = base[module + ".weight"] + config["lora_alpha"] / config["r"] * b @ a
        difference = float((want - saved[module + ".weight"]).abs().max())
        report.number("weight changed by LoRA", f"{name} {module}", 0, difference, LOSS)


def compare_run(report, jenga, folder):
    """Compares all of a run."""
    run, name = Run(jenga, folder), f"{folder.parent.name}/{folder.name}"
    compare_lora(report, run, name)
    paths = dict.fromkeys(run.path(task, "dev") for task in run.tasks)
    predicted = {path: compare_file(report, run, name, path) for path in paths}
    data, of_task = {}, {}
    for task in run.tasks:
        path = run.path(task, "dev")
        data[task.root], of_task[task.name] = run.read(path), predicted[path][task.name]
        for head in task.heads:
            where = f"{name} {task.name}.{head.name}"
            compare_thresholds(report, run, where, task, head, data[task.root])
            compare_fitted(report, run, where, task, head, run.read(run.path(task, "train")))
    compare_evaluation(report, run, name, data, of_task)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jenga", required=True, type=pathlib.Path, help="the binary")
    parser.add_argument("--all", type=pathlib.Path, metavar="FOLDER", help="train small runs of every part into FOLDER, and compare these")
    parser.add_argument("--only", metavar="NAME", help="with --all, only the runs whose name has this text")
    parser.add_argument("runs", nargs="*", type=pathlib.Path, help="run folders")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    jenga, report = str(arguments.jenga.resolve()), Report()
    folders = list(arguments.runs)
    if arguments.all:
        folders = itertools.chain(folders, reference_runs.make(jenga, arguments.all, arguments.only))
    for folder in folders:
        before = report.failures
        compare_run(report, jenga, pathlib.Path(folder).resolve())
        print(f"{folder}: {report.failures - before} disagree", flush=True)
    report.summary()
    sys.exit(report.failures > 0)


if __name__ == "__main__":
    main()
