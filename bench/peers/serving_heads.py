"""Loads jenga serve with one linear head and with twelve, in alternation with wrk, by an encoder of DistilBERT's size with random weights.

    python bench/peers/serving_heads.py ./jenga --data DATA --models MODELS --precision float32 --connections 1 64

Texts are those of serving.py, and the tokenizer is that of minilm-l6. wrk is required.
"""

import json
import pathlib
import shutil
import statistics
import sys
import tempfile

import torch
import transformers

import serving

HEADS = (1, 12)


def write_model(tokenizer, folder):
    torch.manual_seed(1)
    transformers.DistilBertModel(transformers.DistilBertConfig()).save_pretrained(folder)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        if (tokenizer / name).exists():
            shutil.copy(tokenizer / name, folder)


def main():
    args = serving.options(__doc__)
    rows = []
    with tempfile.TemporaryDirectory() as name, open(args.out, "a", encoding="utf-8") as out:
        folder = pathlib.Path(name)
        write_model(args.models / "minilm-l6", folder / "model")
        serving.write_texts(args, folder)
        for heads in HEADS:
            serving.train(args, folder / "model", heads, folder / f"heads{heads}")
        port = 8300
        for number in range(args.times):
            for precision in args.precision:
                for connections in args.connections:
                    for heads in HEADS[::1 if number % 2 == 0 else -1]:
                        port += 1
                        command = serving.jenga(args, folder / f"heads{heads}", precision, port)
                        row = {"heads": heads, "precision": precision, "connections": connections,
                               **serving.measure(args, command, connections, folder, port)}
                        rows.append(row)
                        print(json.dumps(row), file=out, flush=True)
                        print(json.dumps(row), file=sys.stderr)
    for precision in args.precision:
        for connections in args.connections:
            rate, p50 = [], []
            for heads in HEADS:
                own = [r for r in rows if (r["heads"], r["precision"], r["connections"]) == (heads, precision, connections)]
                rate.append(statistics.median(r["requests_s"] for r in own))
                p50.append(statistics.median(r["p50_ms"] for r in own))
            print(f"{precision}, {connections} connections: {rate[0]:.1f} and {rate[1]:.1f} requests/s, cost {rate[0] / rate[1]:.3f}; "
                  f"p50 {p50[0]:.2f} and {p50[1]:.2f} ms")


if __name__ == "__main__":
    main()
