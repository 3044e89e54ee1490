"""Writes the ONNX file of a BERT or DistilBERT encoder by one of PyTorch's exporters.

    python scripts/export_onnx.py MODEL_FOLDER OUT_FOLDER [--exporter torchscript|dynamo]

Writes to OUT_FOLDER model.onnx (the dynamo exporter writes the weights to model.onnx.data) and copies of config.json
and the tokenizer's files, which jenga requires beside an .onnx file.

Requires: onnx==1.23.2 onnxscript==0.7.2 torch==2.15.0 transformers==5.23.0
"""

import argparse
import pathlib
import shutil

import torch
import transformers

BESIDE = ["config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"]


class States(torch.nn.Module):
    """An encoder with inputs ids and mask, and the states of its last layer as output."""

    def __init__(self, encoder):
        super().__init__()
        # The encoder's children become this module's, so that their names in the graph have no prefix; __dict__ keeps the
        # encoder itself from being registered as one.
        self.__dict__["whole"] = encoder
        for name, child in encoder.named_children():
            self.add_module(name, child)

    def forward(self, input_ids, attention_mask):
        return self.whole.forward(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


def export(encoder, path, exporter):
    """Writes encoder to path, with dynamic axes for batch and tokens."""
    encoder = encoder.eval()
    ids = torch.ones(2, 7, dtype=torch.long)
    arguments = (ids, torch.ones_like(ids))
    names = dict(input_names=["input_ids", "attention_mask"], output_names=["last_hidden_state"])
    if exporter == "dynamo":
        batch, tokens = torch.export.Dim("batch"), torch.export.Dim("tokens", max=encoder.config.max_position_embeddings)
        shapes = {"input_ids": {0: batch, 1: tokens}, "attention_mask": {0: batch, 1: tokens}}
        torch.onnx.export(States(encoder), arguments, path, dynamo=True, dynamic_shapes=shapes, **names)
        return
    axes = {"input_ids": {0: "batch", 1: "tokens"}, "attention_mask": {0: "batch", 1: "tokens"}}
    torch.onnx.export(States(encoder), arguments, path, dynamo=False, opset_version=17, dynamic_axes=axes, **names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--exporter", choices=["torchscript", "dynamo"], default="torchscript")
    arguments = parser.parse_args()

    encoder = transformers.AutoModel.from_pretrained(arguments.model, dtype=torch.float32)
    arguments.out.mkdir(parents=True, exist_ok=True)
    export(encoder, str(arguments.out / "model.onnx"), arguments.exporter)
    for name in BESIDE:
        if (arguments.model / name).exists():
            shutil.copyfile(arguments.model / name, arguments.out / name)


if __name__ == "__main__":
    main()
