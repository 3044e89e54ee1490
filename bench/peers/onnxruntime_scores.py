"""Evaluates a run that jenga trained on test with ONNX Runtime, in float32 and with int8 weights.

    python bench/peers/onnxruntime_scores.py ./jenga runs/trec6

The trained encoder becomes an ONNX file, its heads are computed in numpy (docs/formulas.md), its metrics by the libraries that define
them. The output is a JSON object: for each precision, metrics as `jenga eval --json` has them. Those of float32 must be jenga's, up to
examples whose two best labels are nearly equal. Texts and gold labels are those that `jenga predict` reads; tokens are those of the
library tokenizers. Each text is a batch of its own, so that neither padding nor other texts change the range of its activations.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

import numpy
import onnxruntime_peer
import safetensors.numpy
import scipy.stats
import seqeval.metrics
import sklearn.metrics
import tokenizers
import torch
import transformers
import yaml

POOLS = {"cls": lambda h: h[0], "mean": lambda h: h.mean(0), "max": lambda h: h.max(0)}  # of states [T D]
LABELS, TAGS = ("classification", "sentiment"), ("ner", "tagging")  # types of tasks


class Head:
    """A head of a task of the experiment: its options, labels and tensors."""

    def __init__(self, task, options, spec, tensors):
        place = f"{task['name']}.{spec['name']}"
        supported = spec["type"] == ("regression" if task["type"] == "regression" else "linear")
        if task["type"] not in (*LABELS, *TAGS, "regression") or not supported or options["pool"] not in POOLS:
            raise SystemExit(f"{place}: linear heads with one label or tags, and regression, can be computed, without a learned pool")
        self.task, self.name, self.options, self.labels = task, spec["name"], options, spec.get("labels")
        self.weight, self.bias = (tensors[f"heads.{place}.score.{name}"] for name in ("weight", "bias"))  # [D L], [L]
        self.mean, self.deviation = tensors.get(f"heads.{place}.unit", (0, 1))
        self.field = {"regression": "value", **dict.fromkeys(TAGS, "tags")}.get(task["type"], "label")

    def gold(self, row):
        value = row[self.task["data"].get(self.field, self.field)]
        return float(value) if self.field == "value" else value

    def predict(self, states, words):
        """The prediction for a text with states [T D] and the position of each word's first token, None for a word without one."""
        if self.field == "tags":
            numbers = (states @ self.weight + self.bias).argmax(1)
            return ["O" if position is None else self.labels[numbers[position]] for position in words]
        logits = POOLS[self.options["pool"]](states) @ self.weight + self.bias
        if self.field == "label":
            return self.labels[logits.argmax()]
        y = logits[0]
        if limits := self.options.get("range"):
            y = limits[0] + (limits[1] - limits[0]) / (1 + numpy.exp(-y))
        return float(self.mean + self.deviation * y)

    def metrics(self, gold, predicted):
        if self.task["type"] == "regression":
            return {"pearson": float(scipy.stats.pearsonr(gold, predicted)[0]), "spearman": float(scipy.stats.spearmanr(gold, predicted)[0])}
        if self.task["type"] == "ner":
            return {"span_f1": float(seqeval.metrics.f1_score(gold, predicted))}
        if self.task["type"] == "tagging":
            gold, predicted = sum(gold, []), sum(predicted, [])
        f1 = sklearn.metrics.f1_score(gold, predicted, labels=self.labels, average=None, zero_division=0)
        return {"accuracy": float(sklearn.metrics.accuracy_score(gold, predicted)),
                "labels": {label: {"f1": float(value)} for label, value in zip(self.labels, f1)}}


class Run:
    """The trained model of a run, and the rows of its test split, which all its tasks read."""

    def __init__(self, jenga, folder):
        self.experiment = yaml.safe_load((folder / "experiment.yaml").read_text(encoding="utf-8"))
        model = json.loads((folder / "best/model.json").read_text(encoding="utf-8"))
        self.encoder = folder / "best" / model["encoder"]["folder"]
        tensors = safetensors.numpy.load_file(folder / "best/model.safetensors")
        tasks = {task["name"]: task for task in self.experiment["tasks"]}
        self.heads = []
        for spec in model["tasks"]:
            options = {head["name"]: head for head in tasks[spec["name"]]["heads"]}
            self.heads += [Head(tasks[spec["name"]], options[head["name"]], head, tensors) for head in spec["heads"]]
        self.check()
        self.rows = self.read(jenga, folder)
        self.tokenizer = tokenizers.Tokenizer.from_file(str(self.encoder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(self.experiment["tokenizer"]["max_length"])

    def check(self):
        first, *others = self.experiment["tasks"]
        if any(task["data"].get("same_as") != first["name"] for task in others):
            raise SystemExit(f"{first['name']}: the other tasks must read the same texts")
        if first["long"] != "truncate":
            raise SystemExit(f"{first['name']}: long: {first['long']}: only truncated texts can be read")
        fusion = self.experiment["model"]["fusion"]["type"]
        if fusion != "none":
            raise SystemExit(f"model.fusion: {fusion}: the heads must read the encoder's own states")

    def read(self, jenga, folder):
        """The rows of the test split; jenga predict reads a file by its extension."""
        data = self.experiment["tasks"][0]["data"]
        path = (folder / data["test"]).resolve()
        with tempfile.TemporaryDirectory() as name:
            link = pathlib.Path(name) / path.name
            if path.is_file():
                link = link.with_suffix("." + data.get("format", path.suffix[1:]))
            link.symlink_to(path)
            done = subprocess.run([jenga, "predict", folder, link, "--threads", "1"], stdout=subprocess.PIPE, text=True, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def encode(self, row):
        """A text's encoding: where words have tags, each is divided into tokens by itself."""
        if any(head.field == "tags" for head in self.heads):
            return self.tokenizer.encode(row["words"], is_pretokenized=True)
        return self.tokenizer.encode(row["text"], row.get("pair"))

    def predict(self, session):
        """The predictions of all rows: a list for each head."""
        names, predicted = [value.name for value in session.get_inputs()], [[] for _ in self.heads]
        for row in self.rows:
            encoding = self.encode(row)
            inputs = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}
            states = session.run(None, {name: numpy.array([inputs[name]], dtype=numpy.int64) for name in names})[0][0]
            places = {}
            for position, word in enumerate(encoding.word_ids):
                places.setdefault(word, position)
            words = [places.get(word) for word in range(len(row.get("words", ())))]
            for head, values in zip(self.heads, predicted):
                values.append(head.predict(states, words))
        return predicted

    def evaluate(self, session):
        """Metrics on test as jenga eval --json has them."""
        gold, predicted = [[head.gold(row) for row in self.rows] for head in self.heads], self.predict(session)
        line = {"tasks": {}, "groups": []}
        for head, g, p in zip(self.heads, gold, predicted):
            line["tasks"].setdefault(head.task["name"], {"heads": {}})["heads"][head.name] = head.metrics(g, p)
        right = [[a == b for a, b in zip(g, p)] for head, g, p in zip(self.heads, gold, predicted) if head.field != "value"]
        if len(right) > 1:
            line["groups"].append({"all_right": sum(map(all, zip(*right))) / len(self.rows)})
        return line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the built binary")
    parser.add_argument("run", type=pathlib.Path, help="folder of a run")
    parser.add_argument("--threads", type=int, default=1, help="threads of ONNX Runtime")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    run = Run(args.jenga.resolve(), args.run)
    with tempfile.TemporaryDirectory() as name:
        files = {precision: f"{name}/{precision}.onnx" for precision in ("float32", "int8")}
        encoder = transformers.AutoModel.from_pretrained(run.encoder)
        onnxruntime_peer.export(encoder, files["float32"], types=getattr(encoder.config, "type_vocab_size", 1) > 1)
        onnxruntime_peer.quantize(files["float32"], files["int8"])
        print(json.dumps({precision: run.evaluate(onnxruntime_peer.session(path, args.threads)) for precision, path in files.items()}))


if __name__ == "__main__":
    main()
