"""Prints the metrics of bag-of-words baselines for the tasks of the quickstart and claims.yaml. Labels and amounts: linear models on
TF-IDF features of words, and of words and bigrams, with the regularisation chosen on dev. Anomalous notes: the Mahalanobis distance of
word counts, each divided by its standard deviation, from a Gaussian fitted with shrinkage to normal training notes.

Python 3.11, scikit-learn 1.9.1, numpy 2.4.6. Run from the repository's root:
python scripts/bag_of_words.py
"""

import gzip
import json
import os

import numpy as np
from sklearn.covariance import LedoitWolf
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MultiLabelBinarizer

INVERSE_REGULARISATION = 0.1, 1, 10, 100, 1000
SPLITS = "train", "dev", "test"


def corpus(folder):
    notes = {}
    for split in SPLITS:
        path = f"experiments/claims/{folder}{split}.jsonl"
        with open(path, encoding="utf-8") if os.path.exists(path) else gzip.open(path + ".gz", "rt", encoding="utf-8") as f:
            notes[split] = [json.loads(line) for line in f]
    return notes


def linear(name, notes, gold, model, metrics):
    """Prints a model's metrics; the first one chooses the regularisation."""
    texts = {split: [note["text"] + " " + note.get("clause", "") for note in notes[split]] for split in SPLITS}
    for words, ngrams in ("words", (1, 1)), ("words and pairs", (1, 2)):
        fitted = [make_pipeline(TfidfVectorizer(ngram_range=ngrams), model(c)).fit(texts["train"], gold["train"]) for c in INVERSE_REGULARISATION]
        first = next(iter(metrics.values()))
        best = max(fitted, key=lambda m: first(gold["dev"], m.predict(texts["dev"])))
        values = "; ".join(
            f"{split} " + ", ".join(f"{metric} {100 * of(gold[split], best.predict(texts[split])):.1f}" for metric, of in metrics.items())
            for split in SPLITS
        )
        print(f"{name} from {words}: {values}")


def labels(notes, column):
    return {split: [note[column] for note in notes[split]] for split in SPLITS}


def classifier(weights=None):
    return lambda c: LogisticRegression(C=c, max_iter=5000, class_weight=weights)


def anomalies(notes):
    normal = [note["text"] for note in notes["train"] if note["structure"] == "normal"]
    counts = CountVectorizer(min_df=5).fit(normal)
    x = counts.transform(normal).toarray().astype(float)
    mean, deviation = x.mean(0), x.std(0)
    gaussian = LedoitWolf(assume_centered=True).fit((x - mean) / deviation)
    for split in SPLITS[1:]:
        gold = [note["structure"] != "normal" for note in notes[split]]
        distances = gaussian.mahalanobis((counts.transform([n["text"] for n in notes[split]]).toarray() - mean) / deviation)
        print(f"structure from {x.shape[1]} words, {split}: auroc {100 * roc_auc_score(gold, distances):.1f}, average precision "
              f"{100 * average_precision_score(gold, distances):.1f}, {sum(gold)} of {len(gold)} notes are anomalous")


def main():
    accuracy = {"accuracy": accuracy_score}
    quickstart, full, clauses = corpus(""), corpus("full/"), corpus("clauses/")
    for column in "claim_type", "urgency":
        linear(f"quickstart: {column}", quickstart, labels(quickstart, column), classifier(), accuracy)
    for column in "claim_type", "urgency":
        linear(column, full, labels(full, column), classifier(), accuracy)
    fraud = {split: [note["fraud"] == "fraud" for note in full[split]] for split in SPLITS}
    linear("fraud", full, fraud, classifier("balanced"), {"f1": f1_score})
    linear("amount", full, labels(full, "amount"), lambda c: Ridge(1 / c), {"pearson": lambda a, b: np.corrcoef(a, b)[0, 1]})
    codes = MultiLabelBinarizer().fit([note["codes"] for note in full["train"]])
    gold = {split: codes.transform([note["codes"] for note in full[split]]) for split in SPLITS}
    linear("codes", full, gold, lambda c: OneVsRestClassifier(classifier()(c)),
           {"f1": lambda a, b: f1_score(a, b, average="micro"), "all right": accuracy_score})
    linear("covered", clauses, labels(clauses, "covered"), classifier(), accuracy)
    anomalies(full)


if __name__ == "__main__":
    main()
