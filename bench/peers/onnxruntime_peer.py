"""Times ONNX Runtime: inference, or one text; and exports the ONNX file that it runs, in float32 and int8."""

import numpy
import onnxruntime
import peer


def export(model, path, types=False):
    """Writes an encoder of transformers with inputs ids, mask and, if asked, token types, and the last layer's states as output, with
    dynamic axes for batch and tokens."""
    import torch

    model = model.eval()
    model.set_attn_implementation("eager")
    inputs, output = ["input_ids", "attention_mask", "token_type_ids"][:2 + types], "last_hidden_state"

    class States(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *values):
            return self.model(**dict(zip(inputs, values))).last_hidden_state

    ids = torch.ones(2, 7, dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    torch.onnx.export(
        States(), (ids, mask, torch.zeros_like(ids))[:len(inputs)], path, input_names=inputs, output_names=[output], dynamo=False,
        opset_version=14, dynamic_axes={name: {0: "batch", 1: "tokens"} for name in [*inputs, output]})


def quantize(exported, path):
    """Writes the ONNX file with int8 weights, a scale for each column; activations are quantized at run time."""
    from onnxruntime import quantization

    quantization.quantize_dynamic(exported, path, per_channel=True, weight_type=quantization.QuantType.QInt8)


def session(path, threads):
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])


def main():
    args = peer.options(__doc__, ["export", "quantize", "infer", "one"])
    if args.measure == "export":
        import torch_peer

        export(torch_peer.encoder(args), args.out)
        return
    if args.measure == "quantize":
        quantize(args.weights, args.out)
        return

    model = session(args.weights, args.threads)

    def run(batch):
        model.run(None, {"input_ids": batch[0], "attention_mask": batch[1]})

    if args.measure == "one":
        ids = numpy.random.default_rng(1).integers(
            peer.VOCABULARY.start, peer.VOCABULARY.stop, (1, peer.ONE_TOKENS))
        figures = peer.one_text(lambda: run((ids, numpy.ones_like(ids))))
    else:
        batches = peer.batches(args)
        inputs = [tuple(numpy.array(x, dtype=numpy.int64) for x in peer.padded(batch)) for batch in batches]
        figures = peer.speed(inputs, [sum(map(len, batch)) for batch in batches], run)
    peer.report(figures, onnxruntime.__version__)


if __name__ == "__main__":
    main()
