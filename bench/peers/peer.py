"""Code that the peers' processes share: options, the batches of a work, timing, and the result as a JSON line."""

import argparse
import json
import random
import re
import resource
import sys
import time

import tokenizers

MAX_TOKENS = 128
ONE_TOKENS = 16
ONE_RUNS = 50
ROUNDS = 2
VOCABULARY = range(1000, 30000)  # range of the random tokens


def options(description, measures):
    """Reads the command line. A process makes one measurement, so that its peak memory is that of the measurement."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("measure", choices=measures)
    parser.add_argument("--model", required=True, help="distilbert, bilstm, or another name for a model of --weights")
    parser.add_argument("--weights", help="folder of the model, or an .onnx file")
    parser.add_argument("--tokenizer", help="folder of the tokenizer")
    parser.add_argument("--texts", help="file of JSON lines with text (default: random tokens)")
    parser.add_argument("--batch", type=int, help="texts of a batch (default: 16 random ones, 32 of a file)")
    parser.add_argument("--length", type=int, default=MAX_TOKENS, help="random tokens of a text")
    parser.add_argument("--steps", type=int, default=3, help="number of measured batches")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--precision", default="float32", choices=["float32", "bf16", "int8"])
    parser.add_argument("--out", help="file to export to")
    parser.add_argument("--device", default="cpu", help="cpu, or cuda:0 in PyTorch")
    parser.add_argument("--compile", action="store_true", help="compile the model with torch.compile")
    args = parser.parse_args()
    args.batch = args.batch or (32 if args.texts else 16)
    return args


def batches(args):
    """Lists the batches as lists of token ids: one for warm-up, and args.steps that are measured."""
    if args.texts is None:
        rng = random.Random(1)
        size = args.batch * (args.steps + 1)
        ids = [rng.choices(VOCABULARY, k=args.length) for _ in range(size)]
        return [ids[i:i + args.batch] for i in range(0, size, args.batch)]

    tokenizer = tokenizers.Tokenizer.from_file(f"{args.tokenizer}/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    with open(args.texts, encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in lines]
    ids = [encoding.ids for encoding in tokenizer.encode_batch(texts)]
    result = [ids[i:i + args.batch] for i in range(0, len(ids), args.batch)]
    return result[:args.steps + 1]


def padded(batch):
    """Pads a batch to its longest text: ids and mask, lists of lists."""
    longest = max(map(len, batch))
    ids = [text + [0] * (longest - len(text)) for text in batch]
    mask = [[1] * len(text) + [0] * (longest - len(text)) for text in batch]
    return ids, mask


def speed(inputs, tokens, step, rounds=ROUNDS, wait=lambda: None):
    """Times step over inputs; tokens has each input's number of tokens without padding. The first input is a warm-up;
    the others are timed in several rounds, of which the fastest counts. wait waits until a device has done what step
    left to it."""
    step(inputs[0])
    wait()
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        for x in inputs[1:]:
            step(x)
        wait()
        best = min(best, time.perf_counter() - start)
    return {"tokens_s": sum(tokens[1:]) / best, "step_s": best / (len(inputs) - 1)}


def one_text(step):
    """Times step, which encodes a text of ONE_TOKENS tokens: the mean over ONE_RUNS, in the fastest round."""
    step()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(ONE_RUNS):
            step()
        best = min(best, time.perf_counter() - start)
    return {"ms": best / ONE_RUNS * 1e3}


def peak_memory():
    """Returns the peak resident memory of this process in bytes. Linux's VmHWM is better than getrusage, which starts
    from the memory of the process that forked this one."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:
            return int(re.search(r"VmHWM:\s*(\d+) kB", status.read()).group(1)) * 1024
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def report(figures, version):
    print(json.dumps({**figures, "peak_memory": peak_memory(), "version": version}), flush=True)
