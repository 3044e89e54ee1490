"""Times ONNX Runtime: inference, or one text; and exports the ONNX file that it runs, in float32 and int8."""

import numpy
import onnxruntime
import peer


def export(args):
    """Writes an encoder with inputs ids and mask and the last layer's states as output, with dynamic axes for batch and tokens."""
    import torch
    import torch_peer

    model = torch_peer.encoder(args).eval()
    model.set_attn_implementation("eager")

    class States(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, input_ids, attention_mask):
            return self.model(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    ids = torch.ones(2, 7, dtype=torch.long)
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    inputs, output = ["input_ids", "attention_mask"], "last_hidden_state"
    torch.onnx.export(
        States(), (ids, mask), args.out, input_names=inputs, output_names=[output], dynamo=False, opset_version=14,
        dynamic_axes={name: {0: "batch", 1: "tokens"} for name in [*inputs, output]})


def quantize(args):
    """Writes the ONNX file with int8 weights, a scale for each column; activations are quantized at run time."""
    from onnxruntime import quantization

    quantization.quantize_dynamic(args.weights, args.out, per_channel=True, weight_type=quantization.QuantType.QInt8)


def main():
    args = peer.options(__doc__, ["export", "quantize", "infer", "one"])
    if args.measure == "export":
        export(args)
        return
    if args.measure == "quantize":
        quantize(args)
        return

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = args.threads
    session = onnxruntime.InferenceSession(args.weights, settings, providers=["CPUExecutionProvider"])

    def run(batch):
        session.run(None, {"input_ids": batch[0], "attention_mask": batch[1]})

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
