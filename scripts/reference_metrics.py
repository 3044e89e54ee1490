"""The metrics of docs/parts.md and README.md, by the definitions of the libraries that these name. None stands for a metric without
meaning.
"""

import collections
import math
import re
import string


def ratio(a, b):
    return a / b if b else 0.0


def label_figures(right, predicted, support, prefix="", plain="_micro"):
    """precision, recall and f1 pooled over labels, their means over the labels that occur, and those weighted by support. The pooled
    ones have the suffix plain."""
    labels = [label for label in set(predicted) | set(support) if predicted[label] or support[label]]
    of = lambda label: (ratio(right[label], predicted[label]), ratio(right[label], support[label]),
                        ratio(2 * right[label], predicted[label] + support[label]))
    pooled = sum(right.values()), sum(predicted.values()), sum(support.values())
    micro = ratio(pooled[0], pooled[1]), ratio(pooled[0], pooled[2]), ratio(2 * pooled[0], pooled[1] + pooled[2])
    figures = {}
    for i, name in enumerate(("precision", "recall", "f1")):
        figures[prefix + name + plain] = micro[i]
        figures[prefix + name + "_macro"] = ratio(sum(of(label)[i] for label in labels), len(labels))
        figures[prefix + name + "_weighted"] = ratio(sum(of(label)[i] * support[label] for label in labels), pooled[2])
    return figures


def classification(gold, predicted):
    """Of lists of labels, of texts or of words."""
    right = collections.Counter(g for g, p in zip(gold, predicted) if g == p)
    support, chosen = collections.Counter(gold), collections.Counter(predicted)
    figures = {"accuracy": ratio(sum(right.values()), len(gold)), **label_figures(right, chosen, support)}
    n = len(gold)
    # Gorodkin's coefficient, as scikit-learn's matthews_corrcoef.
    covariance = sum(right.values()) * n - sum(support[label] * chosen[label] for label in support)
    spread = [n * n - sum(count**2 for count in counter.values()) for counter in (support, chosen)]
    figures["mcc"] = ratio(covariance, math.sqrt(spread[0] * spread[1]))
    return figures


def many_labels(gold, predicted):
    """Of lists of sets of labels."""
    right, support, chosen = (collections.Counter() for _ in range(3))
    for g, p in zip(gold, predicted):
        right.update(g & p)
        support.update(g)
        chosen.update(p)
    exact = ratio(sum(g == p for g, p in zip(gold, predicted)), len(gold))
    samples = [ratio(2 * len(g & p), len(g) + len(p)) for g, p in zip(gold, predicted)]
    figures = {"exact_match": exact, "accuracy": exact, "f1_samples": ratio(sum(samples), len(samples))}
    return {**figures, **label_figures(right, chosen, support)}


def begins(tag, before):
    """Whether a span begins at a tag, in conlleval's reading."""
    (kind, label), (last, other) = tag, before
    if kind == "O":
        return False
    return kind in "BS" or last in "OES" or label != other


def spans_of(tags):
    """The spans of tags as seqeval's default mode has them: (label, first word, word after the last)."""
    split = [("O", "") if tag == "O" else (tag[0], tag[2:]) for tag in tags]
    spans, start, before = [], None, ("O", "")
    for i, tag in enumerate(split + [("O", "")]):
        ended = start is not None and (tag[0] == "O" or begins(tag, before))
        if ended:
            spans.append((before[1], start, i))
            start = None
        if begins(tag, before):
            start = i
        before = tag
    return spans


def strict_spans(tags, bioes):
    """The spans that the scheme allows, as seqeval's strict mode has them."""
    split = [("O", "") if tag == "O" else (tag[0], tag[2:]) for tag in tags] + [("O", "")]
    spans, i = [], 0
    while i < len(split):
        kind, label = split[i]
        end = i + 1
        if kind == "B":
            while split[end] == ("I", label):
                end += 1
            if not bioes:
                spans.append((label, i, end))
            elif split[end] == ("E", label):
                end += 1
                spans.append((label, i, end))
        elif kind == "S" and bioes:
            spans.append((label, i, end))
        i = end
    return spans


def span_counts(gold, predicted, reading):
    right, support, chosen = (collections.Counter() for _ in range(3))
    for g, p in zip(gold, predicted):
        of_gold, of_predicted = reading(g), reading(p)
        right.update(label for label, *_ in set(of_gold) & set(of_predicted))
        support.update(label for label, *_ in of_gold)
        chosen.update(label for label, *_ in of_predicted)
    return right, chosen, support


def spans(gold, predicted, bioes=False):
    """Of lists of lists of tags; words without a gold tag are None."""
    kept = [[(g or "O", p) if g else ("O", "O") for g, p in zip(*pair)] for pair in zip(gold, predicted)]
    g, p = [[a for a, _ in text] for text in kept], [[b for _, b in text] for text in kept]
    counts = span_counts(g, p, spans_of)
    figures = label_figures(*counts, "span_", "")
    strict = label_figures(*span_counts(g, p, lambda tags: strict_spans(tags, bioes)), "span_", "_strict")
    figures.update({name: value for name, value in strict.items() if name.endswith("_strict")})
    words = [(a, b) for text in zip(gold, predicted) for a, b in zip(*text) if a]
    figures["accuracy"] = ratio(sum(a == b for a, b in words), len(words))
    return figures


def ranks(values):
    """Ranks from 1, equal values with the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, i = [0.0] * len(values), 0
    while i < len(order):
        j = i
        while j + 1 < len(order) and values[order[j + 1]] == values[order[i]]:
            j += 1
        for k in order[i:j + 1]:
            found[k] = (i + j) / 2 + 1
        i = j + 1
    return found


def pearson(a, b):
    mean_a, mean_b = sum(a) / len(a), sum(b) / len(b)
    covariance = sum((x - mean_a) * (y - mean_b) for x, y in zip(a, b))
    spread = sum((x - mean_a) ** 2 for x in a) * sum((y - mean_b) ** 2 for y in b)
    return covariance / math.sqrt(spread) if spread else None


def numbers(gold, predicted):
    errors = [p - g for g, p in zip(gold, predicted)]
    return {"pearson": pearson(gold, predicted), "spearman": pearson(ranks(gold), ranks(predicted)),
            "rmse": math.sqrt(sum(e * e for e in errors) / len(errors)), "mae": sum(map(abs, errors)) / len(errors)}


def distances(anomalous, values, alarms):
    """Of lists: whether a text is an anomaly, its distance, and whether it raised an alarm."""
    high, low = [v for a, v in zip(anomalous, values) if a], [v for a, v in zip(anomalous, values) if not a]
    above = sum((h > v) + (h == v) / 2 for h in high for v in low)
    precision_sum = hits = seen = 0
    for value in sorted(set(values), reverse=True):  # a step for each distance, as scikit-learn's average_precision_score
        now = sum(a for a, v in zip(anomalous, values) if v == value)
        hits, seen = hits + now, seen + values.count(value)
        precision_sum += now * hits / seen
    return {"auroc": above / (len(high) * len(low)) if high and low else None,
            "average_precision": precision_sum / len(high) if high else None,
            "recall": sum(x for a, x in zip(anomalous, alarms) if a) / len(high) if high else None,
            "specificity": sum(not x for a, x in zip(anomalous, alarms) if not a) / len(low) if low else None}


def normal_words(answer):
    """The words of an answer as SQuAD compares them."""
    kept = "".join(c for c in answer.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", kept).split()


def overlap(gold, predicted):
    a, b = normal_words(gold), normal_words(predicted)
    if not a or not b:
        return float(a == b)
    common = sum((collections.Counter(a) & collections.Counter(b)).values())
    return ratio(2 * common, len(a) + len(b))


def answers(gold, predicted):
    """Of lists: the texts of a question's gold answers, and the predicted one."""
    rows = []
    for texts, answer in zip(gold, predicted):
        kept = [text for text in texts if normal_words(text)] or [""]
        rows.append((bool(texts), max(float(normal_words(t) == normal_words(answer)) for t in kept), max(overlap(t, answer) for t in kept)))
    mean = lambda values: sum(values) / len(values) if values else None
    return {"exact_match": mean([e for _, e, _ in rows]), "f1": mean([f for _, _, f in rows]),
            "exact_match_answered": mean([e for has, e, _ in rows if has]), "f1_answered": mean([f for has, _, f in rows if has]),
            "exact_match_unanswered": mean([e for has, e, _ in rows if not has])}
