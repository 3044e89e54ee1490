"""The encoders and fusions of docs/parts.md, computed from the tensors that docs/checkpoints.md lists: a text at a time, in float64."""

import json
import math
import pathlib

import torch
from safetensors.torch import load_file


def load(path):
    """The tensors of a file, in float64: differences to float32 are then those of the other side."""
    return {name: tensor.double() for name, tensor in load_file(path).items()}


def gelu(x):
    return x * (1 + torch.erf(x / math.sqrt(2))) / 2


def layer_norm(x, weight, bias, epsilon=1e-12):
    centred = x - x.mean(-1, keepdim=True)
    return weight * centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + epsilon) + bias


def below(tensors, prefix):
    """The tensors whose names begin with prefix, without it."""
    return {name[len(prefix):]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def lstm_direction(x, tensors, prefix, backward):
    """The states h [T H] of one direction of an LSTM layer; gates are in the order i, f, a, o."""
    recurrent = tensors[prefix + "recurrent"]
    size = recurrent.shape[0]
    inputs = x @ tensors[prefix + "input"] + tensors[prefix + "bias"]
    h = c = torch.zeros(size, dtype=x.dtype)
    states = [None] * len(x)
    for t in reversed(range(len(x))) if backward else range(len(x)):
        i, f, a, o = (inputs[t] + h @ recurrent).split(size)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(a)
        h = torch.sigmoid(o) * torch.tanh(c)
        states[t] = h
    return torch.stack(states)


def lstm_layer(x, tensors, prefix):
    directions = [lstm_direction(x, tensors, f"{prefix}{name}.", name == "backward") for name in ("forward", "backward")]
    return torch.cat(directions, 1)


class States:
    """What an encoder makes of a text: its states [T D] from the lowest to the last, and attention maps [heads T T] of each layer."""

    def __init__(self, layers, maps=()):
        self.layers, self.maps = layers, maps
        self.last = layers[-1]


class BiLSTM:
    def __init__(self, tensors):
        self.tensors = tensors
        self.count = len({name.split(".")[1] for name in tensors if name.startswith("layer.")})
        self.words = tensors["embeddings.weight"]

    def __call__(self, ids, types):
        x, layers = self.words[ids], []
        for i in range(self.count):
            x = lstm_layer(x, self.tensors, f"layer.{i}.")
            layers.append(x)
        return States(layers)


# The names of the layers' tensors in the two layouts, by their letters in docs/parts.md.
BERT = {"layer": "encoder.layer.", "query": "attention.self.query", "key": "attention.self.key", "value": "attention.self.value",
        "output": "attention.output.dense", "norm1": "attention.output.LayerNorm", "up": "intermediate.dense", "down": "output.dense",
        "norm2": "output.LayerNorm"}
DISTILBERT = {"layer": "transformer.layer.", "query": "attention.q_lin", "key": "attention.k_lin", "value": "attention.v_lin",
              "output": "attention.out_lin", "norm1": "sa_layer_norm", "up": "ffn.lin1", "down": "ffn.lin2", "norm2": "output_layer_norm"}


class Transformer:
    def __init__(self, tensors, config):
        self.tensors = tensors
        self.bert = config["model_type"] == "bert"
        self.names = BERT if self.bert else DISTILBERT
        self.heads = config["num_attention_heads" if self.bert else "n_heads"]
        self.count = config["num_hidden_layers" if self.bert else "n_layers"]
        self.epsilon = config.get("layer_norm_eps", 1e-12) if self.bert else 1e-12
        self.words = tensors["embeddings.word_embeddings.weight"]

    def adapted(self, changes, factor):
        """This encoder with the changes A·B of LoRA, i.NAME.down and i.NAME.up; weights are [out in], so that (A·B)ᵀ is added."""
        other = Transformer.__new__(Transformer)
        other.__dict__.update(self.__dict__, tensors=dict(self.tensors))
        for name in changes:
            layer, target, half = name.split(".")
            if half == "down":
                weight = f"{self.names['layer']}{layer}.{self.names[target]}.weight"
                change = changes[name] @ changes[f"{layer}.{target}.up"]
                other.tensors[weight] = self.tensors[weight] + factor * change.T
        return other

    def linear(self, i, name, x):
        place = f"{self.names['layer']}{i}.{self.names[name]}"
        return x @ self.tensors[place + ".weight"].T + self.tensors[place + ".bias"]

    def norm(self, place, x):
        return layer_norm(x, self.tensors[place + ".weight"], self.tensors[place + ".bias"], self.epsilon)

    def attention(self, i, x):
        length, width = x.shape
        split = lambda name: self.linear(i, name, x).view(length, self.heads, -1).transpose(0, 1)
        query, key, value = split("query"), split("key"), split("value")
        weights = torch.softmax(query @ key.transpose(1, 2) / math.sqrt(width // self.heads), -1)
        return self.linear(i, "output", (weights @ value).transpose(0, 1).reshape(length, width)), weights

    def __call__(self, ids, types):
        x = self.words[ids] + self.tensors["embeddings.position_embeddings.weight"][: len(ids)]
        if self.bert:
            x = x + self.tensors["embeddings.token_type_embeddings.weight"][types]
        x = self.norm("embeddings.LayerNorm", x)
        layers, maps = [x], []
        for i in range(self.count):
            place = f"{self.names['layer']}{i}."
            out, weights = self.attention(i, x)
            x = self.norm(place + self.names["norm1"], x + out)
            x = self.norm(place + self.names["norm2"], x + self.linear(i, "down", gelu(self.linear(i, "up", x))))
            layers.append(x)
            maps.append(weights)
        return States(layers, maps)


def open_encoder(folder):
    """The encoder of a folder with config.json and model.safetensors; a bilstm is known by its tensors."""
    folder = pathlib.Path(folder)
    tensors = load(folder / "model.safetensors")
    if "embeddings.weight" in tensors:
        return BiLSTM(tensors)
    for prefix in "bert.", "distilbert.":
        tensors.update(below(tensors, prefix))
    return Transformer(tensors, json.loads((folder / "config.json").read_text()))


def fuse(options, tensors, task, states):
    """The states [T D] that a task's heads read."""
    kind, h = options["type"], states.last
    if kind == "none":
        return h
    if kind == "adapter":
        of = below(tensors, task + ".")
        return h + gelu(h @ of["down.weight"] + of["down.bias"]) @ of["up.weight"] + of["up.bias"]
    if kind == "mix":
        weights = torch.softmax(tensors[task + ".weights"], 0)
        mixed = states.layers[len(states.layers) - len(weights):]
        return tensors[task + ".scale"] * sum(weight * layer for weight, layer in zip(weights, mixed))
    if kind not in ("attention", "concat"):
        raise SystemExit(f"fusion {kind} has no reference")
    e = tensors["tasks." + task]
    if kind == "concat":
        return h @ tensors["states.weight"] + e @ tensors["task.weight"] + tensors["task.bias"]
    u = torch.tanh(h @ tensors["states.weight"] + e @ tensors["task.weight"] + tensors["task.bias"])
    weights = torch.softmax(u @ tensors["score.weight"] + tensors["score.bias"], 0)
    if options["scale"] == "gated":
        gate = torch.sigmoid(tensors["gates." + task])
        return gate * weights * h + (1 - gate) * h
    factor = 1 if options["scale"] == "exact" else len(h)
    return factor * weights * h + (h if options["scale"] == "residual" else 0)
