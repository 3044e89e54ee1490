"""Says how far the words of claim notes alone tell odd ones: the Mahalanobis distance of word counts from a Gaussian fitted with
shrinkage to normal training notes, each count in its own deviation. The baseline of the task `structure` of claims.yaml.

Python 3.11, scikit-learn 1.9.1, numpy 2.4.6. Run from the repository's root:
python scripts/bag_of_words_anomaly.py
"""

import gzip
import json

import numpy as np
from sklearn.covariance import LedoitWolf
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import average_precision_score, roc_auc_score


def read(split):
    with gzip.open(f"experiments/claims/full/{split}.jsonl.gz", "rt", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


normal = [note["text"] for note in read("train") if note["structure"] == "normal"]
counts = CountVectorizer(min_df=5).fit(normal)
x = counts.transform(normal).toarray().astype(float)
mean, deviation = x.mean(0), x.std(0)
gaussian = LedoitWolf(assume_centered=True).fit((x - mean) / deviation)
for split in "dev", "test":
    notes = read(split)
    odd = [note["structure"] != "normal" for note in notes]
    scores = np.sqrt(gaussian.mahalanobis((counts.transform([n["text"] for n in notes]).toarray() - mean) / deviation))
    print(f"{split}: auroc {100 * roc_auc_score(odd, scores):.1f}, average precision {100 * average_precision_score(odd, scores):.1f}, "
          f"{sum(odd)} of {len(odd)} notes are odd, {x.shape[1]} words")
