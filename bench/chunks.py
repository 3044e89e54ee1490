"""Makes two corpora of spans in English, for chunks_and_answers.yaml, out of corpora that no other file of several tasks uses.

    python bench/chunks.py DATA OUT

chunks: noun, verb and prepositional phrases, as those of CoNLL 2000, which rules find in the tags of words of MASC's written texts
(mlm_text/masc_tagged.zip). answers: the answers to XQuAD's questions in the sentences of its paragraphs (xquad_en), of the type that the
question's first words ask for. Each has the files train, dev and test in CoNLL's form, with no document in two of them.
"""

import json
import pathlib
import re
import sys
import zipfile

SPLITS = ("train", "dev", "test")
SENTENCES = {"train": 8000, "dev": 1000, "test": 2000}  # of chunks
LONGEST = 60  # words
NOUN, BEFORE_NOUN = {"NN", "NNS", "NNP", "NNPS"}, {"DT", "PRP$", "CD", "JJ", "JJR", "JJS", "NN", "NNS", "NNP", "NNPS", "POS", "PDT", "$"}
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


def kind(question):
    first = question.lower()
    for start, name in (("who", "person"), ("whom", "person"), ("when", "time"), ("what year", "time"), ("in what year", "time"),
                        ("where", "place"), ("how many", "number"), ("how much", "number")):
        if first.startswith(start):
            return name
    return "thing"


def answers(data):
    articles = json.loads((data / "xquad_en/xquad.en.json").read_text(encoding="utf-8"))["data"]
    for article in articles:
        document = []
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            words = [(m.start(), m.end()) for m in re.finditer(r"\w+|[^\w\s]", text)]
            tags = ["O"] * len(words)
            for asked in paragraph["qas"]:
                start = asked["answers"][0]["answer_start"]
                end = start + len(asked["answers"][0]["text"])
                inside = [i for i, (a, b) in enumerate(words) if a < end and b > start]
                if inside and all(tags[i] == "O" for i in inside):
                    for i in inside:
                        tags[i] = ("B-" if i == inside[0] else "I-") + kind(asked["question"])
            sentence = []
            for i, (a, b) in enumerate(words):
                sentence.append((text[a:b], tags[i]))
                last = i + 1 == len(words)
                if last or text[a:b] in ".!?" and text[b:b + 1].isspace() and not tags[i + 1].startswith("I-"):
                    document.append(sentence)
                    sentence = []
        yield document


def write(path, sentences):
    with path.open("w", encoding="utf-8") as out:
        for sentence in sentences:
            out.writelines(f"{word}\t{tag}\n" for word, tag in sentence)
            out.write("\n")


def main():
    data, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for name, documents in (("chunks", list(chunks(data))), ("answers", list(answers(data)))):
        parts = {"train": [], "dev": [], "test": []}
        for number, document in enumerate(documents):  # of six documents, the last two are dev and test
            parts[SPLITS[max(0, number % 6 - 3)]] += document
        for split, sentences in parts.items():
            write(out / f"{name}.{split}.conll", sentences[:SENTENCES[split]] if name == "chunks" else sentences)
            print(name, split, min(len(sentences), SENTENCES[split] if name == "chunks" else len(sentences)), "sentences")


if __name__ == "__main__":
    main()
