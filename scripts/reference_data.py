"""Runs as a checkpoint's files have them, their data, and texts as tokens and windows: docs/checkpoints.md, docs/formulas.md and
docs/data.md.

Tokens come from `jenga tokenize`: tokenizers are not repeated here. Data is read from JSON lines alone.
"""

import dataclasses
import gzip
import itertools
import json
import pathlib
import subprocess

import torch
import yaml

from reference_encoders import below, fuse, load, open_encoder
from reference_heads import make_head


# The fields of texts, whose columns data may name.
TEXTS = ["text", "pair", "words", "question", "context"]


@dataclasses.dataclass
class Token:
    id: int
    start: int
    end: int
    word: int | None = None  # the number of the word that it is the first token of


@dataclasses.dataclass
class Window:
    """A text, or a part of it, as an encoder reads it."""

    ids: list
    types: list
    words: dict  # the position of each word's first token
    context: list  # position, start and end of the tokens of the second text
    text_tokens: list  # the same of the first text
    separators: list  # positions of the last token of each segment
    encoded: object = None  # the encoder's States
    states: object = None  # of the task's fusion


@dataclasses.dataclass
class Text:
    windows: list
    words: int


def assemble(special, first, second):
    """A window of the tokens of a text, or of a pair."""
    cls, sep = special
    window = Window([cls], [0], {}, [], [], [])
    for segment, tokens in enumerate([first] if second is None else [first, second]):
        for token in tokens:
            position = len(window.ids)
            if token.word is not None and segment == 0:
                window.words[token.word] = position
            (window.context if segment else window.text_tokens).append((position, token.start, token.end))
            window.ids.append(token.id)
            window.types.append(segment)
        window.separators.append(len(window.ids))
        window.ids.append(sep)
        window.types.append(segment)
    return window


def cut(first, second, places):
    """A pair whose longer text has lost its last tokens until both are equally long, then both."""
    if len(first) + len(second) <= places:
        return first, second
    half = places // 2
    if len(first) <= half:
        return first, second[: places - len(first)]
    if len(second) <= half:
        return first[: places - len(second)], second
    longer_first = len(first) > len(second)
    return first[: places - half if longer_first else half], second[: half if longer_first else places - half]


def slide(tokens, places, stride):
    """The parts of a text that windows of so many places have."""
    step = places - min(stride, places // 2)
    parts, begin = [], 0
    while True:
        parts.append(tokens[begin : begin + places])
        if begin + places >= len(tokens):
            return parts
        begin += step


def divide(special, first, second, options, question):
    """The windows of a text or pair: one if it is short, or truncated."""
    places = options["max_length"] - (2 if second is None else 3)
    if len(first) + len(second or []) <= places:
        return [assemble(special, first, second)]
    if options["long"] == "truncate":
        if second is None:
            return [assemble(special, first[:places], None)]
        return [assemble(special, *cut(first, second, places))]
    if second is None:
        return [assemble(special, part, None) for part in slide(first, places, options["stride"])]
    has_words = any(token.word is not None for token in first)
    over_first = not question and (len(first) >= len(second) or has_words and len(first) > places // 2)
    if over_first:
        other = second[: places // 2]
        return [assemble(special, part, other) for part in slide(first, places - len(other), options["stride"])]
    other = first[: places // 2]
    return [assemble(special, other, part) for part in slide(second, places - len(other), options["stride"])]


class Task:
    """A task of a run: its entry of the experiment, the one of the task whose texts it reads, its entry of model.json and its heads."""

    def __init__(self, entry, root, spec, tensors):
        self.name, self.type, self.entry, self.spec = entry["name"], entry["type"], entry, spec
        self.root, self.data, self.texts = root["name"], entry["data"], root["data"]
        self.long, self.stride = root.get("long", "truncate"), root.get("stride", 64)
        options = {head["name"]: head for head in entry["heads"]}
        self.heads = [make_head({"name": self.name, "type": self.type}, head, options[head["name"]], tensors) for head in spec["heads"]]
        self.separate = self.type == "similarity"
        self.question = self.type == "question_answering"

    def column(self, name, head):
        """The column of a field by jenga's name of it: the data may name another one, or one for each head."""
        column = self.data.get(name, name)
        return column.get(head, name) if isinstance(column, dict) else column

    def gold(self, record, head):
        """The target of a head; None if it is missing."""
        fields = {"multi_label": ["labels", "label"], "qa_qc": ["labels", "label"], "regression": ["value", "label", "score"],
                  "similarity": ["value", "label", "score"], "ner": ["tags"], "tagging": ["tags"], "question_answering": ["answers"],
                  "mlm": []}.get(self.type, ["label"])
        # A field that is there with null is a missing target: the fields after it are not looked at.
        columns = [self.column(name, head) for name in fields]
        value = next((record[column] for column in columns if column in record), None)
        if value is None or value == "":
            return None
        if self.type == "qa_qc":
            answers = value.get(head) if isinstance(value, dict) else value
            return None if answers is None else [str(i) for i, holds in enumerate(answers) if holds]
        if self.type == "multi_label" and isinstance(value, str):
            return [part.strip() for part in value.split(self.entry["separator"]) if part.strip()]
        if self.type == "anomaly":
            return value == self.entry.get("normal", "normal")
        return value

    def parts(self, record):
        """The first text of a record with its words, if it has some, and the second."""
        words, text, pair = record.get("words"), record.get("text"), record.get("pair")
        if text is None:
            text = " ".join(words) if words is not None else record.get("question")
        return text, words, record.get("context") if pair is None else pair

    def gold_span(self, record):
        """The start and the end of the first gold answer in the context; None for no answer."""
        answers = self.gold(record, self.heads[0].name)
        if not answers:
            return None
        context, answer = self.parts(record)[2], answers[0]
        text = answer if isinstance(answer, str) else answer["text"]
        start = context.index(text) if isinstance(answer, str) or "answer_start" not in answer else answer["answer_start"]
        return start, start + len(text)


class Run:
    """A trained run: the model of best/, and the data of its experiment."""

    def __init__(self, jenga, folder):
        self.jenga, self.folder = jenga, pathlib.Path(folder)
        best = self.folder / "best"
        self.experiment = yaml.safe_load((self.folder / "experiment.yaml").read_text(encoding="utf-8"))
        self.model = json.loads((best / "model.json").read_text(encoding="utf-8"))
        self.tensors = load(best / "model.safetensors")
        self.place = best / self.model["encoder"]["folder"]
        if not self.place.exists():  # a frozen base model, relative to the run folder as the paths in experiment.yaml
            self.place = self.folder / self.model["encoder"]["folder"]
        self.encoders = {None: open_encoder(self.place)}
        self.fusion = self.experiment["model"].get("fusion", {"type": "none"})
        self.tasks = self.open_tasks()
        self.tokens, self.encoded, self.texts, self.split, self.files = {}, {}, {}, {}, {}
        self.special = None

    def open_tasks(self):
        entries = {entry["name"]: entry for entry in self.experiment["tasks"]}
        tasks = []
        for spec in self.model["tasks"]:
            entry = entries[spec["name"]]
            root = entry
            while "same_as" in root["data"]:
                root = entries[root["data"]["same_as"]]
            tasks.append(Task(entry, root, spec, self.tensors))
        for task in tasks:
            for head in task.heads:
                if head.type == "attention_pattern":
                    head.lenses = [(other, self.fuser(beside)) for beside in tasks if beside.root == task.root
                                   for other in beside.heads if other.type == "focus"]
        return tasks

    def fuser(self, task):
        """A function of a window to the states of a task."""
        return lambda window: fuse(self.fusion, below(self.tensors, "fusion."), task.name, window.encoded)

    def encoder(self, adapter):
        """The encoder, with the changes of an adapter if one is named."""
        if adapter not in self.encoders:
            lora = self.experiment["model"]["lora"]
            changes = load(self.folder / "best" / "adapters" / f"{adapter}.safetensors")
            self.encoders[adapter] = self.encoders[None].adapted(changes, lora["alpha"] / lora["r"])
        return self.encoders[adapter]

    def command(self, *arguments, text=None):
        """What jenga writes to stdout, as objects of its JSON lines."""
        command = [self.jenga, *map(str, arguments), "--threads", "1"]
        done = subprocess.run(command, input=text, capture_output=True, encoding="utf-8")
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def path(self, task, split):
        """The file of a split of a task, None if it has none."""
        return (self.folder / task.texts[split]).resolve() if split in task.texts else None

    def read(self, path):
        """The records of a file of data, whose texts have jenga's names of them, whatever their columns are."""
        if path not in self.files:
            with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
                records = [json.loads(line) for line in lines if line.strip()]
            owner = next(task for task in self.tasks if path in (self.path(task, "train"), self.path(task, "dev")))
            for record in records:
                record.update({name: record[owner.texts[name]] for name in TEXTS if owner.texts.get(name) in record})
            self.files[path] = records
        return self.files[path]

    def learn_words(self, records, rows):
        """Takes the words of plain texts from predictions of their tags: where jenga splits texts is not repeated here. Entities at offsets
        become tags of the words."""
        for record, row in zip(records, rows):
            for task in self.tasks:
                for prediction in row["tasks"].get(task.name, {}).values():
                    if "words" in prediction:
                        self.split[task.root, row["text"]] = prediction["words"]
                        if "entities" in record and task.type == "ner":
                            record["tags"] = tags_of(record["entities"], prediction["words"])

    def word_offsets(self, task, record):
        """The start and the end of each word of a record's first text."""
        text, words = self.parts(task, record)[0]
        if task.parts(record)[1] is None:
            return self.split[task.root, text]
        ends = list(itertools.accumulate(len(word) + 1 for word in words))
        return [(end - len(word) - 1, end - 1) for word, end in zip(words, ends)]

    def tokenize(self, parts):
        """Has jenga tokenize (text, words) of which it does not have the tokens yet."""
        wanted = [part for part in dict.fromkeys(parts) if part not in self.tokens]
        lines = [json.dumps({"words": list(words)} if words else {"text": text}) for text, words in wanted]
        rows = self.command("tokenize", self.folder, text="".join(line + "\n" for line in lines)) if lines else []
        for part, row in zip(wanted, rows, strict=True):
            self.special = row["ids"][0], row["ids"][-1]
            tokens = [Token(number, *offsets) for number, offsets in zip(row["ids"][1:-1], row["offsets"][1:-1])]
            self.tokens[part] = mark_words(tokens, part[1])

    def parts(self, task, record):
        text, words, pair = task.parts(record)
        if words is None and (task.root, text) in self.split:
            words = [text[start:end] for start, end in self.split[task.root, text]]
        first = text, tuple(words) if words is not None else None
        return [first] if pair is None else [first, (pair, None)]

    def prepare(self, task, records):
        self.tokenize([part for record in records for part in self.parts(task, record)])

    def text(self, task, record):
        """A record as a task's heads read it: a Text with states, or of a similarity two."""
        key = task.name, json.dumps(record)
        if key not in self.texts:
            segments = [self.tokens[part] for part in self.parts(task, record)]
            pieces = [[segment] for segment in segments] if task.separate else [segments]
            words = len(self.parts(task, record)[0][1] or ())
            made = [self.one_text(task, piece, words) for piece in pieces]
            self.texts[key] = made if task.separate else made[0]
        return self.texts[key]

    def one_text(self, task, segments, words):
        options = {"max_length": self.experiment["tokenizer"]["max_length"], "long": task.long, "stride": task.stride}
        second = segments[1] if len(segments) > 1 else None
        windows = divide(self.special, segments[0], second, options, task.question)
        for window in windows:
            window.encoded = self.encode(task.spec.get("adapter"), window)
            window.states = self.fuser(task)(window)
        return Text(windows, words)

    def encode(self, adapter, window):
        key = adapter, tuple(window.ids), tuple(window.types)
        if key not in self.encoded:
            self.encoded[key] = self.encoder(adapter)(torch.tensor(window.ids), torch.tensor(window.types))
        return self.encoded[key]

    def output(self, task, head, record):
        """What a head makes of a record."""
        text = self.text(task, record)
        if head.type == "mlm":
            return head.output(text, self.vocabulary().index("[MASK]"), self.encoder(task.spec.get("adapter")).words)
        return head.output(text)

    def vocabulary(self):
        return (self.place / "vocab.txt").read_text(encoding="utf-8").splitlines()

    def count_tokens(self, task, record):
        """The tokens of a record, those of all its windows and of both texts of a pair."""
        texts = self.text(task, record)
        return sum(len(window.ids) for text in (texts if task.separate else [texts]) for window in text.windows)


def tags_of(entities, words):
    """The tags of BIO of words that entities overlap."""
    tags = ["O"] * len(words)
    for entity in entities:
        inside = [i for i, (start, end) in enumerate(words) if start < entity["end"] and end > entity["start"]]
        for i in inside:
            tags[i] = ("B-" if i == inside[0] else "I-") + entity["label"]
    return tags


def mark_words(tokens, words):
    """Tells the first token of each word its number: a text's words have a blank between."""
    start, number = 0, 0
    starts = []
    for word in words or ():
        starts.append((start, start + len(word)))
        start += len(word) + 1
    for token in tokens:
        while number < len(starts) and token.start >= starts[number][1]:
            number += 1
        if number < len(starts) and token.start >= starts[number][0]:
            token.word = number
            number += 1
    return tokens
