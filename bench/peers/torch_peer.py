"""Times PyTorch with transformers: training steps, inference, or one text."""

import contextlib
import types

import peer
import torch
from transformers import AutoModel, BertConfig, BertModel, DistilBertConfig, DistilBertModel, ModernBertConfig

LABELS = 7


class BiLSTM(torch.nn.Module):
    """Word embeddings and two bidirectional LSTM layers of 256, on packed sequences, without padding."""

    width = 512

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(30522, 256)
        self.lstm = torch.nn.LSTM(256, 256, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)

    def forward(self, input_ids, attention_mask):
        lengths = attention_mask.sum(1)
        packed = torch.nn.utils.rnn.pack_padded_sequence(self.words(input_ids), lengths, batch_first=True, enforce_sorted=False)
        states, _ = torch.nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return types.SimpleNamespace(last_hidden_state=states)


def encoder(args):
    if args.model == "bilstm":
        return BiLSTM()
    if args.model == "distilbert":
        return DistilBertModel(DistilBertConfig())
    if args.model == "bert":
        return BertModel(BertConfig(), add_pooling_layer=False)
    if args.model == "modernbert":
        return AutoModel.from_config(ModernBertConfig())
    if args.model == "minilm":
        return BertModel.from_pretrained(args.weights, add_pooling_layer=False)
    return AutoModel.from_pretrained(args.weights)


def trainer(model, autocast, compiled):
    """Returns a training step: forward, backward, clipping by the global norm and AdamW over all parameters, with a
    head on the first token's state."""
    width = model.width if isinstance(model, BiLSTM) else model.config.hidden_size
    device = next(model.parameters()).device
    head = torch.nn.Linear(width, LABELS, device=device)
    # A pooler is not used: without a gradient, no optimizer updates it.
    params = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(params, 2e-5, weight_decay=0.01, fused=device.type == "cuda")
    model.train()
    forward = torch.compile(model, dynamic=compiled == "dynamic") if compiled else model

    def step(batch):
        ids, mask = batch
        optimizer.zero_grad()
        with autocast():
            states = forward(input_ids=ids, attention_mask=mask).last_hidden_state
            gold = torch.arange(len(ids), device=device) % LABELS
            loss = torch.nn.functional.cross_entropy(head(states[:, 0]), gold)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        optimizer.step()

    return step


def measure(args):
    """Returns the figures of one measurement."""
    model = encoder(args).to(args.device)
    on_gpu = args.device != "cpu"
    # texts of a file have many lengths
    compiled = ("dynamic" if args.texts else "static") if args.compile else None

    def autocast():
        return torch.autocast(args.device.split(":")[0], dtype=torch.bfloat16) if args.precision == "bf16" else contextlib.nullcontext()

    if args.measure != "train" and args.precision == "bf16":  # faster than autocast, which converts weights for each batch
        model = model.to(torch.bfloat16)

    forward = torch.compile(model, dynamic=compiled == "dynamic") if compiled and args.measure != "train" else model

    def infer(batch):
        with torch.no_grad():
            states = forward(input_ids=batch[0], attention_mask=batch[1]).last_hidden_state
            if on_gpu:
                states[:, 0].cpu()

    if args.measure == "one":
        ids = torch.randint(peer.VOCABULARY.start, peer.VOCABULARY.stop, (1, peer.ONE_TOKENS), device=args.device)
        model.eval()
        figures = peer.one_text(lambda: infer((ids, torch.ones_like(ids))))
    else:
        batches = peer.batches(args)
        inputs = [tuple(torch.tensor(x, device=args.device) for x in peer.padded(batch)) for batch in batches]
        tokens = [sum(map(len, batch)) for batch in batches]
        if args.measure == "train":
            step = trainer(model, autocast, compiled)
        else:
            model.eval()
            step = infer
        if on_gpu:
            for x in inputs:  # compile for all shapes, and reserve memory
                step(x)
            figures = peer.speed(inputs, tokens, step, 3, torch.cuda.synchronize)
            figures["device_memory"] = torch.cuda.max_memory_allocated()
        else:
            figures = peer.speed(inputs, tokens, step)
    return figures


def main():
    args = peer.options(__doc__, ["train", "infer", "one"])
    torch.set_num_threads(args.threads)
    torch.manual_seed(1)
    peer.report(measure(args), torch.__version__)


if __name__ == "__main__":
    main()
