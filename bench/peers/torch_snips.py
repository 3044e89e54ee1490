"""Fine-tunes an encoder on SNIPS, intent and slots together, with PyTorch and transformers, and prints a JSON line of
metrics on test: the peer of `jenga train` with the same recipe. The texts of a batch have similar lengths, for little padding.
"""

import argparse
import copy
import json
import math
import pathlib
import random

import seqeval.metrics
import torch
from torch import nn
from transformers import AutoTokenizer, BertModel

MAX_TOKENS = 128
WINDOW = 50  # batches; texts are sorted by length within a window
DROPOUT, CLIP, DECAY, WARMUP = 0.1, 1.0, 0.01, 0.1
NO_TAG = -100  # target of tokens that are not the first of a word


def read(folder, limit, tokenizer):
    """Reads and tokenizes one split."""
    columns = [(folder / name).read_text(encoding="utf-8").splitlines() for name in ("seq.in", "seq.out", "label")]
    examples = []
    for words, tags, intent in list(zip(*columns))[:limit]:
        encoding = tokenizer(words.split(), is_split_into_words=True, truncation=True, max_length=MAX_TOKENS)
        word_ids = encoding.word_ids()
        first = [i for i, w in enumerate(word_ids) if w is not None and w != word_ids[i - 1]]
        examples.append({"ids": encoding["input_ids"], "first": first, "tags": tags.split(), "intent": intent.strip()})
    return examples


def grouped(examples, size, rng=None):
    """Lists batches of texts of similar lengths: with rng sorted within windows of a random order, else from short to long."""
    order = list(examples)
    window = len(order)
    if rng is not None:
        rng.shuffle(order)
        window = WINDOW * size
    batches = []
    for start in range(0, len(order), window):
        part = sorted(order[start:start + window], key=lambda e: len(e["ids"]))
        batches += [part[i:i + size] for i in range(0, len(part), size)]
    if rng is not None:
        rng.shuffle(batches)
    return batches


class Joint(nn.Module):
    """An encoder with linear layers for intents and tags."""

    def __init__(self, weights, intents, tags):
        super().__init__()
        self.encoder = BertModel.from_pretrained(weights, add_pooling_layer=False)
        width = self.encoder.config.hidden_size
        self.drop = nn.Dropout(DROPOUT)
        self.intent, self.tag = nn.Linear(width, len(intents)), nn.Linear(width, len(tags))
        for head in (self.intent, self.tag):
            nn.init.normal_(head.weight, std=0.02)
            nn.init.zeros_(head.bias)

    def forward(self, batch):
        longest = max(len(e["ids"]) for e in batch)
        ids = torch.zeros(len(batch), longest, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, e in enumerate(batch):
            ids[row, :len(e["ids"])] = torch.tensor(e["ids"])
            mask[row, :len(e["ids"])] = 1
        states = self.drop(self.encoder(input_ids=ids, attention_mask=mask).last_hidden_state)
        return self.intent(states[:, 0]), self.tag(states)


def loss_of(batch, intent_logits, tag_logits, intents, tags):
    gold = torch.tensor([intents[e["intent"]] for e in batch])
    tag_ids = torch.full(tag_logits.shape[:2], NO_TAG)
    for row, e in enumerate(batch):
        for place, tag in zip(e["first"], e["tags"]):
            tag_ids[row, place] = tags[tag]
    return (nn.functional.cross_entropy(intent_logits, gold)
            + nn.functional.cross_entropy(tag_logits.flatten(0, 1), tag_ids.flatten(), ignore_index=NO_TAG))


@torch.no_grad()
def evaluate(model, examples, size, intents, tags):
    """Evaluates a split: intent accuracy, slot F1, and the fraction of texts with both right, in [0, 1]."""
    model.eval()
    intents, tags = list(intents), list(tags)
    gold, predicted, right, both = [], [], 0, 0
    for batch in grouped(examples, size):
        intent_logits, tag_logits = model(batch)
        for row, e in enumerate(batch):
            intent = intents[intent_logits[row].argmax()]
            found = [tags[i] for i in tag_logits[row, e["first"]].argmax(-1)]
            found += ["O"] * (len(e["tags"]) - len(found))  # words that were truncated
            gold.append(e["tags"])
            predicted.append(found)
            right += intent == e["intent"]
            both += intent == e["intent"] and found == e["tags"]
    model.train()
    return {
        "intent": right / len(examples),
        "slots": float(seqeval.metrics.f1_score(gold, predicted)),
        "all_right": both / len(examples),
    }


def optimizer_of(model, rate):
    """Makes AdamW with weight decay for matrices only."""
    named = list(model.named_parameters())
    plain = [p for name, p in named if name.endswith("bias") or "LayerNorm" in name]
    decayed = [p for name, p in named if not (name.endswith("bias") or "LayerNorm" in name)]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, rate)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=pathlib.Path, help="folder with train, valid and test")
    parser.add_argument("weights", help="folder of the encoder and its tokenizer")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--limit", type=int, help="maximum number of training texts")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)

    tokenizer = AutoTokenizer.from_pretrained(args.weights)
    train = read(args.data / "train", args.limit, tokenizer)
    dev, test = (read(args.data / split, None, tokenizer) for split in ("valid", "test"))
    intents = {name: i for i, name in enumerate(sorted({e["intent"] for e in train}))}
    tags = {name: i for i, name in enumerate(sorted({tag for e in train for tag in e["tags"]}))}

    model = Joint(args.weights, intents, tags)
    optimizer = optimizer_of(model, args.rate)
    steps = math.ceil(len(train) / args.batch) * args.epochs
    warmup = max(1, int(WARMUP * steps))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda done: min((done + 1) / warmup, max(0, steps - done - 1) / max(1, steps - warmup)))

    best, best_state = -1.0, None
    model.train()
    for _ in range(args.epochs):
        for batch in grouped(train, args.batch, rng):
            optimizer.zero_grad()
            loss_of(batch, *model(batch), intents, tags).backward()
            nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            schedule.step()
        value = evaluate(model, dev, 64, intents, tags)["all_right"]
        if value > best:
            best, best_state = value, copy.deepcopy(model.state_dict())
    model.load_state_dict(best_state)
    print(json.dumps(evaluate(model, test, 64, intents, tags)), flush=True)


if __name__ == "__main__":
    main()
