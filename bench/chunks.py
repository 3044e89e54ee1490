"""Makes two corpora of spans in English, for chunks_and_names.yaml, out of corpora that no other file of several tasks uses.

    python bench/chunks.py DATA OUT

chunks: noun, verb and prepositional phrases, as those of CoNLL 2000, which rules find in the tags of words of MASC's written texts
(mlm_text/masc_tagged.zip). names: names, years and other numbers in the sentences of XQuAD's paragraphs (xquad_en), which rules find in
their letters; the tokenizer of minilm-l6 makes all letters small. Each has the files train, dev and test in CoNLL's form, with no document in two of them.
"""

import json
import pathlib
import re
import sys
import zipfile

SPLITS = ("train", "dev", "test")
SENTENCES = {"train": 4000, "dev": 1000, "test": 2000}  # of chunks
LONGEST = 60  # words
NOUN, BEFORE_NOUN = {"NN", "NNS", "NNP", "NNPS"}, {"DT", "PRP$", "CD", "JJ", "JJR", "JJS", "NN", "NNS", "NNP", "NNPS", "POS", "PDT", "$"}
NUMBERS = set("one two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred thousand million billion".split())
ALONE = {"PRP", "WP", "EX", "WDT"}
VERB, IN_VERB = {"MD", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ"}, {"RB", "TO"}


def chunk(tags):
    """Returns the phrases of a sentence as B-, I- and O."""
    out, at = ["O"] * len(tags), 0
    while at < len(tags):
        end, kind = at, None
        if tags[at] in ALONE:
            end, kind = at + 1, "NP"
        elif tags[at] in BEFORE_NOUN:
            stop = at
            while stop < len(tags) and tags[stop] in BEFORE_NOUN:
                stop += 1
            nouns = [i for i in range(at, stop) if tags[i] in NOUN or tags[i] == "CD"]
            if nouns:
                end, kind = nouns[-1] + 1, "NP"
        elif tags[at] in VERB or tags[at] == "TO" and at + 1 < len(tags) and tags[at + 1] == "VB":
            stop = at
            while stop < len(tags) and (tags[stop] in VERB or tags[stop] in IN_VERB):
                stop += 1
            end, kind = max(i for i in range(at, stop) if tags[i] in VERB) + 1, "VP"
        elif tags[at] in ("IN", "TO"):
            end, kind = at + 1, "PP"
        for i in range(at, end):
            out[i] = ("B-" if i == at else "I-") + kind
        at = max(end, at + 1)
    return out


def chunks(data):
    """Yields documents: lists of sentences, which are lists of words with tags."""
    with zipfile.ZipFile(data / "mlm_text/masc_tagged.zip") as archive:
        for name in sorted(n for n in archive.namelist() if "/written/" in n and n.endswith(".txt")):
            document = []
            for line in archive.read(name).decode("utf-8", errors="replace").splitlines():
                words = [word.rsplit("_", 1) for word in line.split() if "_" in word]
                words = [(word, tag) for word, tag in words if word and tag]
                if 2 <= len(words) <= LONGEST:
                    document.append(list(zip((w for w, _ in words), chunk([t for _, t in words]))))
            yield document


def names(words):
    """Returns the tags of a sentence's words: years, other numbers, and names, which begin with a capital after the first word."""
    out, inside = [], False
    for i, word in enumerate(words):
        if re.fullmatch(r"1\d{3}|20\d{2}", word):
            out.append("B-year")
        elif re.fullmatch(r"\d[\d,.]*", word) or word.lower() in NUMBERS:
            out.append("B-number")
        elif i > 0 and word[0].isupper() and word.lower() not in ("i", "the"):
            out.append("I-name" if inside else "B-name")
        else:
            out.append("O")
        inside = out[-1].endswith("-name")
    return out


def paragraphs(data):
    articles = json.loads((data / "xquad_en/xquad.en.json").read_text(encoding="utf-8"))["data"]
    for article in articles:
        document = []
        for paragraph in article["paragraphs"]:
            for sentence in re.split(r"(?<=[.!?]) (?=[A-Z])", paragraph["context"]):
                words = re.findall(r"\d[\d,.]*\d|\w+|[^\w\s]", sentence)
                if 2 <= len(words) <= LONGEST:
                    document.append(list(zip(words, names(words))))
        yield document


def write(path, sentences):
    with path.open("w", encoding="utf-8") as out:
        for sentence in sentences:
            out.writelines(f"{word}\t{tag}\n" for word, tag in sentence)
            out.write("\n")


def main():
    data, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for name, documents in (("chunks", list(chunks(data))), ("names", list(paragraphs(data)))):
        parts = {"train": [], "dev": [], "test": []}
        for number, document in enumerate(documents):  # of six documents, the last two are dev and test
            parts[SPLITS[max(0, number % 6 - 3)]] += document
        for split, sentences in parts.items():
            write(out / f"{name}.{split}.conll", sentences[:SENTENCES[split]] if name == "chunks" else sentences)
            print(name, split, min(len(sentences), SENTENCES[split] if name == "chunks" else len(sentences)), "sentences")


if __name__ == "__main__":
    main()
