package dataset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/outputs"
)

// studio are four tasks of Label Studio: annotated twice, cancelled, without a span, and not annotated.
const studio = `[{"id": 1, "data": {"body": "Ada Byron saw Rome", "n": 7}, "annotations": [
  {"id": 1, "was_cancelled": true, "result": []},
  {"id": 2, "result": [
    {"id": "x", "from_name": "ner", "to_name": "t", "type": "labels",
     "value": {"start": 0, "end": 9, "text": "Ada Byron", "labels": ["PER"]}},
    {"from_id": "x", "to_id": "y", "type": "relation", "direction": "right"},
    {"id": "y", "from_name": "ner", "to_name": "t", "type": "labels",
     "value": {"start": 14, "end": 18, "text": "Rome", "labels": ["LOC"]}},
    {"from_name": "mood", "to_name": "t", "type": "choices", "value": {"choices": ["good"]}},
    {"from_name": "topics", "to_name": "t", "type": "choices", "value": {"choices": ["a", "b"]}},
    {"from_name": "stars", "to_name": "t", "type": "rating", "value": {"rating": 4}}]},
  {"id": 3, "result": []}], "predictions": []},
 {"id": 2, "data": {"body": "It rains"}, "annotations": [{"id": 4, "was_cancelled": true, "result": []}]},
 {"id": 3, "data": {"body": "No names"}, "annotations": [{"id": 5, "result": [
    {"from_name": "mood", "to_name": "t", "type": "choices", "value": {"choices": ["bad"]}}]}]},
 {"id": 4, "data": {"body": "Not read"}, "annotations": []}]`

// studioMin is the first and the third of them as JSON_MIN.
const studioMin = `[{"body": "Ada Byron saw Rome", "n": 7, "id": 1, "ner": [
    {"start": 0, "end": 9, "text": "Ada Byron", "labels": ["PER"]},
    {"start": 14, "end": 18, "text": "Rome", "labels": ["LOC"]}],
  "mood": "good", "topics": {"choices": ["a", "b"]}, "stars": [{"rating": 4}],
  "annotator": 1, "annotation_id": 2, "lead_time": 3.1},
 {"body": "No names", "id": 3, "mood": "bad", "annotator": 1, "annotation_id": 5}]`

// toolForms are tasks on files as tools write them, and the targets of the training examples, - for none, or the error.
var toolForms = map[string]struct {
	task  string
	files map[string]string
	want  string
}{
	"spans of Label Studio": {"type: ner, data: {train: a.json, format: label_studio, text: bodyKEYS}",
		map[string]string{"a.json": studio}, "[PER=Ada Byron, LOC=Rome] - [] -"},
	"choices of Label Studio": {"type: classification, data: {train: a.json, format: label_studio, text: body, " +
		"label: " +
		"moodKEYS}", map[string]string{"a.json": studio}, "good - bad -"},
	"several choices": {"type: multi_label, data: {train: a.json, format: label_studio, text: body, labels: " +
		"topicsKEYS}",
		map[string]string{"a.json": studio}, "a,b - - -"},
	"a rating": {"type: regression, data: {train: a.json, format: label_studio, text: body, value: starsKEYS}",
		map[string]string{"a.json": studio}, "4 - - -"},
	"spans of JSON_MIN": {"type: ner, data: {train: a.json, format: label_studio, text: bodyKEYS}",
		map[string]string{"a.json": studioMin}, "[PER=Ada Byron, LOC=Rome] []"},
	"spans of JSON_MIN by their tag": {"type: ner, data: {train: a.json, text: body, entities: nerKEYS}",
		map[string]string{"a.json": studioMin}, "[PER=Ada Byron, LOC=Rome] -"},
	"choices of JSON_MIN": {"type: multi_label, data: {train: a.json, format: label_studio, text: body, labels: " +
		"topicsKEYS}",
		map[string]string{"a.json": studioMin}, "a,b -"},
	"a path through a list": {"type: classification, data: {train: a.json, text: data.body, label: " +
		"annotations.0.result.0.value.choices.0KEYS}",
		map[string]string{"a.json": strings.ReplaceAll(studio, `"data"`, `"data"`)}, "- - bad -"},

	"fastText": {"type: multi_label, data: {train: a.txt, format: fasttextKEYS}",
		map[string]string{"a.txt": "__label__a " +
			"__label__b-c so it  was\nno\n\n__label__b-c go on __label__d\n"}, "a,b-c - b-c,d"},
	"tabs and ends of fastText": {"type: multi_label, data: {train: a.txt, format: fasttextKEYS}",
		map[string]string{"a.txt": "__label__a\tso it was\nno __label__b\n__label__a\t__label__b\tgo __label__c on\n"},
		"a b a,b,c"},
	"labels of pandas": {"type: multi_label, data: {train: a.csvKEYS}",
		map[string]string{"a.csv": "text,labels\nso,\"['a', 'b c']\"\nno,['b' 'a']\nit,[]\nwas,\"(a, b)\"\n"},
		"a,b c a,b [] (a,b)"},
	"tags of pandas": {"type: ner, data: {train: a.csv, words: tokensKEYS}",
		map[string]string{"a.csv": "tokens,tags\n\"['Ada', \"\"d'Or\"\", 'ran']\",\"['B-A' 'I-A' 'O']\"\n"},
		"[A=Ada d'Or]"},
	"one label of fastText": {"type: classification, data: {train: a.txt, format: fasttextKEYS}",
		map[string]string{"a.txt": "__label__a so\n__label__b no\n"}, "a b"},
	"several where there is one": {"type: classification, data: {train: a.txt, format: fasttextKEYS}",
		map[string]string{"a.txt": "__label__a __label__b so\n__label__b no\n"}, `a.txt:1: task "it": field ` +
			`"label" is a list`},
	"choices of Prodigy": {"type: multi_label, data: {train: a.jsonl, labels: acceptKEYS}",
		map[string]string{"a.jsonl": `{"text": ` +
			`"so", "options": [{"id": "A", "text": "A"}], "accept": ["A"], "answer": "accept"}` + "\n" + `{"text": ` +
			`"no", "accept": []}` +
			"\n"}, "A []"},

	"brat": {"type: ner, data: {train: notesKEYS}", map[string]string{
		"notes/1.txt": "Ada Byron saw\nRome. 😀 Bo\n", "notes/1.ann": "T1\tPER 0 9\tAda Byron\nT2\tLOC 14 18\tRome\n" +
			"T3\tPER 22 24\tBo\nR1\tSaw Arg1:T1 Arg2:T2\n#1\tAnnotatorNotes T1\tno\nA1\tSure T1\n",
		"notes/2.txt": "Nobody\n", "notes/2.ann": "", "notes/3.txt": "Not read\n", "notes/annotation.conf": "x"},
		"[PER=Ada Byron, LOC=Rome, PER=Bo] [] -"},
	"a pattern of brat": {"type: ner, data: {train: 'notes/*.txt', format: bratKEYS}", map[string]string{
		"notes/1.txt": "Ada ran", "notes/1.ann": "T1\tPER 0 3\tAda\n", "notes/2.txt": "No"}, "[PER=Ada] -"},
	"pieces of brat": {"type: ner, data: {train: notesKEYS}", map[string]string{"notes/1.txt": "Ada and Bo Byron",
		"notes/1.ann": "T1\tPER 0 3;11 16\tAda Byron\nT2\tPER 8 10 Bo\n"}, `notes/1.ann:1: T1 "Ada Byron" is in ` +
		`several ` +
		`pieces, "PER 0 3;11 16"; an entity is one span: write its first and last offset, or remove it` + "\n" +
		`exp.yaml:5:41: task "it": notes/1.ann:2: "T2\tPER 8 10 Bo"; want T1, a tab, LABEL START END, a tab, and ` +
		`the text`},
	"bytes of brat": {"type: ner, data: {train: notesKEYS}", map[string]string{"notes/1.txt": "Zoë ran, Al too",
		"notes/1.ann": "T1\tPER 10 12\tAl\n"}, "data: {offsets: bytes} reads them"},
	"bytes of brat, read": {"type: ner, data: {train: notes, offsets: bytesKEYS}",
		map[string]string{"notes/1.txt": "Zoë ran, Al too",
			"notes/1.ann": "T1\tPER 10 12\tAl\n"}, "[PER=Al]"},
}

func targetText(e *corpus.Example) string {
	switch target := e.Targets[0].(type) {
	case *outputs.TagsTarget:
		return "[" + spanText(e) + "]"
	case *outputs.LabelTarget:
		return target.Label
	case *outputs.LabelsTarget:
		if len(target.Labels) == 0 {
			return "[]"
		}
		return strings.Join(slices.Sorted(slices.Values(target.Labels)), ",")
	case *outputs.NumberTarget:
		return fmt.Sprint(target.Value)
	}
	return "-"
}

func TestFilesOfTools(t *testing.T) {
	for name, test := range toolForms {
		t.Run(name, func(t *testing.T) {
			task := strings.ReplaceAll(test.task, "KEYS", ", split: {dev: 0}")
			data, err := load(t, "  - {name: it, "+task+"}\n", test.files)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				var all []string
				for _, e := range data.Groups[0].Examples[config.Train] {
					all = append(all, targetText(e))
				}
				got = strings.Join(all, " ")
			}
			if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
