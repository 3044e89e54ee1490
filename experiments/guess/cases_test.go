package guess

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

const (
	text  = "this is text number %d"
	text2 = "this is text number %[1]d"
)

// guesses are files of 30 records or so, and what they are guessed to be.
var guesses = []struct {
	name, file, text string
	fields, tasks    string
	format           string // "TYPE DELIMITER QUOTE ENCODING", and the columns of a file without a header
}{
	{"a label of a csv", "a.csv", "body,team\n" + rows(30, `"`+text+`, with a comma",%s`),
		"text=body", "classification label=team", "   "},
	{"blanks around quotes", "a.csv", "body, team\n" + rows(30, "\""+text+", with a comma\" , \"%s\""),
		"text=body", "classification label= team", "   "},
	{"semicolons", "a.csv", "body;team\n" + rows(30, text+", and more;%s"),
		"text=body", "classification label=team", " ;  "},
	{"no header, tabs in a csv", "a.csv", rows(30, text+"\t%s"),
		"text=text", "classification label=label", "tsv    [text label]"},
	{"rows with more columns than others", "a.tsv", rows(30, text+` "quoted"`+"\t%s") + "one more\tred\tlicence\n",
		"text=text", "classification label=label", "  none  [text label]"},
	{"quotes that are characters", "a.tsv", "text\tlabel\n" + rows(30, text+` said "so" and`+"\t%s"),
		"text=text", "classification label=label", "  none "},
	{"quotes that open in one row and close in another", "a.tsv",
		"text\tlabel\n" + rows(12, `"`+text+"\t%s") + rows(12, text+` so"`+"\t%s") + rows(12, text+"\t%s"),
		"text=text", "classification label=label", "  none "},
	{"labels that are words of splits", "a.csv", "text,label\n" + rows(30, text2+",train") +
		rows(30, "so "+text2+",test"), "text=text", "classification label=label", "   "},
	{"such labels beside a split", "a.csv", "text,label,split\n" + rows(30, text2+",train,train") +
		rows(30, "so "+text2+",test,test"), "text=text", "classification label=label", "   "},
	{"files that were joined with their headers", "a.csv", "\ufefftext,label\n" + rows(30, text2+",%[2]s") +
		"\ufefftext,label\n" + rows(30, "so "+text2+",%[2]s"), "text=text", "classification label=label", "   "},
	{"an index column and dates are no labels", "a.csv",
		",text,label,created_at,customer_id\n" + rows(30, "%[1]d,"+text2+",%[2]s,2024,%[1]d"),
		"text=text", "classification label=label", "   "},
	{"an encoding of Windows", "a.csv", "text,label\n" + rows(30, text+" caf\xe9,%s"),
		"text=text", "classification label=label", "   cp1252"},
	{"a label and a text on a line", "a.txt", rows(30, "%[2]s "+text2),
		"text=text", "classification label=label", "csv    [label text]"},
	{"lines that end in CR CR LF", "a.csv", strings.ReplaceAll("text,label\n"+rows(30, text2+",%[2]s"), "\n", "\r\r\n"),
		"text=text", "classification label=label", "   "},
	{"words on such lines", "a.txt", strings.ReplaceAll(rows(30, "this\tO\n%[1]d\tB-%[2]s\n"), "\n", "\r\r\n"),
		"words=words", "ner tags=tags", "conll   "},
	{"two texts by their names", "a.jsonl",
		rows(30, `{"sentence2": "`+text2+`", "sentence1": "another one of %[1]d", "gold": "%[2]s"}`),
		"text=sentence1 pair=sentence2", "classification label=gold", "   "},
	{"a number of a pair", "a.tsv",
		"text_a\ttext_b\tscore\n" + rows(30, text2+"\tthe other text %[1]d\t%[1]d.5"),
		"text=text_a pair=text_b", "similarity value=score", "   "},
	{"a number of a text, and a label", "a.csv", "text,price,kind\n" + rows(30, text2+",%[1]d.25,%[2]s"),
		"text=text", "regression value=price; classification label=kind", "   "},
	{"several labels in a cell", "a.csv", "text;topics\n" + rows(30, text2+";%[2]s,big") + rows(6, text2+";%[2]s"),
		"text=text", "multi_label labels=topics", " ;  "},
	{"several labels in a cell with a comma too many", "a.csv", "text;topics\n" + rows(30, text2+";%[2]s,big") +
		rows(6, text2+";%[2]s") + text2 + ";red,,big,\n", "text=text", "multi_label labels=topics", " ;  "},
	{"a bar after each label", "a.csv", "text,topics\n" + rows(30, text2+",%[2]s|big|") + rows(6, text2+",%[2]s|"),
		"text=text", "multi_label labels=topics", "   "},
	{"a comma after single labels", "a.csv", "text;topics\n" + rows(30, text2+";%[2]s") + rows(6, text2+";%[2]s,"),
		"text=text", "classification label=topics", " ;  "},
	{"words with # before each", "a.csv", "text,topics\n" + rows(30, text2+",#%[2]s #big") + rows(6, text2+",#%[2]s"),
		"text=text", "classification label=topics", "   "},
	{"several labels in a list", "a.json",
		"[" + strings.TrimSuffix(rows(30, `{"text": "`+text2+`", "labels": ["%[2]s", "big"]},`), ",\n") + "]",
		"text=text", "multi_label labels=labels", "   "},
	{"entities at offsets", "a.jsonl",
		rows(30, `{"text": "`+text2+`", "entities": [{"start": 0, "end": 4, "label": "%[2]s"}]}`),
		"text=text", "ner entities=entities", "   "},
	{"entities, and once an object", "a.jsonl", rows(30, `{"text": "`+text2+
		`", "entities": [{"start": 0, "end": 4, "label": "%[2]s"}]}`) + `{"text": "so it is", "entities": {}}`,
		"text=text", "ner entities=entities", "   "},
	{"entities, and once a text", "a.jsonl", rows(30, `{"text": "`+text2+
		`", "entities": [{"start": 0, "end": 4, "label": "%[2]s"}]}`) + `{"text": "so it is", "entities": "so"}`,
		"text=text", "ner entities=entities", "   "},
	{"texts, and once entities", "a.jsonl", rows(9, `{"text": "`+text2+`", "x": "%[1]d", "label": "%[2]s"}`) +
		`{"text": "so it is", "x": [{"start": 0, "end": 2, "label": "so"}], "label": "red"}`,
		"text=text", "classification label=label", "   "},
	{"objects, and once an empty list", "a.jsonl", rows(9, `{"text": "`+text2+
		`", "entities": {"start": [0], "end": [4], "label": ["%[2]s"]}}`) + `{"text": "so it is", "entities": []}`,
		"text=text", "ner entities=entities", "   "},
	{"tags in lists", "a.jsonl",
		rows(30, `{"tokens": ["item", "%[1]d"], "ner_tags": ["O", "B-%[2]s"], "id": %[1]d}`),
		"words=tokens", "ner tags=ner_tags", "   "},
	{"a word a row", "a.csv", "Sentence #,Word,POS,Tag\n" + rows(30, "S%[1]d,item,DET,O\n,n%[1]d,NUM,B-%[2]s"),
		"words=Word", "tagging tags=POS; ner tags=Tag", "   "},
	{"a word a row, of sentences S-1, S-2 and so on", "a.csv", "sentence_id,word,tag\n" +
		rows(30, "S-%[1]d,item,O\nS-%[1]d,n%[1]d,B-%[2]s"), "words=word", "ner tags=tag", "   "},
	{"a word a row, each with the sentence", "a.jsonl",
		rows(30, `{"id": %[1]d, "token": "item", "tag": "O"}`+"\n"+`{"id": %[1]d, "token": "n%[1]d", "tag": `+
			`"B-%[2]s"}`),
		"words=token", "ner tags=tag", "   "},
	{"a word a row without a header", "a.tsv", rows(30, "%[1]d\titem\tO\n%[1]d\tn%[1]d\tB-%[2]s"),
		"words=words", "ner tags=tags", "    [sentence words tags]"},
	{"lists of 0 and 1 are no labels", "a.jsonl", rows(30, `{"text": "`+text2+`", "labels": [1.0, 0.0], "x": `+
		`"%[2]s"}`) +
		rows(30, `{"text": "so `+text2+`", "labels": [0.0, 1.0], "x": "%[2]s"}`),
		"text=text", "classification label=x", "   "},
	{"a list of tags of another length", "a.jsonl",
		rows(30, `{"tokens": ["item", "n", "%[1]d"], "ner_tags": ["O", "O", "B-%[2]s"], "pos": [1, 2, 3]}`) +
			`{"tokens": ["item", "n"], "ner_tags": ["O"], "pos": [1, 2, 3]}`,
		"words=tokens", "ner tags=ner_tags; tagging tags=pos", "   "},
	{"no tags, and tags in a text", "a.jsonl", rows(9, `{"tokens": ["item", "%[1]d"], "ner_tags": ["O", "B-%[2]s"]}`) +
		`{"tokens": ["item", "n"], "ner_tags": []}` + "\n" + `{"tokens": ["item", "n"], "ner_tags": "O B-red"}`,
		"words=tokens", "ner tags=ner_tags", "   "},
	{"labels that are sometimes as many as words", "a.jsonl",
		rows(30, `{"tokens": ["item", "%[1]d"], "topics": ["a", "%[2]s"]}`) +
			rows(9, `{"tokens": ["item", "%[1]d"], "topics": ["a", "b", "%[2]s"]}`),
		"words=tokens", "multi_label labels=topics", "   "},
	{"tags with blanks between, once too few", "a.csv", "tokens,slots,pos\n" +
		rows(30, "this is text %[1]d,O O O B-%[2]s,D V N C") + "this is one,O O,D V\n",
		"words=tokens", "ner tags=slots; tagging tags=pos", "   "},
	{"words and tags on lines", "a.conll", rows(30, "item O\n%[1]d B-%[2]s\n"),
		"words=words", "ner tags=tags", "   "},
	{"a slip among tags of spans", "a.conll", rows(30, "item O\n%[1]d B-%[2]s\n") + "item 0\n",
		"words=words", "ner tags=tags", "   "},
	{"tags with a slip before words", "a.bio", "RED n\n" + rows(30, "O item\nB-%[2]s n%[1]d\n"),
		"words=2", "ner tags=1", "conll   "},
	{"tags of spans and as many others", "a.conll", rows(30, "item DET\n%[1]d B-%[2]s\nso O\n"),
		"words=words", "tagging tags=tags", "   "},
	{"few tags of spans among others", "a.conll", rows(90, "item O\n%[1]d O\nso O\n") +
		rows(3, "item ERR\n%[1]d B-x\n"), "words=words", "tagging tags=tags", "   "},
	{"the same with another extension", "a.bio", rows(30, "item DET\n%[1]d %[2]s\n"),
		"words=words", "tagging tags=tags", "conll   "},
	{"conllu", "a.conllu", rows(30, "1\titem\t_\tNOUN\t_\t_\t2\tx\t_\t_\n2\t%[1]d\t_\tNUM\t_\t_\t0\t%[2]s\t_\t_\n"),
		"words=words", "tagging tags=tags", "   "},
	{"SQuAD", "a.json", `{"data": [{"title": "A", "paragraphs": [{"context": "It is red.", "qas": [` +
		`{"id": "1", "question": "What?", "answers": [{"text": "red", "answer_start": 6}]},` +
		`{"id": "2", "question": "When?", "answers": [], "is_impossible": true}]}]}]}`,
		"question=question context=context", "question_answering answers=answers", "   "},
	{"answers that begin one character later", "a.jsonl", rows(30, `{"question": "what is %[1]d?", "context": "`+text2+
		`", "answers": {"text": ["this"], "answer_start": [1]}}`), "question=question context=context",
		"question_answering answers=answers", "   "},
	{"answers that are nowhere in their contexts", "a.jsonl", rows(30, `{"question": "what is %[1]d?", "context": "`+
		text2+`", "answers": {"text": ["zzz"], "answer_start": [3]}}`), "text=question pair=context", "mlm", "   "},
	{"yes or no is no extracted answer", "a.jsonl",
		rows(30, `{"question": "is it %[1]d", "passage": "`+text2+`", "answer": true, "x": "%[2]s"}`) +
			rows(9, `{"question": "was it %[1]d", "passage": "`+text2+`", "answer": false, "x": "%[2]s"}`),
		"text=question pair=passage", "classification label=answer; classification label=x", "   "},
	{"texts alone", "a.txt", rows(30, "this is text number %d %s"), "text=text", "mlm", "tsv  none  [text]"},
	{"compressed", "a.csv.gz", "text,label\n" + rows(30, text2+",%[2]s"),
		"text=text", "classification label=label", "   "},
	{"a text that is called pair otherwise", "a.csv", "text,pair,label\n" + rows(30, text2+",x,%[2]s"),
		"text=text pair=", "classification label=label", "   "},
}

func fieldsOf(s *Set) string {
	var fields []string
	for _, f := range s.Fields {
		fields = append(fields, f.Name+"="+f.column.name)
	}
	return strings.Join(fields, " ")
}

func TestGuesses(t *testing.T) {
	for _, test := range guesses {
		t.Run(test.name, func(t *testing.T) {
			write(t, map[string]string{test.file: test.text})
			e, err := Files(t.Context(), []string{test.file})
			if err != nil {
				t.Fatal(err)
			}
			s := e.Sets[0]
			if got := fieldsOf(s); got != test.fields {
				t.Errorf("fields %q, want %q", got, test.fields)
			}
			if got := tasksOf(s); got != test.tasks {
				t.Errorf("tasks %q, want %q", got, test.tasks)
			}
			f := s.Format
			got := fmt.Sprintf("%s %s %s %s", f.Type, strings.Trim(f.Delimiter, " "), f.Quote, f.Encoding)
			if f.NoHeader {
				got += fmt.Sprint(" ", f.Columns)
			}
			if got != test.format {
				t.Errorf("format %q, want %q", got, test.format)
			}
		})
	}
}

func TestSharedCases(t *testing.T) {
	cases := filepath.Join(shared.Dir(t), "cases")
	for _, test := range []struct{ file, fields, tasks, note string }{
		{"word-a-row/st.csv", "words=words", "ner tags=labels", "sentence: a row is a word: those with the same " +
			"sentence_id"},
		{"one-hot/two.jsonl", "text=text", "mlm", "labels is left out: lists of 0 and 1"},
	} {
		e, err := Files(t.Context(), []string{filepath.Join(cases, test.file)})
		if err != nil {
			t.Errorf("%s: %v", test.file, err)
			continue
		}
		s := e.Sets[0]
		if got := fieldsOf(s); got != test.fields || tasksOf(s) != test.tasks {
			t.Errorf("%s: %s, %s; want %s, %s", test.file, got, tasksOf(s), test.fields, test.tasks)
		}
		if notes := strings.Join(s.Notes, "\n"); !strings.Contains(notes, test.note) {
			t.Errorf("%s: notes %s, want %s", test.file, notes, test.note)
		}
	}
}
