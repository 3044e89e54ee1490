"""Says how far the words of the quickstart's notes alone tell the claim type and the urgency: logistic regression on
TF-IDF, of single words and of pairs of neighbours too, its strength C chosen on dev.

Python 3.11, scikit-learn 1.9.1, numpy 2.4.6. Run from the repository's root:
python scripts/bag_of_words.py
"""

import json

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline


def read(split):
    with open(f"experiments/claims/{split}.jsonl", encoding="utf-8") as f:
        return [json.loads(line) for line in f]


notes = {split: read(split) for split in ("train", "dev", "test")}
texts = {split: [note["text"] for note in notes[split]] for split in notes}

for label in "claim_type", "urgency":
    gold = {split: [note[label] for note in notes[split]] for split in notes}
    for name, ngrams in ("words", (1, 1)), ("words and pairs", (1, 2)):
        models = [
            make_pipeline(TfidfVectorizer(ngram_range=ngrams), LogisticRegression(C=c, max_iter=2000))
            .fit(texts["train"], gold["train"])
            for c in (1, 10, 100)
        ]
        best = max(models, key=lambda m: m.score(texts["dev"], gold["dev"]))
        shares = ", ".join(f"{split} {100 * best.score(texts[split], gold[split]):.1f}" for split in notes)
        print(f"{label} from {name}: accuracy in per cent: {shares}")
