package guess

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/internal/shared"
)

// forms are files as tools write them, or a case beside the repository, and what they are guessed to be: format is
// "TYPE RECORDS OFFSETS".
var forms = []struct {
	name, file, text      string
	fields, tasks, format string
}{
	{"UTF-16", "a.jsonl", "CASE utf16-offsets/utf16.jsonl", "text=text", "ner entities=entities", "  utf16"},
	{"names in parquet", "a.parquet", "CASE ner-integers/ner.parquet", "words=tokens", "ner tags=ner_tags", "  "},
	{"JSON in a cell", "a.csv", "CASE spans-in-csv/ent_json.csv", "text=text", "ner entities=entities", "  "},
	{"MASSIVE", "a.jsonl", "CASE massive/m.jsonl", "text=utt",
		"ner entities=annot_utt; classification label=intent; classification label=scenario", "  "},
	{"doccano", "a.jsonl", "CASE doccano/label.jsonl", "text=text", "ner entities=label", "  "},
	{"Python in a cell", "a.csv", "text,spans\n" + rows(30, text2+",\"[{'start': 0, 'end': 4, 'label': '%[2]s'}]\""),
		"text=text", "ner entities=spans", "  "},
	{"bytes", "a.jsonl", rows(30, `{"text": "é `+text2+`", "spans": [{"start": 3, "end": 7, "label": "%[2]s", "text": `+
		`"this"}]}`), "text=text", "ner entities=spans", "  bytes"},
	{"bytes without the text of spans", "a.jsonl", rows(30, `{"text": "é `+text2+`", "spans": [[3, 7, "%[2]s"]]}`),
		"text=text", "ner entities=spans", "  bytes"},
	{"offsets as pandas writes them", "a.jsonl", rows(30, `{"text": "`+text2+`", "spans": [{"start": 0.0, "end": 4.0, `+
		`"label": "%[2]s"}]}`), "text=text", "ner entities=spans", "  "},
	{"columns of datasets", "a.jsonl", rows(30, `{"text": "`+text2+`", "ents": {"start": [0], "end": [4], "label": `+
		`["%[2]s"]}}`), "text=text", "ner entities=ents", "  "},
	{"GLiNER", "a.json", "[" + strings.TrimSuffix(rows(30, `{"tokenized_text": ["It", "is", "%[1]d"], "ner": `+
		`[[2, 2, "%[2]s"]]},`), ",\n") + "]", "words=tokenized_text", "ner entities=ner", "  words"},
	{"GLiNER without spans of one word", "a.jsonl", rows(30, `{"tokenized_text": ["Here", "comes", "%[1]d", "."], `+
		`"ner": [[1, 2, "%[2]s"]]}`), "words=tokenized_text", "ner entities=ner", "  words"},
	{"CrossRE without spans of one word", "a.jsonl", rows(30, `{"tokens": ["Here", "comes", "%[1]d", "."], `+
		`"ner": [[1, 2, "%[2]s"]]}`), "words=tokens", "ner entities=ner", "  words"},
	{"GLiNER's names and another end", "a.jsonl", rows(30, `{"tokenized_text": ["Here", "comes", "%[1]d", "."], `+
		`"ner": [[0, 2, "%[2]s"], [2, 4, "%[2]s"]]}`), "words=tokenized_text", "ner entities=ner", "  word_bounds"},
	{"spans that follow one another", "a.jsonl", rows(30, `{"tokenized_text": ["Here", "comes", "%[1]d", "."], `+
		`"ner": [[0, 2, "%[2]s"], [2, 3, "%[2]s"]]}`), "words=tokenized_text", "ner entities=ner", "  word_bounds"},
	{"SpERT without the last word", "a.jsonl", rows(30, `{"tokens": ["Here", "comes", "%[1]d", "."], "entities": `+
		`[{"type": "%[2]s", "start": 0, "end": 2}]}`), "words=tokens", "ner entities=entities", "  word_bounds"},
	{"SpERT", "a.json", "[" + strings.TrimSuffix(rows(30, `{"tokens": ["It", "is", "%[1]d", "."], "entities": `+
		`[{"type": `+
		`"%[2]s", "start": 2, "end": 3}], "relations": [], "orig_id": %[1]d},`), ",\n") + "]", "words=tokens",
		"ner entities=entities", "  word_bounds"},
	{"SpERT with the last word", "a.json", "[" + strings.TrimSuffix(rows(30, `{"tokens": ["It", "is", "%[1]d"], `+
		`"entities": [{"type": "%[2]s", "start": 0, "end": 1}, {"type": "N", "start": 1, "end": 3}]},`), ",\n") + "]",
		"words=tokens", "ner entities=entities", "  word_bounds"},
	{"characters of words that are given", "a.jsonl", rows(30, `{"tokens": ["this", "is", "%[1]d"], "spans": `+
		`[{"start": `+
		`0, "end": 4, "label": "%[2]s"}]}`), "words=tokens", "ner entities=spans", "  "},
	{"a list of one label", "a.jsonl", rows(30, `{"text": "`+text2+`", "label": ["%[2]s"]}`), "text=text",
		"classification label=label", "  "},
	{"lists of one label or none", "a.jsonl", `{"text": "this is none", "label": []}` + "\n" + rows(30, `{"text": `+
		`"`+text2+
		`", "label": ["%[2]s"]}`), "text=text", "classification label=label", "  "},
	{"Prodigy", "a.jsonl", `{"text": "this is no", "accept": [], "answer": "reject"}` + "\n" + rows(30, `{"text": `+
		`"`+text2+
		`", "options": [{"id": "x", "text": "x"}], "accept": ["%[2]s"], "answer": "accept", "_input_hash": %[1]d}`),
		"text=text", "classification label=accept", "   map[answer:[accept]]"},
	{"Prodigy's spans", "a.jsonl", `{"text": "this is no", "spans": [], "answer": "ignore"}` + "\n" + rows(30,
		`{"text": "`+
			text2+`", "spans": [{"start": 0, "end": 4, "label": "%[2]s"}], "answer": "accept"}`), "text=text",
		"ner entities=spans", "   map[answer:[accept]]"},
	{"Prodigy's answers to one label", "a.jsonl", rows(30, `{"text": "`+text2+`", "label": "x", "answer": "accept"}`) +
		rows(30, `{"text": "`+text2+`", "label": "x", "answer": "reject"}`), "text=text",
		"classification label=answer", "  "},
	{"Argilla's status", "a.jsonl", rows(30, `{"text": "`+text2+`", "label": "%[2]s", "status": "submitted"}`) +
		rows(10, `{"text": "`+text2+`", "label": "%[2]s", "status": "discarded"}`) +
		rows(10, `{"text": "`+text2+`", "label": null, "status": "draft"}`), "text=text",
		"classification label=label", "   map[status:[submitted]]"},
	{"a review in a table", "a.csv", "text,label,review\n" + rows(30, text2+",%[2]s,approved") +
		rows(20, text2+",%[2]s,declined"), "text=text", "classification label=label", "  "},
	{"flags as pandas writes them", "a.csv", "text,label,deleted\n" + rows(30, text2+",%[2]s,0.0") +
		rows(20, text2+",%[2]s,1.0") + rows(20, text2+",%[2]s,"), "text=text", "classification label=label",
		"  "},
	{"records that are done or skipped", "a.csv", "text,label,state\n" + rows(30, text2+",%[2]s,done") +
		rows(20, text2+",%[2]s,skipped") + rows(20, text2+",%[2]s,todo"), "text=text", "classification label=label",
		"  "},
	{"a verdict that may be invalid", "a.csv", "text,label,verdict\n" + rows(30, text2+",%[2]s,true") +
		rows(20, text2+",%[2]s,false") + rows(20, text2+",%[2]s,invalid"), "text=text",
		"classification label=label; classification label=verdict", "  "},
	{"Prodigy's with answers to come", "a.jsonl", rows(30, `{"text": "`+text2+
		`", "label": "%[2]s", "answer": "accept"}`) +
		rows(10, `{"text": "`+text2+`", "label": "%[2]s", "answer": "reject"}`) +
		rows(10, `{"text": "`+text2+`", "label": "%[2]s"}`), "text=text", "classification label=label",
		"   map[answer:[accept]]"},
	{"a decision that is the label", "a.csv", "text,decision\n" + rows(30, text2+",approved") +
		rows(20, text2+",declined"), "text=text", "classification label=decision", "  "},
	{"a status of orders", "a.csv", "text,label,status\n" + rows(30, text2+",%[2]s,accepted") +
		rows(20, text2+",%[2]s,shipped") + rows(20, text2+",%[2]s,cancelled"), "text=text",
		"classification label=label; classification label=status", "  "},
	{"labels that are words of marks", "a.csv", "text,label,intent\n" + rows(30, text2+",valid,%[2]s") +
		rows(20, text2+",invalid,%[2]s"), "text=text", "classification label=label; classification label=intent", "  "},
	{"columns of pandas", "a.json", `{"text": {` + numbered(30, text2) + `}, "label": {` + numbered(30, "%[2]s") + `}}`,
		"text=text", "classification label=label", "columns  "},
	{"numbered records of pandas", "a.json", "{" + strings.TrimSuffix(rows(30, `"%[1]d": {"text": "`+text2+
		`", "label": "%[2]s"},`), ",\n") + "}", "text=text", "classification label=label", "columns  "},
	{"the viewer of Hugging Face", "a.json", `{"features": [{"name": "text"}], "rows": [` + strings.TrimSuffix(rows(30,
		`{"row_idx": %[1]d, "row": {"text": "`+text2+`", "label": "%[2]s"}, "truncated_cells": []},`), ",\n") + "]}",
		"text=row.text", "classification label=row.label", " rows "},
	{"comments above the header", "a.csv", "# exported 2024\n# by me\ntext,label,x\n" + rows(30, text2+",%[2]s,1"),
		"text=text", "classification label=label", "  "},
	{"a title that Excel pads", "a.csv", "Report;\ntext;label\n" + rows(30, text2+";%[2]s"), "text=text",
		"classification label=label", "  "},
	{"a comment above semicolons", "a.txt", "// made by X\ntext;label\n" + rows(30, text2+";%[2]s"), "text=text",
		"classification label=label", "csv  "},
	{"comments that hashtags begin like", "a.csv", "#exported\ntext,label\n" + rows(30, text2+",%[2]s") +
		rows(2, "#coffee "+text2+",%[2]s"), "text=text", "classification label=label", "  "},
	{"a line of names above words", "a.conll", "word\ttag\n" + rows(30, "this\tO\n%[1]d\tB-%[2]s\n"), "words=words",
		"ner tags=tags", "  "},
	{"a line of names after the beginning of a document", "a.conll", "-DOCSTART- -X- O O\n\nWord POS Chunk Tag\n" +
		rows(30, "this DT O O\n%[1]d CD O B-%[2]s\n"), "words=words", "ner tags=tags", "  "},
	{"words and tags with commas between", "a.conll", rows(30, "this,O\n%[1]d,B-%[2]s\n"), "words=words",
		"ner tags=tags",
		"  "},
	{"spans that overlap", "a.jsonl", rows(30, `{"text": "`+text2+
		`", "spans": [{"start": 0, "end": 7, "label": "%[2]s"}, `+
		`{"start": 0, "end": 4, "label": "%[2]s"}]}`), "text=text", "ner entities=spans", "  "},
	{"Argilla's other status", "a.jsonl", rows(30, `{"text": "`+text2+`", "label": "%[2]s", "status": "completed"}`) +
		rows(10, `{"text": "`+text2+`", "label": "%[2]s", "status": "pending"}`), "text=text",
		"classification label=label", "   map[status:[completed]]"},
	{"splits by other words", "a.csv", "text,label,set\n" + rows(30, text2+",%[2]s,Training") +
		rows(20, text2+",%[2]s,Validate"), "text=text", "classification label=label", "  "},
	{"a flag of the split", "a.csv", "text,label,is_train\n" + rows(30, text2+",%[2]s,True") +
		rows(20, text2+",%[2]s,False"), "text=text", "classification label=label", "  "},
	{"tables that were joined", "a.csv", "text,label\n" + rows(30, text2+",%[2]s") + "text,label\n" +
		rows(30, text2+" too,%[2]s"), "text=text", "classification label=label", "  "},
	{"another list of one label", "a.jsonl", rows(30, `{"tokenized_text": ["Here", "comes", "%[1]d", "."], "ner": `+
		`[[1, 2, "%[2]s"]], "negatives": ["org"]}`), "words=tokenized_text", "ner entities=ner", "  words"},
	{"labels that look like dates", "a.csv", "text,label\n" + rows(30, text2+",1.2.0") + rows(30, text2+",1.3.0"),
		"text=text", "classification label=label", "  "},
	{"two numbers of topics", "a.csv", "text,topic\n" + rows(30, text2+`,"1,4"`) + rows(30, text2+`,"2,4"`) +
		rows(30, text2+`,"1,3"`) + rows(30, text2+`,"2,3"`), "text=text", "multi_label labels=topic", "  "},
	{"dashes and signs of cp1252", "a.csv", "text,label\n" + rows(30, text2+" \x97\x97\x97 \xa3\xa3\xa3,%[2]s"),
		"text=text", "classification label=label", "  "},
	{"records under a key", "a.json", `{"version": 1, "data": [` + strings.TrimSuffix(rows(30, `{"text": "`+text2+
		`", "label": "%[2]s"},`), ",\n") + "]}", "text=text", "classification label=label", " data "},
	{"columns", "a.json", `{"text": ["so it is", "no it is not", "yes it is so", "it rains today"], "label": ["a", "b", ` +
		`"a", "b"]}`, "text=text", "classification label=label", "columns  "},
	{"fastText", "a.txt", rows(30, "__label__%[2]s "+text2), "text=text", "classification label=label", "fasttext  "},
	{"several labels of fastText", "a.txt", rows(30, "__label__%[2]s __label__big "+text2), "text=text",
		"multi_label labels=labels", "fasttext  "},
	{"Label Studio", "a.json", "[" + strings.TrimSuffix(rows(30, `{"id": %[1]d, "data": {"text": "`+text2+`"}, `+
		`"annotations": [{"result": [{"from_name": "ner", "type": "labels", "value": {"start": 0, "end": 4, "labels": `+
		`["X"]}}, {"from_name": "mood", "type": "choices", "value": {"choices": ["%[2]s"]}}]}]},`), ",\n") + "]",
		"text=text", "ner entities=entities; classification label=mood", "label_studio  "},
	{"predictions of Label Studio", "a.json", "[" + strings.TrimSuffix(rows(30, `{"data": {"text": "`+text2+`"}, `+
		`"predictions": [{"result": [{"from_name": "mood", "type": "choices", "value": {"choices": ["%[2]s"]}}]}]},`),
		",\n") + "]", "text=text", "mlm", "label_studio  "},
	{"such tasks with a label", "a.json", "[" + strings.TrimSuffix(rows(30, `{"id": %[1]d, "data": {"text": "`+text2+
		`", "mood": "%[2]s"}, "predictions": [], "total_annotations": 0},`), ",\n") + "]", "text=text",
		"classification label=mood", "label_studio  "},
	{"a tab after a label of fastText", "a.txt", rows(30, "__label__%[2]s\t"+text2), "text=text",
		"classification label=label", "fasttext  "},
	{"labels of fastText at the end", "a.txt", rows(30, text2+" __label__%[2]s"), "text=text",
		"classification label=label", "fasttext  "},
	{"a list of Python in a cell", "a.csv", "text,labels\n" + rows(30, text2+",\"['%[2]s', 'big']\""), "text=text",
		"multi_label labels=labels", "  "},
	{"a list of NumPy in a cell", "a.csv", "text,labels\n" + rows(30, text2+",['%[2]s' 'big']"), "text=text",
		"multi_label labels=labels", "  "},
	{"0 and 1 of NumPy in a cell", "a.csv", "text,labels,x\n" + rows(30, text2+",[1 0 1],%[2]s"), "text=text",
		"classification label=x", "  "},
	{"words and tags of Python in cells", "a.csv", "tokens,ner_tags\n" +
		rows(30, "\"['this', 'is', '%[1]d']\",\"['O', 'O', 'B-%[2]s']\""), "words=tokens", "ner tags=ner_tags", "  "},
	{"tags of Python beside a text", "a.csv", "Sentence #,Sentence,POS,Tag\n" + rows(30, "Sentence: %[1]d,"+text2+
		",\"['P', 'V', 'N', 'N', 'C']\",\"['O', 'O', 'O', 'O', 'B-%[2]s']\""), "words=Sentence",
		"tagging tags=POS; ner tags=Tag", "  "},
	{"words and tags with blanks between", "a.csv", "id,tokens,slots,intent\n" + rows(30, "%[1]d,"+text2+
		",O O O O B-%[2]s,%[2]s"), "words=tokens", "ner tags=slots; classification label=intent", "  "},
	{"tags with blanks between beside a list of words", "a.jsonl", rows(30, `{"text": "so it is", "tokens": `+
		`["so", "it", "is"], "tags": "O B-%[2]s O", "intent": "%[2]s"}`), "words=tokens text=",
		"classification label=intent; ner tags=tags", "  "},
	{"such tags alone beside a text and its words", "a.jsonl", rows(30, `{"sentence": "so it is", "words": `+
		`["so", "it", "is"], "bio": "O B-%[2]s O"}`), "words=words", "ner tags=bio", "  "},
	{"parts of speech with blanks between", "a.tsv", "text\tpos\tlabels\n" + rows(30, text2+
		"\tP V N N C\tO O O O B-%[2]s"), "words=text", "tagging tags=pos; ner tags=labels", "  "},
	{"a sheet with empty columns", "a.csv", "v1,v2,,,\n" + rows(30, "%[2]s,"+text2+",,,"), "text=v2",
		"classification label=v1", "  "},
	{"dates and numbers with a comma are no labels", "a.csv", "text;Datum;Preis;kind\n" + rows(30, text2+
		";%[1]d.03.2024;%[1]d,5;%[2]s"), "text=text", "classification label=kind", "  "},
	{"parses of a pair", "a.tsv", "sentence1_parse\tsentence2_parse\tsentence1\tsentence2\tgold\n" + rows(30,
		"(R "+text2+" p)\t(R p "+text2+")\t"+text2+"\tso it %[1]d is\t%[2]s"), "text=sentence1 pair=sentence2",
		"classification label=gold", "  "},
	{"numbers before words", "a.conll", rows(30, "1\titem\tO\tO\n2\tn%[1]d\tB-%[2]s\tO\n"), "words=2",
		"ner tags=3", "  "},
	{"tags before words", "a.bio", rows(30, "O\titem\nB-%[2]s\tn%[1]d\n"), "words=2", "ner tags=1", "conll  "},
	{"GermEval", "a.tsv", rows(30, "#\thttp://a.b/%[1]d\n1\titem\tO\tO\n2\tn%[1]d\tB-%[2]s\tO\n"), "words=2",
		"ner tags=3", "conll  "},
	{"words and tags in a csv", "a.csv", rows(30, "item,O\nn%[1]d,B-%[2]s\n"), "words=words",
		"ner tags=tags", "conll  "},
	{"a word a row without one tag", "a.csv", "sentence_id,word,tag\n" + rows(60, "%[1]d,item,O\n"+
		"%[1]d,n%[1]d,B-%[2]s") +
		"61,so,\n61,Ada,B-red\n", "words=word", "ner tags=tag", "  "},
	{"lists of Python without one tag", "a.csv", "tokens,tags\n" + rows(30,
		`"['so', 'is', '%[1]d']","['O', 'O', 'B-%[2]s']"`) + `"['so', 'is', 'it']","['O', None, 'B-red']"` + "\n",
		"words=tokens", "ner tags=tags", "  "},
	{"a list without one tag", "a.jsonl", rows(30, `{"tokens": ["so", "%[1]d"], "tags": ["O", "B-%[2]s"]}`) +
		`{"tokens": ["so", "it", "is"], "tags": ["O", null, ""]}` + "\n", "words=tokens", "ner tags=tags", "  "},
	{"jenga's own predictions of spans", "a.csv", "entities,text,words,tags\n" + rows(30, `,Ada saw item %[1]d,`+
		`"[""Ada"",""saw"",""item"",""%[1]d""]","[""B-%[2]s"",""O"",""O"",""O""]"`), "words=words text=",
		"ner tags=tags", "  "},
	{"CoNLL-U by another name", "a.txt", rows(30, "# sent_id = %[1]d\n# text = so it is\n1\tso\tso\tADV\tRB\t_\t3\t"+
		"advmod\t_\t_\n2-3\tit's\t_\t_\t_\t_\t_\t_\t_\t_\n2\tit\tit\tPRON\tPRP\t_\t3\tnsubj\t_\t_\n"+
		"3\tis\tbe\tVERB\tVBZ\t_\t0\troot\t_\tSpaceAfter=No\n"), "words=words", "tagging tags=tags", "conllu  "},
	{"CoNLL-U without comments", "a.conll", rows(30, "1\tso\tso\tADV\tRB\t_\t2\tadvmod\t_\t_\n"+
		"2\tis%[1]d\tbe\tVERB\tVBZ\t_\t0\troot\t_\tSpaceAfter=No\n"), "words=words", "tagging tags=tags", "conllu  "},
	{"CoNLL-U below a byte-order mark", "a.txt", "\ufeff" + rows(30, "# sent_id = %[1]d\n1\tso\tso\tADV\tRB\t_\t2\t"+
		"advmod\t_\t_\n2\tis%[1]d\tbe\tVERB\tVBZ\t_\t0\troot\t_\t_\n"), "words=words", "tagging tags=tags", "conllu  "},
	{"a table of ten columns with X and _", "a.tsv", rows(15, "%[1]d\t"+text2+"\t%[2]s\tX\t_\t_\t_\t_\t_\t_") +
		rows(15, "%[1]d\tso "+text2+"\t%[2]s\t_\t_\t_\t_\t_\t_\t_"), "text=text",
		"classification label=label; classification label=label_3", "  "},
	{"a table of ten columns with X and letters", "a.tsv", rows(30, "%[1]d\t"+text2+"\t%[2]s\tX"+
		strings.Repeat("\t%[2]s", 6)), "text=text", "classification label=label", "  "},
	{"CoNLL-X", "a.conll", rows(30, "1\tso\tso\tAdv\tAdv\t_\t2\tadv\t_\t_\n2\tis%[1]d\tbe\tV\tV\t_\t0\troot\t_\t_\n"),
		"words=2", "tagging tags=8", "  "},
	{"answers with offsets in bytes", "a.jsonl", rows(30, `{"question": "what is it?", "context": "é `+text2+`", `+
		`"answers": {"text": ["this"], "answer_start": [3]}}`), "question=question context=context",
		"question_answering answers=answers", "  bytes"},
	{"a review of annotations", "a.csv", "text,label,review_status\n" + rows(30, text2+",%[2]s,approved") +
		rows(9, "so "+text2+",%[2]s,rejected") + rows(9, "it "+text2+",%[2]s,needs review"), "text=text",
		"classification label=label", "  "},
	{"Prodigy's answers to one label, of which some are none", "a.jsonl", rows(30, `{"text": "`+text2+`", `+
		`"label": "x", "answer": "accept"}`) + rows(30, `{"text": "so `+text2+`", "label": "x", "answer": "reject"}`) +
		rows(9, `{"text": "it `+text2+`", "label": "x", "answer": "ignore"}`), "text=text",
		"classification label=answer", "  "},
	{"comments with %", "a.conll", rows(30, "%% sentence %[1]d\nitem\tO\nn%[1]d\tB-%[2]s\n"), "words=words",
		"ner tags=tags", "  "},
	{"comments with //", "a.bio", rows(30, "// sentence %[1]d\nitem O\nn%[1]d B-%[2]s\n"), "words=words",
		"ner tags=tags", "conll  "},
	{"UTF-16 without a mark", "a.csv", utf16le("text,label\n" + rows(30, text2+" größer,%[2]s")), "text=text",
		"classification label=label", "  "},
	{"a NUL in a text", "a.csv", "text,label\n" + rows(30, text2+",%[2]s") + "one \x00 more,red\n", "text=text",
		"classification label=label", "  "},
	{"Excel's delimiter", "a.csv", "sep=;\r\ntext;label\r\n" + rows(30, text2+";%[2]s"), "text=text",
		"classification label=label", "  "},
	{"spaCy's training data", "a.json", "[" + strings.TrimSuffix(rows(30, `["`+text2+`", {"entities": `+
		`[[0, 4, "%[2]s"]]}],`), ",\n") + "]", "text=0", "ner entities=1.entities", "  "},
	{"spaCy's training data in lines", "a.jsonl", rows(30, `["`+text2+`", {"entities": [[0, 4, "%[2]s"]]}]`), "text=0",
		"ner entities=1.entities", "  "},
	{"lists as records under a key", "a.json", `{"classes": ["red"], "annotations": [` + strings.TrimSuffix(rows(30,
		`["`+text2+`", {"entities": [[0, 4, "%[2]s"]]}],`), ",\n") + "]}", "text=0", "ner entities=1.entities",
		" annotations "},
	{"splits of lists", "a.json", `{"val": [["so it is", "red"]], "train": [` + strings.TrimSuffix(rows(30, `["`+text2+
		`", "%[2]s"],`), ",\n") + "]}", "text=0", "classification label=1", " train "},
	{"a schema before the records", "a.json", `{"schema": {"fields": [{"name": "index"}]}, "data": [` +
		strings.TrimSuffix(rows(30, `{"text": "`+text2+`", "label": "%[2]s"},`), ",\n") + "]}", "text=text",
		"classification label=label", " data "},
	{"columns of lists", "a.json", `{"tokens": [` + strings.TrimSuffix(strings.Repeat(`["this", "is"], ["it"],`, 9),
		",") + `], "ner_tags": [` + strings.TrimSuffix(strings.Repeat(`["O", "B-X"], ["O"],`, 9), ",") + "]}",
		"words=tokens",
		"ner tags=ner_tags", "columns  "},
	{"Label Studio in lines", "a.jsonl", rows(30, `{"id": %[1]d, "data": {"text": "`+text2+`"}, "annotations": `+
		`[{"result": [{"from_name": "mood", "type": "choices", "value": {"choices": ["%[2]s"]}}]}]}`), "text=text",
		"classification label=mood", "label_studio  "},
	{"one label or several", "a.json", "[" + rows(30, `{"text": "`+text2+`", "topic": "%[2]s"}, {"text": "so `+text2+
		`", "topic": ["%[2]s", "big"]},`) + `{"text": "it is so", "topic": "red"}]`, "text=text",
		"multi_label labels=topic", "  "},
	{"labels with bars between", "a.csv", "text,genres\n" + rows(30, text2+",%[2]s|big") + rows(30, "so "+
		text2+",%[2]s"), "text=text", "multi_label labels=genres", "  "},
	{"several labels of doccano in CSV", "a.csv", "id,text,label\n" + rows(30, "%[1]d,"+text2+",%[2]s#big") + rows(30,
		"%[1]d,so "+text2+",%[2]s"), "text=text", "multi_label labels=label", "  "},
	{"labels with semicolons between", "a.csv", "text,labels\n" + rows(30, text2+",%[2]s; big") + rows(30, "so "+text2+
		",%[2]s"), "text=text", "multi_label labels=labels", "  "},
	{"C# is a label", "a.csv", "text,label\n" + rows(30, text2+",C#") + rows(30, "so "+text2+",C"),
		"text=text", "classification label=label", "  "},
	{"numbers of sentences and words are no tags", "a.csv", "doc_id,sent_id,token,label\n" + rows(30, "%[1]d,0,item,"+
		"O\n%[1]d,1,n%[1]d,B-%[2]s"), "words=token", "ner tags=label", "  "},
	{"splits of other names", "a.csv", "text,label,Usage\n" + rows(30, text2+",%[2]s,Training") + rows(9, "so "+text2+
		",%[2]s,PublicTest"), "text=text", "classification label=label", "  "},
	{"marks of records", "a.csv", "text,label,status,is_valid\n" + rows(30, text2+",%[2]s,approved,True") + rows(9,
		"so "+text2+",%[2]s,rejected,False"), "text=text",
		"classification label=label; classification label=status", "  "},
	{"MISC", "a.conllu", rows(30, "1\titem\t_\tNOUN\t_\t_\t2\tx\t_\tNER=O\n2\t%[1]d\t_\tNUM\t_\t_\t0\tx\t_\t"+
		"NER=B-%[2]s|X=1\n"), "words=words", "tagging tags=tags; ner tags=misc.NER", "  "},
}

func utf16le(text string) string {
	var b strings.Builder
	for _, unit := range utf16.Encode([]rune(text)) {
		b.Write([]byte{byte(unit), byte(unit >> 8)})
	}
	return b.String()
}

func TestFormsOfTools(t *testing.T) {
	for _, test := range forms {
		t.Run(test.name, func(t *testing.T) {
			if of, is := strings.CutPrefix(test.text, "CASE "); is {
				text, err := os.ReadFile(filepath.Join(shared.Dir(t), "cases", filepath.FromSlash(of)))
				if err != nil {
					t.Fatal(err)
				}
				test.text = string(text)
			}
			checkForm(t, test.file, map[string]string{test.file: test.text}, test.fields, test.tasks, test.format)
		})
	}
	t.Run("brat", func(t *testing.T) {
		checkForm(t, "notes", map[string]string{"notes/1.txt": "Ada ran to Rome", "notes/1.ann": "T1\tPER 0 3\tAda\n",
			"notes/2.txt": "It rains and rains", "notes/2.ann": ""}, "text=text", "ner entities=entities", "  ")
	})
}

// numbered returns n values of a column of pandas, each the same format of its number and one of two colours.
func numbered(n int, format string) string {
	var all []string
	for i := range n {
		text := strings.NewReplacer("%[1]d", fmt.Sprint(i), "%[2]s", []string{"red", "blue"}[i%2]).Replace(format)
		all = append(all, fmt.Sprintf("%q: %q", fmt.Sprint(i), text))
	}
	return strings.Join(all, ", ")
}

func checkForm(t *testing.T, path string, files map[string]string, fields, tasks, format string) {
	t.Helper()
	write(t, files)
	e, err := Files(t.Context(), []string{path})
	if err != nil {
		t.Fatal(err)
	}
	s := e.Sets[0]
	var all []string
	for _, f := range s.Fields {
		all = append(all, f.Name+"="+f.column.name)
	}
	if got := strings.Join(all, " "); got != fields {
		t.Errorf("fields %q, want %q", got, fields)
	}
	if got := tasksOf(s); got != tasks {
		t.Errorf("tasks %q, want %q", got, tasks)
	}
	got := fmt.Sprintf("%s %s %s", s.Format.Type, s.Format.Records, s.Format.Offsets)
	if s.Format.Where != nil {
		got += fmt.Sprint(" ", s.Format.Where)
	}
	if got != format {
		t.Errorf("format %q, want %q", got, format)
	}

	text, err := e.YAML(".", nil)
	if err == nil {
		err = os.WriteFile("experiment.yaml", text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	read, err := config.Read(t.Context(), "experiment.yaml", nil)
	if err == nil {
		_, err = dataset.Load(t.Context(), read, dataset.Options{}, config.Train, config.Dev)
	}
	if err != nil {
		t.Errorf("the experiment does not load: %v\n%s", err, text)
	}
}

// A column with one of our names that names the splits is no text.
func TestSplitsInAColumnWithOurName(t *testing.T) {
	for _, name := range []string{"text", "pair", "words", "question", "context", "label", "tags"} {
		table, questions := "body,team,"+name+"\n", ""
		for i := range 40 {
			split := []string{"train", "dev"}[i%2]
			table += fmt.Sprintf("%s,%s,%s\n", fmt.Sprintf(text, i), []string{"red", "blue"}[i/2%2], split)
			questions += fmt.Sprintf(`{"question": "who is number %[1]d?", "context": "Ada is number %[1]d of all", `+
				`"answers": {"text": ["Ada"], "answer_start": [0]}, %[2]q: %[3]q}`+"\n", i, name, split)
		}
		fields := "text=body"
		if name == "pair" || name == "words" {
			fields += " " + name + "="
		}
		t.Run(name, func(t *testing.T) {
			checkForm(t, "a.csv", map[string]string{"a.csv": table}, fields, "classification label=team", "  ")
		})
		if name == "question" || name == "context" {
			continue
		}
		fields = "question=question context=context"
		if name == "text" || name == "pair" || name == "words" {
			fields += " " + name + "="
		}
		t.Run(name+" beside questions", func(t *testing.T) {
			checkForm(t, "a.jsonl", map[string]string{"a.jsonl": questions}, fields,
				"question_answering answers=answers", "  ")
		})
	}
}

// What a file has besides what is read stands in a comment.
func TestNotes(t *testing.T) {
	object := `{"text": "` + text2 + `", "label": "%[2]s"},`
	list := func(row string) string { return "[" + strings.TrimSuffix(rows(30, row), ",\n") + "]" }
	for _, test := range []struct {
		name, text, want string
		doubt            bool
	}{
		{"lists beside train", `{"val": ` + list(`["`+text2+`", "%[2]s"],`) + `, "train": ` + list(`["`+text2+
			`", "%[2]s"],`) + `, "test": ` + list(`["`+text2+`", "%[2]s"],`) + "}",
			"not read are val, test, lists beside it: where", true},
		{"lists of objects beside train", `{"d": {"train": ` + list(object) + `, "dev": ` + list(object) + "}}",
			"not read is dev, a list beside it: where", true},
		{"labels beside the records", `{"data": ` + list(object) + `, "labels": [{"id": 0, "name": "red"}]}`,
			"not read is labels, a list beside it", false},
		{"labels and dev beside train", `{"train": ` + list(object) + `, "classes": [{"id": 0}], "dev": ` +
			list(object) + "}", "not read is dev, a list beside it: where", true},
		{"lists of Rasa", `{"rasa_nlu_data": {"common_examples": ` + list(object) + `, "regex_features": [{"name": ` +
			`"a"}], "entity_synonyms": [{"value": "b"}]}}`,
			"not read are regex_features, entity_synonyms, lists beside it", false},
		{"texts by label", `{"billing": [` + strings.TrimSuffix(rows(30, `"`+text2+`",`), ",\n") + `], "support": [` +
			strings.TrimSuffix(rows(30, `"so `+text2+`",`), ",\n") + "]}",
			"the keys billing, support may be labels", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			write(t, map[string]string{"a.json": test.text})
			e, err := Files(t.Context(), []string{"a.json"})
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(e.Sets[0].Notes, "\n"); !strings.Contains(notes, test.want) {
				t.Errorf("notes %s, want %s", notes, test.want)
			}
			if doubts := e.Sets[0].Doubts; len(doubts) > 0 != test.doubt {
				t.Errorf("doubts %q, want some: %v", doubts, test.doubt)
			}
		})
	}
}
