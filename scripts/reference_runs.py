"""Small runs of every part, on data of its own making, for scripts/reference.py to compare.

make(jenga, folder) writes data, base models and experiments into folder, trains each experiment with the binary jenga and yields its
run folder. Each takes a second or two.
"""

import json
import pathlib
import random
import subprocess

import torch
import yaml
from safetensors.torch import save_file

PLACES = ["oslo", "bergen", "fez", "turin", "old harbour", "green lake"]
THINGS = ["piano", "lamp", "bicycle", "kettle", "red chair", "clock"]
MOODS = {"glad": ["lovely", "great", "kind"], "cross": ["awful", "broken", "late"], "calm": ["plain", "fine", "usual"]}
FILLERS = ["then", "we", "went", "on", "again", "without", "a", "word", "about", "the", "weather", "unaffordably", "so", "it", "was"]
ENCODER = {"type": "transformer", "layers": 2, "width": 32, "heads": 4, "feed_forward": 48, "max_positions": 64, "initializer_range": 0.2}
BILSTM = {"type": "bilstm", "embedding": 24, "layers": 2, "hidden": 12}


def note(rng, number):
    """A text with a target of each kind; one in seven texts lacks one of them."""
    mood = rng.choice(list(MOODS))
    words, tags = ["the"], ["O"]
    holds = []
    for kind, names in ("thing", THINGS), ("place", PLACES):
        if rng.random() < 0.7:
            name = rng.choice(names).split()
            words += ["at"] * (kind == "place") + name
            tags += ["O"] * (kind == "place") + ["B-" + kind] + ["I-" + kind] * (len(name) - 1)
            holds.append(kind)
    amount = rng.randint(1, 90)
    words += ["is", rng.choice(MOODS[mood]), "for", str(amount), "crowns"]
    tags += ["O", "O", "O", "B-amount", "I-amount"]
    for _ in range(rng.choice([0, 1, 4, 12, 30])):
        words.append(rng.choice(FILLERS))
        tags.append("O")
    words.append(rng.choice([".", "!", "?!"]))
    tags.append("O")
    record = {"id": number, "words": words, "tags": tags, "mood": mood, "holds": holds, "amount": amount + 0.5,
              "kinds": ["WORD" if t == "O" else "NAME" for t in tags], "structure": "normal",
              "checks": {"first": [int("thing" in holds)], "second": [int(amount > 45), int(mood == "glad"), int(len(words) > 12)]}}
    if number % 7 == 3:
        record[rng.choice(["tags", "mood", "holds", "amount", "structure"])] = None
    elif number % 5 == 2:
        rng.shuffle(record["words"])
        record.update(tags=None, kinds=None, structure="shuffled")
    elif number % 7 == 5:
        record["kinds"][0] = None
    return record


def pair(rng, number):
    """Two texts about things, their similarity from 0 to 5 and whether they name the same thing."""
    first = [rng.choice(THINGS), rng.choice(PLACES), rng.choice(sum(MOODS.values(), []))]
    second = [word if rng.random() < 0.6 else rng.choice(THINGS) for word in first]
    filler = " ".join(rng.choice(FILLERS) for _ in range(rng.choice([0, 2, 9, 20])))
    again = " ".join(rng.choice(FILLERS) for _ in range(rng.choice([0, 2, 9, 20])))
    same = sum(a == b for a, b in zip(first, second))
    return {"id": number, "text": f"the {first[0]} in {first[1]} is {first[2]} {filler}".strip(),
            "pair": f"{again} a {second[0]} at {second[1]} was {second[2]}".strip(),
            "value": None if number % 11 == 4 else round(5 * same / 3, 2), "label": "same" if first[0] == second[0] else "other",
            "structure": "odd" if number % 6 == 5 else "normal"}


def question(rng, number):
    """A question about a context, with its answers, or none."""
    thing, place = rng.choice(THINGS), rng.choice(PLACES)
    before = " ".join(rng.choice(FILLERS) for _ in range(rng.choice([0, 3, 9, 25])))
    after = " ".join(rng.choice(FILLERS) for _ in range(rng.choice([0, 3, 9, 25])))
    context = f"{before} the {thing} is in {place} {after}.".strip()
    if number % 4 == 1:
        return {"id": number, "question": f"who has the {rng.choice(THINGS)} ?", "context": context, "answers": []}
    answers = [place, f"in {place}"] if number % 3 == 0 else [place]
    return {"id": number, "question": f"where is the {thing} ?", "context": context, "answers": answers}


def bioes(tags):
    """Tags of BIO in the scheme BIOES."""
    changed = []
    for tag, after in zip(tags, tags[1:] + ["O"]):
        last = tag != "O" and not after.startswith("I-")
        changed.append({"B": "S", "I": "E"}[tag[0]] + tag[1:] if last else tag)
    return changed


def odd(rng, number):
    """A text with tags of BIOES, a word without a token, and in dev tags that break the scheme and labels that training lacks."""
    record = note(rng, 35 * number)
    record.update(id=number, tags=bioes(record["tags"]), tone=record["mood"][0])
    if number % 3 == 1:
        place = rng.randrange(len(record["words"]) + 1)
        record["words"].insert(place, "\u200d")  # a joiner, which tokenizers drop
        inside = 0 < place < len(record["tags"]) and record["tags"][place][0] in "IE"
        record["tags"].insert(place, "I" + record["tags"][place][1:] if inside else "O")
    elif number % 3 == 2:
        record["words"][:0], record["tags"][:0] = ["\u200d", "chair"], ["B-thing", "E-thing"]  # the first tag that is read is E
    if number >= DEV and number % 5 == 2:
        record["tags"][rng.randrange(len(record["tags"]))] = "I-place"
    if number >= DEV and number % 8 == 3:
        record.update(mood="puzzled", tags=["B-colour" if tag == "S-thing" else tag for tag in record["tags"]])
    return record


def tagged_pair(rng, number):
    """Words with tags beside a second text, which is now the longer one and now the shorter one."""
    record = note(rng, 35 * number)
    again = note(rng, 35 * number)
    return {"id": number, "words": record["words"], "tags": record["kinds"], "pair": " ".join(again["words"]),
            "label": "same" if record["mood"] == again["mood"] else "other"}


def plain(rng, number):
    """A text without words, with entities at offsets."""
    record = note(rng, 35 * number)
    entities, start = [], 0
    for word, tag in zip(record["words"], record["tags"]):
        if tag[0] == "B":
            entities.append({"start": start, "end": start + len(word), "label": tag[2:]})
        elif tag[0] == "I":
            entities[-1]["end"] = start + len(word)
        start += len(word) + 1
    return {"id": number, "text": " ".join(record["words"]), "entities": entities}


def found(rng, number):
    """A question that always has an answer, at a character."""
    record = question(rng, 4 * number)
    start = record["context"].rindex(record["answers"][0])
    return dict(record, id=number, answers=[{"text": record["answers"][0], "answer_start": start}])


# Numbers of the records of dev begin with this one, so that data can differ there.
DEV = 1000


def write_data(folder):
    """Writes NAME.train.jsonl and NAME.dev.jsonl of each kind of data."""
    makers = {"notes": note, "pairs": pair, "questions": question, "odd": odd, "tagged_pairs": tagged_pair, "plain": plain, "found": found}
    for name, maker in makers.items():
        for split, first, count in ("train", 0, 200), ("dev", DEV, 60):
            rng = random.Random(f"{name} {split}")
            records = [maker(rng, number) for number in range(first, first + count)]
            lines = [json.dumps(record) for record in records]
            (folder / f"{name}.{split}.jsonl").write_text("\n".join(lines) + "\n")
    for split in "train", "dev":
        notes = [json.loads(line) for line in (folder / f"notes.{split}.jsonl").read_text().splitlines()]
        texts = []
        for record in notes:
            words = list(record["words"])
            if split == "dev":
                words[record["id"] % len(words)] = "[MASK]"
                words[-1] = "[MASK]"
            texts.append(json.dumps({"id": record["id"], "text": " ".join(words)}))
        (folder / f"texts.{split}.jsonl").write_text("\n".join(texts) + "\n")


def data(name, **columns):
    return {"train": f"../{name}.train.jsonl", "dev": f"../{name}.dev.jsonl", **columns}


def task(name, type_, source, *heads, **options):
    """An entry of tasks; source is the data, or the name of the task that reads the same texts."""
    entry = {"name": name, "type": type_, "data": source, **options}
    if heads:
        entry["heads"] = [{"name": head.get("name", name), **head} for head in heads]
    return entry


def note_tasks(long, labels, tags, numbers, many):
    """Tasks that read the notes; each of the last four arguments is a list of heads."""
    words = {"long": long} if long == "truncate" else {"long": long, "stride": 5}
    shared = [task("mood", "classification", data("notes", label="mood"), *labels, **words)]
    shared.append(task("names", "ner", {"same_as": "mood"}, *tags))
    shared.append(task("kinds", "tagging", {"same_as": "mood", "tags": "kinds"}, *[h for h in tags if h.get("constraints") != "bio"]))
    if many:
        shared.append(task("holds", "multi_label", {"same_as": "mood", "labels": "holds"}, *many))
        checks = [dict(many[0], name=name) for name in ("first", "second")]
        shared.append(task("checks", "qa_qc", {"same_as": "mood", "labels": "checks"}, *checks))
    if numbers:
        shared.append(task("amount", "regression", {"same_as": "mood", "value": "amount"}, *numbers))
    return shared


def named(*heads):
    """The heads with names by their numbers, since several heads of a task need names."""
    return [{"name": f"{head['type']}{i}", **head} for i, head in enumerate(heads)]


LABELS = named(
    {"type": "linear", "pool": "cls"}, {"type": "linear", "pool": "mean", "label_smoothing": 0.1},
    {"type": "linear", "pool": "max", "class_weights": "balanced", "focal_gamma": 2.0},
    {"type": "linear", "pool": "attention", "class_weights": {"glad": 3, "cross": 0.5, "calm": 1}, "label_smoothing": 0.2,
     "focal_gamma": 0.5},
    {"type": "mlp", "hidden": 20, "weight": 2.5}, {"type": "mlp", "activation": "tanh", "pool": "attention"})
TAGS = named(
    {"type": "linear"}, {"type": "linear", "class_weights": "balanced", "label_smoothing": 0.1, "focal_gamma": 1.0},
    {"type": "mlp", "hidden": 10}, {"type": "crf"}, {"type": "crf", "constraints": "bio"})
NUMBERS = named(
    {"type": "regression", "pool": "mean"}, {"type": "regression", "loss": "mae"}, {"type": "regression", "loss": "huber", "pool": "max"},
    {"type": "regression", "range": [0, 100], "pool": "attention"}, {"type": "regression", "scale": "none", "loss": "huber"},
    {"type": "linear"}, {"type": "mlp", "scale": "none", "hidden": 4})
MANY = named(
    {"type": "linear", "pos_weight": "balanced"}, {"type": "linear", "tune": "each", "focal_gamma": 2.0},
    {"type": "mlp", "tune": "none", "threshold": 0.3}, {"type": "linear", "pos_weight": {"thing": 2.5, "place": 0.5}, "pool": "mean"})
FOCUS = [{"lstm_layers": 1, "lstm_hidden": 8}, {"lstm_layers": 0, "lens_per_head": True, "pool": "attention"},
         {"lstm_layers": 2, "lstm_hidden": 6, "attention_heads": 2, "normalise": "softmax", "pool": "cls"},
         {"lstm_layers": 1, "lstm_hidden": 8, "min_aperture": 0.3, "pool": "max"}]


def focus_heads(**options):
    return named(*[{"type": "focus", **lens, **options} for lens in FOCUS])


def anomaly(source, **options):
    heads = named({"type": "reconstruction"}, {"type": "reconstruction", "pool": "cls", "hidden": 6, "false_alarms": 0.2},
                  {"type": "attention_pattern", "fit_texts": 50, "false_alarms": 0.1})
    return task("structure", "anomaly", source, *heads, **options)


def pair_tasks(detector="attention_pattern", **options):
    """Tasks on pairs: encoded together for a label, a number and a distance, apart for a similarity."""
    similar = named({"type": "similarity", "range": [0, 5]}, {"type": "similarity", "range": [0, 5], "loss": "mse", "pool": "attention"},
                    {"type": "similarity", "range": [-1, 6], "scale": 5.0, "pool": "max"})
    return [task("same", "classification", data("pairs"), **options),
            task("close", "regression", {"same_as": "same"}, {"type": "regression"}),
            task("usual", "anomaly", {"same_as": "same", "label": "structure"}, {"type": detector}),
            task("alike", "similarity", data("pairs"), *similar, **options)]


def answer_tasks(**options):
    spans = named({"type": "span", "no_answer": True}, {"type": "span", "no_answer": True, "margin": 1.5, "max_answer_tokens": 2})
    return [task("where", "question_answering", data("questions"), *spans, **options)]


def few_tasks(detector="attention_pattern"):
    """Some tasks of each kind of text, for what does not depend on heads."""
    return [task("mood", "classification", data("notes", label="mood"), {"type": "linear", "pool": "mean"}),
            task("names", "ner", {"same_as": "mood"}, {"type": "crf"}),
            task("amount", "regression", {"same_as": "mood", "value": "amount"}, {"type": "regression"}),
            *pair_tasks(detector), *answer_tasks()]


def base_model(folder, layout, vocabulary):
    """Writes a BERT or DistilBERT with random weights as transformers would."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    generator = torch.Generator().manual_seed(len(layout))
    width, inner, layers, positions = 24, 40, 3, 64
    bert = layout == "bert"
    shapes = {"embeddings.word_embeddings": [len(vocabulary), width], "embeddings.position_embeddings": [positions, width]}
    if bert:
        shapes["embeddings.token_type_embeddings"] = [2, width]
        attention = ["attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"]
        rest = [("intermediate.dense", [inner, width]), ("output.dense", [width, inner])]
        norms, prefix = ["attention.output.LayerNorm", "output.LayerNorm"], "encoder.layer"
    else:
        attention = ["attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"]
        rest = [("ffn.lin1", [inner, width]), ("ffn.lin2", [width, inner])]
        norms, prefix = ["sa_layer_norm", "output_layer_norm"], "transformer.layer"
    tensors = {name + ".weight": torch.randn(shape, generator=generator, dtype=torch.float32) for name, shape in shapes.items()}
    ends = ["embeddings.LayerNorm"]
    for i in range(layers):
        for name, shape in [(name, [width, width]) for name in attention] + rest:
            tensors[f"{prefix}.{i}.{name}.weight"] = 0.3 * torch.randn(shape, generator=generator, dtype=torch.float32)
            tensors[f"{prefix}.{i}.{name}.bias"] = 0.1 * torch.randn(shape[0], generator=generator, dtype=torch.float32)
        ends += [f"{prefix}.{i}.{name}" for name in norms]
    for name in ends:
        tensors[name + ".weight"] = 1 + 0.1 * torch.randn(width, generator=generator, dtype=torch.float32)
        tensors[name + ".bias"] = 0.1 * torch.randn(width, generator=generator, dtype=torch.float32)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {"model_type": layout, "vocab_size": len(vocabulary), "max_position_embeddings": positions}
    if bert:
        # An epsilon that is large enough to be seen in the results.
        config.update(hidden_size=width, num_attention_heads=3, num_hidden_layers=layers, intermediate_size=inner, type_vocab_size=2,
                      hidden_act="gelu", layer_norm_eps=1e-2, architectures=["BertModel"])
    else:
        config.update(dim=width, n_heads=3, n_layers=layers, hidden_dim=inner, activation="gelu", architectures=["DistilBertModel"])
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "tokenizer_class": "BertTokenizer"}))


def vocabulary():
    words = [word for name in PLACES + THINGS + sum(MOODS.values(), []) + FILLERS for word in name.split()]
    pieces = ["the", "at", "in", "is", "for", "crowns", "was", "where", "who", "has", ".", "!", "?", "un", "##afford", "##ably"]
    digits = [str(d) for d in range(10)] + [f"##{d}" for d in range(10)]
    kept = [word for word in dict.fromkeys(words + pieces) if word not in ("unaffordably", "kettle")]
    return ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + kept + digits


def experiment(model, tasks, max_length=64, training=None, tokenizer=None):
    return {"seed": 3, "model": model, "tokenizer": {"max_length": max_length, **(tokenizer or {})}, "tasks": tasks,
            "training": {"learning_rate": 6e-3, "batch_size": 16, "num_epochs": 6, "warmup_ratio": 0.1, **(training or {})}}


TRAINED = {"train": {"vocab_size": 140}}  # a small vocabulary, so that words are of several tokens
WHOLE = {"type": "words", "train": {"vocab_size": 120}}
SCRATCH = {"encoder": ENCODER, "dropout": 0.1}
LSTM = {"encoder": BILSTM, "dropout": 0.1}
ALL_TARGETS = ["query", "key", "value", "output", "up", "down"]


def head_experiments():
    """All heads on texts that are whole, truncated and in windows."""
    made = {}
    for long, length in ("truncate", 64), ("truncate", 14), ("windows", 14):
        windows = {"long": long} if long == "truncate" else {"long": long, "stride": 5}
        tasks = note_tasks(long, LABELS, TAGS, NUMBERS, MANY) + [anomaly({"same_as": "mood", "label": "structure"})]
        made[f"notes_{long}_{length}"] = experiment(SCRATCH, tasks, length, tokenizer=TRAINED)
        made[f"pairs_{long}_{length}"] = experiment(SCRATCH, pair_tasks(**windows) + answer_tasks(**windows), length, tokenizer=TRAINED)
        made[f"odd_{long}_{length}"] = experiment(SCRATCH, odd_tasks(long=long), length, tokenizer=TRAINED)
        masks = task("hidden", "mlm", data("texts"), {"type": "mlm", "guesses": 3}, **windows)
        made[f"masks_{long}_{length}"] = experiment(SCRATCH, [masks], length, tokenizer=TRAINED)
    made["batch_tokens"] = experiment(SCRATCH, pair_tasks(), 64, {"batch_tokens": 150, "ema": 0.9}, TRAINED)
    return made


def odd_tasks(**options):
    """Tasks on texts with what is rare: other schemes, tags that break them, words without a token, labels that training lacks."""
    tags = [head for head in TAGS if head["name"] in ("linear0", "crf3", "crf4")]
    found = [{"type": "span", "max_answer_tokens": 4}]
    return [task("scheme", "ner", data("odd"), *tags, **options),
            task("tone", "classification", {"same_as": "scheme", "label": {"first": "mood", "second": "tone"}},
                 {"name": "first", "type": "linear"}, {"name": "second", "type": "mlp"}),
            task("kinds", "tagging", data("tagged_pairs"), *tags[:2], **options),
            task("match", "classification", {"same_as": "kinds"}),
            task("plain", "ner", data("plain"), *tags, **options),
            task("found", "question_answering", data("found"), *found, **options)]


def focus_experiments():
    """Focus heads of all outputs, whole and in windows, and their lenses as features of attention_pattern."""
    # Heads that tag words do not pool.
    words = [{key: value for key, value in head.items() if key != "pool"} for head in focus_heads()]
    heads = [focus_heads(class_weights="balanced"), words, focus_heads(), focus_heads(tune="each", pos_weight="balanced")]
    column = {"same_as": "mood", "label": "structure"}
    without_maps = task("structure", "anomaly", column, {"type": "reconstruction", "pool": "max"})
    patterns = note_tasks("windows", focus_heads(), words, [], []) + [anomaly(column)]
    return {"focus": experiment(LSTM, note_tasks("truncate", *heads) + [without_maps], tokenizer=TRAINED),
            "focus_windows": experiment(SCRATCH, patterns, 14, tokenizer=TRAINED)}


def encoder_experiments():
    """All encoders and fusions."""
    made = {"bilstm": experiment(LSTM, few_tasks("reconstruction"), tokenizer=WHOLE),
            "bilstm_mix": experiment(dict(LSTM, fusion={"type": "mix"}), few_tasks("reconstruction"), 14, tokenizer=WHOLE)}
    fusions = [{"type": "adapter", "size": 7}, {"type": "mix"}, {"type": "mix", "layers": 2}, {"type": "concat", "hidden_size": 6}]
    for size, scale in (0, "exact"), (9, "length"), (5, "residual"), (7, "gated"):
        fusions.append({"type": "attention", "hidden_size": size, "scale": scale})
    for i, fusion in enumerate(fusions):
        made[f"fusion_{fusion['type']}{i}"] = experiment(dict(SCRATCH, fusion=fusion), few_tasks(), tokenizer=TRAINED)
    changes = {"": {}, "_frozen": {"freeze": "all"}, "_lora": {"lora": {"r": 3}},
               "_lora_tasks": {"lora": {"per_task": True, "r": 3, "alpha": 9, "targets": ALL_TARGETS}}}
    for layout in "bert", "distilbert":
        for name, options in changes.items():
            made[layout + name] = experiment({"base_model": f"../{layout}", **options}, few_tasks(), training={"learning_rate": 2e-3})
    # A run that is grown from the first of bert: its tasks are kept beside a new one.
    new = task("tone", "classification", data("odd", label="tone"), {"type": "mlp", "pool": "mean"})
    made["bert_grown"] = experiment({"base_model": "../run_bert/run", "freeze": "all", "keep_tasks": "all"}, [new])
    return made


def experiments():
    """All experiments, by their names."""
    return {**head_experiments(), **focus_experiments(), **encoder_experiments()}


def train(jenga, folder, name, description):
    """Trains an experiment, unless its run is there, and returns the run's folder."""
    place = folder / name
    place.mkdir(exist_ok=True)
    (place / "experiment.yaml").write_text(yaml.safe_dump(description, sort_keys=False))
    command = [jenga, "train", str(place / "experiment.yaml"), "--out", str(place / "run"), "--force", "--threads", "1"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8")
    if done.returncode:
        raise SystemExit(f"{name}: {' '.join(command)}\n{done.stderr}")
    return place / "run"


def make(jenga, folder, only=None):
    """Yields the run folder of each experiment, of those whose name has the text only."""
    folder = pathlib.Path(folder).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    write_data(folder)
    for layout in "bert", "distilbert":
        base_model(folder / layout, layout, vocabulary())
    for name, description in experiments().items():
        if only is None or only in name:
            run = train(str(pathlib.Path(jenga).resolve()), folder, f"run_{name}", description)
            yield run
