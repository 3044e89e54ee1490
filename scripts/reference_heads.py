"""The heads of docs/parts.md with the pools, losses and predictions of docs/formulas.md, in float64.

A head reads windows, each with its States, the task's fused states [T D] and the places of its tokens, and makes outputs: a value for each
text, of which predictions and losses are computed.
"""

import math

import torch

from reference_encoders import below, gelu, layer_norm, lstm_layer


def pool(kind, h, query=None):
    if kind == "cls":
        return h[0]
    if kind == "mean":
        return h.mean(0)
    if kind == "max":
        return h.max(0).values
    return torch.softmax(h @ query / math.sqrt(h.shape[1]), 0).T @ h


def pick(windows, word):
    """The window that a word is read in, and its position there: the most tokens on its shorter side, the first of equals."""
    best = None
    for window in windows:
        if word in window.words:
            position = window.words[word]
            side = min(position, len(window.ids) - 1 - position)
            if best is None or side > best[0]:
                best = side, window, position
    return best and best[1:]


class Head:
    """A head by its tensors, options and labels; the fields of all heads."""

    def __init__(self, task, spec, options, tensors):
        self.task, self.name, self.type, self.options, self.tensors = task, spec["name"], spec["type"], options, tensors
        self.labels, self.weight = spec.get("labels"), options["weight"]
        if "unit" in tensors:
            self.mean, self.deviation = tensors["unit"].tolist()
        else:
            self.mean, self.deviation = 0.0, 1.0

    def pooled(self, h):
        x = pool(self.options["pool"], h, self.tensors.get("pool.query"))
        return x.reshape(-1)

    def score(self, x):
        """The logits of pooled states or of states of words, of linear, mlp and focus heads, crf, regression and span."""
        if self.type == "mlp":
            hidden = x @ self.tensors["hidden.weight"] + self.tensors["hidden.bias"]
            x = gelu(hidden) if self.options["activation"] == "gelu" else torch.tanh(hidden)
        return x @ self.tensors["score.weight"] + self.tensors["score.bias"]

    def states(self, window):
        return self.focus(window.states)[0] if self.type == "focus" else window.states

    def lens(self, x):
        """The centres and apertures [T Z] of the states that a focus head's attention reads."""
        centre = torch.sigmoid(x @ self.tensors["focus.centre.weight"] + self.tensors["focus.centre.bias"])
        aperture = torch.nn.functional.softplus(x @ self.tensors["focus.aperture.weight"] + self.tensors["focus.aperture.bias"])
        return centre, self.options["min_aperture"] + aperture

    def focus(self, h):
        """The states y of a focus head, and its centres and apertures."""
        x, t, heads = h, self.tensors, self.options["attention_heads"]
        for i in range(self.options["lstm_layers"]):
            x = lstm_layer(x, t, f"lstm.{i}.")
        length, width = x.shape
        split = lambda name: (x @ t[f"focus.{name}.weight"] + t[f"focus.{name}.bias"]).view(length, heads, -1).transpose(0, 1)
        logits = split("query") @ split("key").transpose(1, 2) / math.sqrt(width // heads)
        centre, aperture = self.lens(x)
        positions = torch.arange(length, dtype=x.dtype) / max(length - 1, 1)
        exponents = -((positions[None, None] - centre.T[:, :, None]) ** 2) / (2 * aperture.T[:, :, None] ** 2)
        if self.options["normalise"] == "sum":
            weights = torch.softmax(logits + exponents, -1)
        else:
            weights = torch.softmax(torch.softmax(logits, -1) * torch.exp(exponents), -1)
        mixed = (weights @ split("value")).transpose(0, 1).reshape(length, width)
        y = layer_norm(x + mixed @ t["focus.out.weight"] + t["focus.out.bias"], t["focus.norm.weight"], t["focus.norm.bias"])
        return y, centre, aperture

    def text_logits(self, text):
        """The logits of each window of a text."""
        return [self.score(self.pooled(self.states(window))) for window in text.windows]

    def word_logits(self, text):
        """The logits of each word, None for those that are not read."""
        if self.type != "focus":
            scored = {id(window): self.score(window.states) for window in text.windows}
        else:
            scored = {id(window): self.score(self.states(window)) for window in text.windows}
        places = [pick(text.windows, word) for word in range(text.words)]
        return [place and scored[id(place[0])][place[1]] for place in places]


class OneLabel(Head):
    """One label of a text."""

    def output(self, text):
        return self.text_logits(text)

    def probabilities(self, logits):
        return sum(torch.softmax(x, 0) for x in logits) / len(logits)

    def term(self, logits, gold):
        """The loss of one text or word: each label's term has its own weight."""
        smooth, gamma = self.options["label_smoothing"], self.options["focal_gamma"]
        logs = torch.log_softmax(logits, 0)
        q = torch.full_like(logs, smooth / len(logs))
        q[gold] += 1 - smooth
        return float((q * self.class_weights() * (1 - logs.exp()) ** gamma * -logs).sum())

    def class_weights(self):
        return self.tensors.get("class_weights", torch.ones(len(self.labels), dtype=torch.float64))

    def loss(self, logits, gold):
        """The sum and the divisor of a text's loss; None where it is not labelled."""
        if gold not in self.labels:
            return None
        number = self.labels.index(gold)
        return sum(self.term(x, number) for x in logits) / len(logits), float(self.class_weights()[number])


class ManyLabels(Head):
    """Any number of labels of a text."""

    def output(self, text):
        return self.text_logits(text)

    def probabilities(self, logits):
        return sum(torch.sigmoid(x) for x in logits) / len(logits)

    def term(self, logits, holds):
        signed = torch.where(holds, logits, -logits)
        factors = torch.where(holds, self.tensors.get("pos_weight", torch.ones_like(logits)), torch.ones_like(logits))
        p = torch.sigmoid(signed)
        return float((factors * (1 - p) ** self.options["focal_gamma"] * -torch.nn.functional.logsigmoid(signed)).mean())

    def loss(self, logits, gold):
        holds = torch.tensor([label in gold for label in self.labels])
        return sum(self.term(x, holds) for x in logits) / len(logits), 1


class Tags(OneLabel):
    """A tag of each word."""

    def output(self, text):
        return self.word_logits(text)

    def probabilities(self, logits):
        return [None if x is None else torch.softmax(x, 0) for x in logits]

    def decode(self, logits):
        return [None if p is None else int(p.argmax()) for p in self.probabilities(logits)]

    def loss(self, logits, gold):
        total = divisor = 0
        for x, tag in zip(logits, gold):
            if x is not None and tag in self.labels:
                number = self.labels.index(tag)
                total, divisor = total + self.term(x, number), divisor + float(self.class_weights()[number])
        return total, divisor


def allowed(before, after):
    """Whether BIO, or BIOES, allows a tag after another; None is the beginning or the end of the text."""
    split = lambda tag: ("O", "") if tag is None or tag == "O" else (tag[0], tag[2:])
    (first, label), (second, other) = split(before), split(after)
    if second in "IE":
        return first in "BI" and label == other
    return True


def finished(tag, after):
    """Whether BIOES allows what follows a tag: B and I go on in a scheme with E and S."""
    if tag is None or tag[0] not in "BI":
        return True
    return after is not None and after[0] in "IE" and after[2:] == tag[2:]


class CRF(Tags):
    """A chain of tags."""

    def chain(self, logits):
        """The places of the words that are read."""
        return [t for t, x in enumerate(logits) if x is not None]

    def forbidden(self):
        """Which tags are no first one, which follow no other [before, after], and which are no last one."""
        labels = self.labels
        bioes = any(label[:2] in ("E-", "S-") for label in labels)
        no = lambda a, b: not (allowed(a, b) and (not bioes or finished(a, b)))
        masks = [no(None, x) for x in labels], [[no(x, y) for y in labels] for x in labels], [no(x, None) for x in labels]
        return [torch.tensor(mask) for mask in masks]

    def forbid(self, words, places):
        """The terms of the first tag, of transitions between neighbours in places, and of the last tag: -inf where forbidden."""
        t = self.tensors
        start, end, free = t["chain.start"].clone(), t["chain.end"].clone(), t["chain.transitions"]
        if self.options["constraints"] == "none" or not places:
            return start, [free] * (len(places) - 1), end
        first, between, last = self.forbidden()
        if places[0] == 0:
            start[first] = -math.inf
        if places[-1] == words - 1:
            end[last] = -math.inf
        bound = free.masked_fill(between, -math.inf)
        steps = [bound if after == before + 1 else free for before, after in zip(places, places[1:])]
        return start, steps, end

    def log_sum(self, logits, gold=None):
        """log Z, over all tags or those that agree with gold, and the logarithms of the sums before and after each word."""
        places = self.chain(logits)
        start, steps, end = self.forbid(len(logits), places)
        e = torch.stack([logits[t] for t in places])
        if gold is not None:
            for row, t in enumerate(places):
                if gold[t] in self.labels:
                    other = torch.arange(len(self.labels)) != self.labels.index(gold[t])
                    e[row] = e[row].masked_fill(other, -math.inf)
        forward, backward = [start + e[0]], [end]
        for step, x in zip(steps, e[1:]):
            forward.append(torch.logsumexp(forward[-1][:, None] + step, 0) + x)
        for step, x in zip(reversed(steps), reversed(e[1:])):
            backward.insert(0, torch.logsumexp(step + x + backward[0], 1))
        return float(torch.logsumexp(forward[-1] + end, 0)), forward, backward

    def probabilities(self, logits):
        places, marginals = self.chain(logits), [None] * len(logits)
        if places:
            z, forward, backward = self.log_sum(logits)
            for t, a, b in zip(places, forward, backward):
                marginals[t] = torch.exp(a + b - z)
        return marginals

    def decode(self, logits):
        """The likeliest tags (Viterbi)."""
        places, tags = self.chain(logits), [None] * len(logits)
        if not places:
            return tags
        start, steps, end = self.forbid(len(logits), places)
        best, back = start + logits[places[0]], []
        for step, t in zip(steps, places[1:]):
            values, before = (best[:, None] + step).max(0)
            best = values + logits[t]
            back.append(before)
        number = int((best + end).argmax())
        tags[places[-1]] = number
        for t, before in zip(reversed(places[:-1]), reversed(back)):
            number = int(before[number])
            tags[t] = number
        return tags

    def path_score(self, logits, tags):
        """The sum of the terms of tags, for comparing two of them."""
        places = self.chain(logits)
        start, steps, end = self.forbid(len(logits), places)
        score = start[tags[places[0]]] + end[tags[places[-1]]] + sum(logits[t][tags[t]] for t in places)
        return float(score + sum(step[tags[a], tags[b]] for step, a, b in zip(steps, places, places[1:])))

    def loss(self, logits, gold):
        known = [t for t in self.chain(logits) if gold[t] in self.labels]
        if not known:
            return 0, 0
        over_gold = self.log_sum(logits, gold)[0]
        if over_gold == -math.inf:  # gold tags that break the constraints
            return 0, 0
        return self.log_sum(logits)[0] - over_gold, len(known)


class Number(Head):
    """A number of a text."""

    def output(self, text):
        values = [x[0] for x in self.text_logits(text)]
        limits = self.options.get("range")
        if limits:
            values = [limits[0] + (limits[1] - limits[0]) * torch.sigmoid(x) for x in values]
        return values

    def value(self, values):
        return self.mean + self.deviation * float(sum(values) / len(values))

    def term(self, y, gold):
        d = abs(float(y) - (gold - self.mean) / self.deviation)
        kind = self.options.get("loss", "mse")
        if kind == "mae":
            return d
        if kind == "huber":
            return d * d / 2 if d < 1 else d - 0.5
        return d * d

    def loss(self, values, gold):
        return sum(self.term(y, gold) for y in values) / len(values), 1


class Similarity(Head):
    """The cosine of two texts."""

    def output(self, texts):
        u, v = (sum(self.pooled(window.states) for window in text.windows) / len(text.windows) for text in texts)
        norms = max(float(u.norm()), 1e-8) * max(float(v.norm()), 1e-8)
        return float(u @ v) / norms

    def value(self, cosine):
        least, most = self.options["range"]
        return least + (most - least) * cosine

    def batch_loss(self, cosines, gold):
        """The sum of the losses of a batch of pairs."""
        least, most = self.options["range"]
        if self.options["loss"] == "mse":
            return sum((c - (g - least) / (most - least)) ** 2 for c, g in zip(cosines, gold))
        c, g = torch.tensor(cosines, dtype=torch.float64), torch.tensor(gold, dtype=torch.float64)
        differences = (self.options["scale"] * (c[:, None] - c[None]))[g[None] > g[:, None]]
        return len(gold) * float(torch.logsumexp(torch.cat([torch.zeros(1, dtype=torch.float64), differences]), 0))


class Span(Head):
    """An answer in a context."""

    def output(self, text):
        outputs = []
        for window in text.windows:
            logits = self.score(window.states)
            places = [0] + [position for position, _, _ in window.context]
            s, e = logits[places, 0], logits[places, 1]
            outputs.append((window, s, e, torch.log_softmax(s, 0), torch.log_softmax(e, 0)))
        return outputs

    def best(self, outputs):
        """The start and the end of the best span in characters, its logits and its probability."""
        best, most = None, self.options["max_answer_tokens"]
        for window, s, e, log_s, log_e in outputs:
            sums = s[1:, None] + e[None, 1:]
            spans = torch.ones_like(sums, dtype=torch.bool).triu().tril(most - 1)
            i, j = divmod(int(sums.masked_fill(~spans, -math.inf).argmax()), len(s) - 1)
            if best is None or sums[i, j] > best[2]:
                probability = float(torch.exp(log_s[i + 1] + log_e[j + 1]))
                best = window.context[i][1], window.context[j][2], float(sums[i, j]), probability
        return best

    def predict(self, outputs):
        """The start, the end and the probability of the answer, 0, 0 for none, and how far the choice of none is from its margin."""
        start, end, best, probability = self.best(outputs)
        if not self.options["no_answer"]:
            return start, end, probability, math.inf
        none = min(float(s[0] + e[0]) for _, s, e, _, _ in outputs)
        beyond = none - best - self.options["margin"]
        if beyond > 0:
            return 0, 0, 1 / (1 + math.exp(best - none)), beyond
        return start, end, probability, -beyond

    def target(self, window, start, end):
        """The places of an answer's first and last token in a window, 0 and 0 if it is not all in it."""
        first = [i for i, (_, a, b) in enumerate(window.context, 1) if a <= start < b]
        last = [i for i, (_, a, b) in enumerate(window.context, 1) if a < end <= b]
        return (first[0], last[0]) if first and last else (0, 0)

    def loss(self, outputs, gold):
        total = 0
        for window, _, _, log_s, log_e in outputs:
            i, j = self.target(window, *gold) if gold else (0, 0)
            total -= float(log_s[i] + log_e[j]) / 2
        return total, len(outputs)


class MaskedWords(Head):
    """The tokens that masks hide."""

    def output(self, text, mask, embeddings):
        """The probabilities of all tokens for each mask, by its start and end in the text."""
        t, found = self.tensors, {}
        for window in text.windows:
            for position, start, end in window.text_tokens:
                side = min(position, len(window.ids) - 1 - position)
                if window.ids[position] == mask and (start not in found or side > found[start][0]):
                    found[start] = side, window.states[position], end
        guesses = []
        for start, (_, h, end) in sorted(found.items()):
            x = gelu(h @ t["transform.weight"] + t["transform.bias"])
            x = layer_norm(x, t["norm.weight"], t["norm.bias"])
            guesses.append((start, end, torch.softmax(x @ embeddings.T + t["bias"], 0)))
        return guesses


class Distance(Head):
    """How far a text is from normal ones."""

    def value(self, distances):
        return float(sum(distances) / len(distances))

    def threshold(self):
        return float(self.tensors["threshold"][0])


class Reconstruction(Distance):
    def output(self, text):
        return [self.distance(self.pooled(window.states)) for window in text.windows]

    def distance(self, x):
        t = self.tensors
        y = gelu(x @ t["in.weight"] + t["in.bias"]) @ t["back.weight"] + t["back.bias"]
        return ((x - y) ** 2).mean()

    def loss(self, distances, normal):
        return (self.value(distances), 1) if normal else (0, 0)


class AttentionPattern(Distance):
    """Features of attention maps, and of the lenses of the focus heads beside it."""

    lenses = ()  # of focus heads that read the same texts, each with a function that fuses states for it

    def features(self, window):
        f = [x for maps in window.encoded.maps for x in self.map_features(maps, window)]
        for head, states in self.lenses:
            _, centre, aperture = head.focus(states(window))
            for z in range(centre.shape[1]):
                f += [centre[:, z].mean(), aperture[:, z].mean()]
        return torch.stack(f)

    def map_features(self, maps, window):
        """The features of the maps [heads T T] of a layer, those of one head after those of the other."""
        length = maps.shape[1]
        steps = torch.arange(length, dtype=maps.dtype)
        entropy = -torch.special.xlogy(maps, maps).sum(2).mean(1) / math.log(length)
        distance = (maps * (steps[:, None] - steps).abs()).sum(2).mean(1) / (length - 1)
        first, separators = maps[:, :, 0].mean(1), maps[:, :, window.separators].sum(2).mean(1)
        return torch.stack([entropy, distance, first, separators, maps.diagonal(dim1=1, dim2=2).mean(1)], 1).reshape(-1)

    def output(self, text):
        white, mean = self.tensors["white"], self.tensors["mean"]
        return [(white @ (self.features(window) - mean)).norm() for window in text.windows]


def fit_gaussian(features):
    """The mean, and a function of features to their distance, of a Gaussian fitted with the shrinkage of Ledoit & Wolf."""
    f = torch.stack(features)
    n, count = f.shape
    mean, deviation = f.mean(0), f.std(0, unbiased=False)
    deviation = torch.where(deviation <= 1e-6 * mean.abs(), torch.ones_like(deviation), deviation)
    x = (f - mean) / deviation
    s = x.T @ x / n
    mu = s.trace() / count
    delta_ = ((s - mu * torch.eye(count)) ** 2).sum() / count
    beta = (((x**2).T @ (x**2)) / n - s**2).sum() / (n * count)
    shrinkage = 0.0 if delta_ == 0 else float(min(beta, delta_) / delta_)
    c = (1 - shrinkage) * s + shrinkage * mu * torch.eye(count, dtype=s.dtype)
    ridge = 0.0
    while torch.linalg.cholesky_ex(c + ridge * torch.eye(count)).info:
        ridge = ridge * 10 or 1e-6
    inverse = torch.linalg.inv(c + ridge * torch.eye(count))
    return mean, lambda of: float(torch.sqrt((of - mean) / deviation @ inverse @ ((of - mean) / deviation)))


KINDS = {"crf": CRF, "span": Span, "mlm": MaskedWords, "reconstruction": Reconstruction, "attention_pattern": AttentionPattern,
         "similarity": Similarity, "regression": Number}
TASKS = {"classification": OneLabel, "sentiment": OneLabel, "multi_label": ManyLabels, "qa_qc": ManyLabels, "ner": Tags, "tagging": Tags,
         "regression": Number}


def make_head(task, spec, options, tensors):
    """The head of a task: of its own kind, or for linear, mlp and focus of the kind of its task's outputs."""
    kind = KINDS.get(spec["type"])
    if kind is None and spec["type"] in ("linear", "mlp", "focus"):
        kind = TASKS[task["type"]]
    if kind is None:
        raise SystemExit(f"head {spec['type']} has no reference")
    return kind(task, spec, options, below(tensors, f"heads.{task['name']}.{spec['name']}."))
