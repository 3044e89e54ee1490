"""Serves an encoder with four heads over HTTP: FastAPI and ONNX Runtime, texts that meet in one batch; and exports its ONNX file.

    python server_peer.py export --weights MODELS/minilm-l6 --out model.onnx [--precision int8]
    python server_peer.py serve --weights model.onnx --tokenizer MODELS/minilm-l6 --port 8090 --threads 2
"""

import argparse
import asyncio
import concurrent.futures
import contextlib
import pathlib

HEADS, LABELS = ["a", "b", "c", "d"], 7
BATCH = 64  # most texts of a batch; jenga's have 1,024 tokens, some 90 of SNIPS' texts
MAX_TOKENS = 128


def export(args):
    """Writes minilm's encoder with four linear heads on the first token's state, random weights; the outputs are probabilities."""
    import torch
    from transformers import BertModel

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = BertModel.from_pretrained(args.weights, add_pooling_layer=False, attn_implementation="eager")
            self.heads = torch.nn.ModuleList(torch.nn.Linear(self.encoder.config.hidden_size, LABELS) for _ in HEADS)

        def forward(self, input_ids, attention_mask):
            first = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state[:, 0]
            return tuple(head(first).softmax(-1) for head in self.heads)

    torch.manual_seed(1)
    ids = torch.ones(2, 7, dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    inputs = ["input_ids", "attention_mask"]
    target = args.out + ".float32" if args.precision == "int8" else args.out
    torch.onnx.export(
        Model().eval(), (ids, mask), target, input_names=inputs, output_names=HEADS, dynamo=False, opset_version=14,
        dynamic_axes={**{name: {0: "batch", 1: "tokens"} for name in inputs}, **{name: {0: "batch"} for name in HEADS}})
    if args.precision == "int8":
        from onnxruntime import quantization

        quantization.quantize_dynamic(target, args.out, per_channel=True, weight_type=quantization.QuantType.QInt8)


class Batcher:
    """Runs the texts that wait as one batch; a text that finds the model idle runs at once."""

    def __init__(self, args):
        import numpy
        import onnxruntime
        import tokenizers

        self.numpy = numpy
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = args.threads
        self.session = onnxruntime.InferenceSession(args.weights, settings, providers=["CPUExecutionProvider"])
        self.tokenizer = tokenizers.Tokenizer.from_file(str(pathlib.Path(args.tokenizer) / "tokenizer.json"))
        self.tokenizer.enable_truncation(MAX_TOKENS)
        self.tokenizer.enable_padding()
        self.thread = concurrent.futures.ThreadPoolExecutor(1)
        self.queue = asyncio.Queue()

    async def run(self):
        loop = asyncio.get_running_loop()
        while True:
            waiting = [await self.queue.get()]
            while len(waiting) < BATCH and not self.queue.empty():
                waiting.append(self.queue.get_nowait())
            texts = [text for text, _ in waiting]
            try:
                answers = await loop.run_in_executor(self.thread, self.predict, texts)
            except Exception as error:  # of the batch; the server goes on
                answers = [error] * len(texts)
            for (_, future), answer in zip(waiting, answers):
                if future.done():
                    continue
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    def predict(self, texts):
        encoded = self.tokenizer.encode_batch(texts)
        ids = self.numpy.array([e.ids for e in encoded], dtype=self.numpy.int64)
        mask = self.numpy.array([e.attention_mask for e in encoded], dtype=self.numpy.int64)
        outputs = self.session.run(HEADS, {"input_ids": ids, "attention_mask": mask})
        best = [probabilities.argmax(1) for probabilities in outputs]
        return [{name: {"label": str(best[h][b]), "probability": round(float(outputs[h][b, best[h][b]]), 4)}
                 for h, name in enumerate(HEADS)} for b in range(len(texts))]

    async def answer(self, text):
        future = asyncio.get_running_loop().create_future()
        self.queue.put_nowait((text, future))
        return await future


def serve(args):
    import fastapi
    import pydantic
    import uvicorn

    @contextlib.asynccontextmanager
    async def lifespan(app):
        app.state.batcher = Batcher(args)
        task = asyncio.create_task(app.state.batcher.run())
        yield
        task.cancel()

    class Request(pydantic.BaseModel):
        text: str

    app = fastapi.FastAPI(lifespan=lifespan)

    @app.post("/v1/predict")
    async def predict(request: Request):
        heads = await app.state.batcher.answer(request.text)
        return {"predictions": [{"text": request.text, "tasks": {"intent": heads}}]}

    @app.get("/readyz")
    async def ready():
        return {"status": "ok"}

    uvicorn.run(app, host="127.0.0.1", port=args.port, log_level="warning", access_log=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["export", "serve"])
    parser.add_argument("--weights", required=True, help="folder of the model, or the .onnx file to serve")
    parser.add_argument("--out", help="file to export to")
    parser.add_argument("--precision", default="float32", choices=["float32", "int8"])
    parser.add_argument("--tokenizer", help="folder of the tokenizer")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    {"export": export, "serve": serve}[args.command](args)


if __name__ == "__main__":
    main()
