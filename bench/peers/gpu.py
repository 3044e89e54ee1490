"""Compares training and inference on a GPU with PyTorch: the encoder of transformers with scaled dot-product attention, in bfloat16.

    python bench/peers/gpu.py ./jenga --tokenizer FOLDER --texts snips=SNIPS.jsonl --texts sst=SST.jsonl --out rows.jsonl

A line for each measurement is appended to the file. PyTorch pads a batch to its longest text; padding does not count in tokens a second.
A training step is forward, backward, clipping by the global norm and AdamW (fused in PyTorch) over all parameters, with dropout and a
head on the first token's state. Inference copies the states of the first tokens to the processor.
"""

import argparse
import gc
import json
import pathlib
import subprocess
import tempfile
import time
import types

import peer
import random_model
import torch
import torch_peer

FULL = 64  # random texts of a batch of full
STEPS = {"full": 20, "data": 23}  # measured batches, as jenga bench has them on a device


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jenga", type=pathlib.Path, help="the program, built with -tags gpu")
    parser.add_argument("--tokenizer", required=True, help="folder of the tokenizer")
    parser.add_argument("--texts", action="append", default=[], metavar="NAME=FILE", help="a work: JSON lines with text")
    parser.add_argument("--models", nargs="+", default=["bert", "distilbert", "modernbert"])
    parser.add_argument("--batches", nargs="+", type=int, default=[64, 256], help="texts of a batch of each of --texts")
    parser.add_argument("--precision", default="bf16", choices=["bf16", "float32"])
    parser.add_argument("--engines", nargs="+", default=["jenga", "eager", "compiled"])
    parser.add_argument("--measure", nargs="+", default=["train", "infer"])
    parser.add_argument("--no-full", action="store_true", help="measure the works of --texts alone")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    return parser.parse_args()


def jenga(args, model, work, batch, texts, folder):
    name = model
    if model == "modernbert":
        name = folder / model
        if not name.exists():
            name.mkdir()
            random_model.write(model, name)
    for measure in args.measure:
        words = [args.jenga.resolve(), "bench", name, "--device", "cuda:0", "--precision", args.precision, "--batch", batch,
                 "--measure", measure, "--json"]
        if texts:
            words += ["--data", texts, "--tokenizer", args.tokenizer]
        line = json.loads(subprocess.run(list(map(str, words)), check=True, capture_output=True, text=True).stdout)
        yield measure, {"tokens_s": line[f"{measure}_tokens_s"], "device_memory": line.get("device_memory")}


def pytorch(args, model, batch, texts, measure, compiled):
    torch.manual_seed(1)
    torch._dynamo.reset()
    torch.cuda.reset_peak_memory_stats()
    call = types.SimpleNamespace(model=model, weights=None, texts=texts, tokenizer=args.tokenizer, batch=batch, length=peer.MAX_TOKENS,
                                 steps=STEPS["data" if texts else "full"], device="cuda:0", compile=compiled, precision=args.precision,
                                 measure=measure)
    return torch_peer.measure(call)


def main():
    args = options()
    torch.backends.cuda.matmul.allow_tf32 = False
    works = [] if args.no_full else [("full", FULL, None)]
    for text in args.texts:
        name, file = text.split("=")
        works += [(name, batch, file) for batch in args.batches]
    with tempfile.TemporaryDirectory() as folder, args.out.open("a", encoding="utf-8") as out:
        for model in args.models:
            for work, batch, texts in works:
                for engine in args.engines:
                    start = time.time()
                    if engine == "jenga":
                        rows = list(jenga(args, model, work, batch, texts, pathlib.Path(folder)))
                    else:
                        rows = [(m, pytorch(args, model, batch, texts, m, engine == "compiled")) for m in args.measure]
                        gc.collect()
                        torch.cuda.empty_cache()
                    for measure, figures in rows:
                        row = {"model": model, "work": work, "batch": batch, "engine": engine, "measure": measure,
                               "precision": args.precision, **figures}
                        print(json.dumps(row), file=out, flush=True)
                        print(f"{model:10} {work:6} {batch:4} {engine:9} {measure:6} {figures['tokens_s']:10.0f} tokens/s "
                              f"{(figures.get('device_memory') or 0) / 2**20:7.0f} MiB {time.time() - start:5.1f} s", flush=True)


if __name__ == "__main__":
    main()
