"""Writes an encoder of random weights in a layout and with the sizes of a published one, as a folder that jenga and transformers read.

    python bench/peers/random_model.py modernbert FOLDER

Its tokenizer has a word for each id, so that random ids may be any.
"""

import argparse
import json
import pathlib

import torch
import transformers

MODELS = {
    "roberta": lambda: transformers.RobertaConfig(vocab_size=50265, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5),
    "xlm-roberta": lambda: transformers.XLMRobertaConfig(vocab_size=250002, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5),
    "electra": lambda: transformers.ElectraConfig(
        embedding_size=768, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072),
    "mpnet": lambda: transformers.MPNetConfig(max_position_embeddings=514, layer_norm_eps=1e-5),
    "modernbert": lambda: transformers.ModernBertConfig(),
    "ettin-17m": lambda: transformers.ModernBertConfig(
        hidden_size=256, intermediate_size=384, num_hidden_layers=7, num_attention_heads=4),
    "mmbert-small": lambda: transformers.ModernBertConfig(
        vocab_size=256000, hidden_size=384, intermediate_size=1152, num_hidden_layers=22, num_attention_heads=6,
        pad_token_id=0, bos_token_id=2, eos_token_id=1, cls_token_id=1, sep_token_id=1, global_rope_theta=160000, local_rope_theta=160000),
}


def write(name, folder):
    torch.manual_seed(1)
    config = MODELS[name]()
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + [f"w{i}" for i in range(5, config.vocab_size)]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    write(args.model, args.folder)


if __name__ == "__main__":
    main()
