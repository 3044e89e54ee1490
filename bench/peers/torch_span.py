"""Fine-tunes an encoder on extractive question answering (SQuAD's format) with PyTorch and transformers, and prints a JSON line of
metrics on dev and test: the peer of `jenga train` on question_answering with the same recipe. The best epoch on dev is evaluated.

    python bench/peers/torch_span.py FOLDER WEIGHTS SEED      FOLDER has train.json, dev.json and test.json
"""

import collections
import copy
import json
import math
import pathlib
import random
import re
import string
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from transformers import AutoTokenizer, BertModel

MAX_TOKENS, STRIDE, ANSWER_TOKENS = 256, 64, 30
BATCH, EPOCHS, RATE, WARMUP, DECAY, CLIP, DROPOUT = 32, 4, 1e-4, 0.1, 0.01, 1.0, 0.1


def read(path, tokenizer):
    """Reads questions, and divides each into windows of tokens with the positions of the answer."""
    questions = []
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for qa in paragraph["qas"]:
                answers = [a["text"] for a in qa["answers"]]
                begin = qa["answers"][0]["answer_start"]
                end = begin + len(answers[0])
                e = tokenizer(qa["question"], paragraph["context"], truncation="only_second", max_length=MAX_TOKENS, stride=STRIDE,
                              return_overflowing_tokens=True, return_offsets_mapping=True)
                windows = []
                for w, ids in enumerate(e["input_ids"]):
                    context = [t for t, s in enumerate(e.sequence_ids(w)) if s == 1]
                    offsets = e["offset_mapping"][w]
                    inside = [t for t in context if offsets[t][1] > begin and offsets[t][0] < end]
                    whole = inside and offsets[context[0]][0] <= begin and offsets[context[-1]][1] >= end
                    span = (inside[0], inside[-1]) if whole else (0, 0)
                    windows.append({"ids": ids, "types": e["token_type_ids"][w], "context": context, "offsets": offsets, "span": span})
                questions.append({"windows": windows, "context": paragraph["context"], "answers": answers})
    return questions


def normal(text):
    """SQuAD's normalisation: lower case, without punctuation and articles, with single spaces."""
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def f1(predicted, gold):
    predicted, gold = normal(predicted).split(), normal(gold).split()
    overlap = sum((collections.Counter(predicted) & collections.Counter(gold)).values())
    if not predicted or not gold:
        return float(predicted == gold)
    return 2 * overlap / (len(predicted) + len(gold))


class Span(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.encoder = BertModel.from_pretrained(weights, add_pooling_layer=False)
        self.drop, self.score = nn.Dropout(DROPOUT), nn.Linear(self.encoder.config.hidden_size, 2)
        nn.init.normal_(self.score.weight, std=0.02)
        nn.init.zeros_(self.score.bias)

    def forward(self, windows):
        longest = max(len(w["ids"]) for w in windows)
        ids = torch.zeros(len(windows), longest, dtype=torch.long)
        mask, types = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, w in enumerate(windows):
            n = len(w["ids"])
            ids[row, :n], mask[row, :n], types[row, :n] = torch.tensor(w["ids"]), 1, torch.tensor(w["types"])
        states = self.encoder(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
        return self.score(self.drop(states)).masked_fill(mask[:, :, None] == 0, float("-inf"))


def evaluate(model, questions):
    model.eval()
    exact, total_f1 = 0.0, 0.0
    with torch.no_grad():
        for q in questions:
            logits = model(q["windows"])
            best, answer = -math.inf, ""
            for w, s in zip(q["windows"], logits.tolist()):
                for start in w["context"]:
                    for end in range(start, min(w["context"][-1] + 1, start + ANSWER_TOKENS)):
                        if s[start][0] + s[end][1] > best:
                            best = s[start][0] + s[end][1]
                            answer = q["context"][w["offsets"][start][0]:w["offsets"][end][1]]
            exact += max(normal(answer) == normal(gold) for gold in q["answers"])
            total_f1 += max(f1(answer, gold) for gold in q["answers"])
    return {"f1": round(100 * total_f1 / len(questions), 2), "exact_match": round(100 * exact / len(questions), 2)}


def main():
    folder, weights, seed = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    torch.set_num_threads(2)
    torch.manual_seed(seed)
    rng = random.Random(seed)
    tokenizer = AutoTokenizer.from_pretrained(weights)
    train, dev, test = (read(folder / f"{name}.json", tokenizer) for name in ("train", "dev", "test"))
    model = Span(weights)
    decayed = [p for n, p in model.named_parameters() if p.dim() > 1 and "LayerNorm" not in n]
    others = [p for n, p in model.named_parameters() if p.dim() == 1 or "LayerNorm" in n]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": DECAY}, {"params": others, "weight_decay": 0.0}], RATE)
    steps = EPOCHS * math.ceil(len(train) / BATCH)
    warmup, done, best = max(1, int(WARMUP * steps)), 0, None
    start = time.time()
    for epoch in range(1, EPOCHS + 1):
        model.train()
        rng.shuffle(train)
        for at in range(0, len(train), BATCH):
            windows = [w for q in train[at:at + BATCH] for w in q["windows"]]
            logits = model(windows)
            loss = sum(F.cross_entropy(logits[:, :, side], torch.tensor([w["span"][side] for w in windows])) for side in (0, 1)) / 2
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            done += 1
            for group in optimizer.param_groups:
                group["lr"] = RATE * (done / warmup if done <= warmup else (steps - done) / (steps - warmup))
            optimizer.step()
        metrics = evaluate(model, dev)
        print(json.dumps({"epoch": epoch, "dev": metrics}), file=sys.stderr)
        if best is None or metrics["f1"] > best[0]["f1"]:
            best = metrics, copy.deepcopy(model.state_dict())
    seconds = time.time() - start
    model.load_state_dict(best[1])
    print(json.dumps({"dev": best[0], "test": evaluate(model, test), "train_s": round(seconds)}))


if __name__ == "__main__":
    main()
