package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/plugin"
)

// rowsOf makes 24 rows of a format with a number and one of two words.
func rowsOf(format string) string {
	var b strings.Builder
	for i := range 24 {
		fmt.Fprintf(&b, format+"\n", i, []string{"red", "blue"}[i%2])
	}
	return b.String()
}

// degenerates are files that can be read, but not as they are meant: the warning, or the error, and its remedy as a key
// of data, with which there is neither; "": the remedy is another column.
var degenerates = []struct {
	name, task, file, text string
	want, remedy           string
}{
	{"texts of one word", "type: classification", "a.csv", "text,label\n" + rowsOf("word%d,%s"),
		`all 24 training texts of a.csv are one word; data: {text: FIELD} names the field of the text`, ""},
	{"words of sentences as texts", "type: classification", "a.csv", "nr,text,label\n" + rowsOf("1,a%d,%s") +
		rowsOf("2,b%d,%s"), `all 48 training texts of a.csv are one word; if a row is a word, data: {sentence: nr} ` +
		`joins those with ` +
		`the same "nr"; else data: {text: FIELD} names the field of the text`, ""},
	{"words of sentences with a tag", "type: ner", "a.csv", "nr,words,tags\n" + rowsOf("1,a%d,B-%s") +
		rowsOf("2,b%d,B-%s"),
		`all 48 training texts of a.csv are one word: a row is a word, and its field "nr" says which rows are a ` +
			`sentence; want data: ` +
			`{sentence: nr}`, "sentence: nr"},
	{"of JSON lines, in the first row alone", "type: tagging", "a.jsonl",
		rowsOf(`{"sent. no": "S%[1]d", "words": "a%[1]d", ` +
			`"tags": "%[2]s"}` + "\n" + `{"words": "b", "tags": "%[2]s"}`),
		`all 48 training texts of a.jsonl are one word: a row is a word, and its field "sent. no" says which rows ` +
			`are a sentence; ` +
			`want data: {sentence: "sent. no"}`, `sentence: "sent. no"`},
	{"words without a sentence", "type: ner", "a.tsv", "words\ttags\n" + rowsOf("a%d\tB-%s"),
		`all 24 training texts of a.tsv are one word: a tag is learned without the words around it; data: ` +
			`{sentence: FIELD} joins ` +
			`the rows of a sentence`, ""},
	{"a number of rows as the sentence", "type: ner", "a.csv", "nr,words,tags\n" + rowsOf("%d,a,B-%s"),
		`all 24 training texts of a.csv are one word: sentence: nr has another value in each row; want a field ` +
			`that the rows of a ` +
			`sentence have in common`, ""},
	{"one label", "type: multi_label", "a.csv", "text,label\n" + rowsOf("this is %d %s,\"a,b\""),
		`head "x": all 24 labelled texts have the same labels, "a", "b": nothing can be learned from them; data: ` +
			`{labels: ` +
			`FIELD} names the field of the labels`, ""},
	{"lists of two flags", "type: multi_label", "a.jsonl", rowsOf(`{"text": "this is %d %s", "labels": [1, 0]}`),
		`head "x": all 24 labelled texts have the same labels, "0", "1": nothing can be learned from them; lists ` +
			`of 0 and 1 ` +
			`for each label are written as {HEAD: [1, 0]}; else data: {labels: FIELD} names the field of the labels`,
		""},
	{"labels that are texts", "type: classification", "a.csv", "text,label,team\n" +
		rowsOf("this is %[1]d,it %[1]d,%[2]s"),
		`head "x": 24 different labels in 24 training texts, 24 of them once, as "it 0", "it 1", "it 10": what ` +
			`occurs once is not ` +
			`learned; data: {label: FIELD} names the field of the labels, and type: regression learns numbers`,
		"label: team"},
	{"numbers as labels", "type: classification", "a.csv", "text,label\n" + rowsOf("this is %d %[1]d%[2]s,%[1]d.5"),
		`head "x": 24 different labels in 24 training texts, 24 of them once, as "0.5", "1.5", "2.5"`, ""},
	{"numbers of words as words", "type: ner", "a.conll", rowsOf("1\titem\tO\n2\tn%d\tB-%s\n"),
		`the words of all 24 training texts are numbers, or tags; data: {words: FIELD, tags: FIELD} names the ` +
			`columns of the words and their tags, as "2" for the second`, `words: "2"`},
	{"tags as words", "type: tagging", "a.conll", rowsOf("O\titem\nB-%[2]s\tn%[1]d\n"),
		"the words of all 24 training texts are numbers, or tags", `words: "2", tags: "1"`},
	{"tags as words of a table", "type: tagging", "a.csv", "tags,words\n" + rowsOf("O B-%[2]s,this %[1]d"),
		"the words of all 24 training texts are numbers, or tags", ""},
	{"tags as one label", "type: classification", "a.csv", "text,label\n" + rowsOf("item n%d,O B-%s"),
		`head "x": labels are tags of words, as "O B-blue": type: ner with data: {words: FIELD, tags: FIELD} learns ` +
			`them`, ""},
	{"a constant number", "type: regression", "a.csv", "text,value,size\n" + rowsOf("this is %[1]d %[2]s,5,%[1]d"),
		`head "x": all 24 training numbers are 5: a constant is learned; data: {value: FIELD} names the field of ` +
			`the number`,
		"value: size"},
}

func TestDegenerateReadingsAreToldOnce(t *testing.T) {
	for _, test := range degenerates {
		for _, stream := range []string{"", ", stream: true"} {
			t.Run(test.name+stream, func(t *testing.T) {
				key := ""
				if test.name == "tags as words of a table" {
					key = ", words: tags, tags: words"
				}
				if strings.HasPrefix(test.want, "all 24 training texts of a.csv are one word: sentence") {
					key = ", sentence: nr"
				}
				t.Setenv("XDG_CACHE_HOME", t.TempDir())
				got := told(t, test.task, test.file+key+stream, test.file, test.text)
				matches := slices.DeleteFunc(slices.Clone(got), func(line string) bool {
					return !strings.Contains(line,
						test.want)
				})
				if len(matches) != 1 {
					t.Errorf("told\n%s\nwant once\n%s", strings.Join(got, "\n"), test.want)
				}
				if test.remedy == "" {
					return
				}
				for _, line := range told(t, test.task, test.file+", "+test.remedy+stream, test.file, test.text) {
					if !strings.Contains(line, "has no dev file") && !strings.Contains(line, "in train too") {
						t.Errorf("with %s: %s", test.remedy, line)
					}
				}
			})
		}
	}
}

// told returns the errors and warnings of a task that reads a file.
func told(t *testing.T, task, data, file, text string) []string {
	t.Helper()
	loaded, err := load(t, fmt.Sprintf("  - {name: x, %s, data: {train: %s, split: {dev: 0}}}\n", task, data),
		map[string]string{file: text})
	if err != nil {
		return strings.Split(err.Error(), "\n")
	}
	return plugin.Lines(loaded.Warnings)
}

// Each of these is as it should be.
func TestGoodReadingsAreNotCalledDegenerate(t *testing.T) {
	for name, test := range map[string]struct{ task, file, text string }{
		"Chinese has no blanks": {"type: classification", "a.csv", "text,label\n" + rowsOf("这是第%d个,%s")},
		"a few words":           {"type: classification", "a.csv", "text,label\nso,good\nno,bad\n"},
		"a label of most texts": {"type: classification", "a.csv", "text,label\n" + rowsOf("this is %d %s,a") +
			"it is,b\n"},
		"labels that are numbers": {"type: classification", "a.csv", "text,label\n" + rowsOf("this is %d %s,1") +
			rowsOf("it is %d,2")},
		"a number": {"type: regression", "a.csv", "text,value\n" + rowsOf("this is %d %s,5") +
			"it is,6\n"},
		"normal texts":               {"type: anomaly", "a.csv", "text,label\n" + rowsOf("this is %d %s,normal")},
		"words in sentences":         {"type: ner", "a.conll", rowsOf("item O\n%d B-%s\n")},
		"the same tags in each text": {"type: ner", "a.conll", rowsOf("item O\n%d B-x\n%[2]s B-y\n")},
	} {
		for _, line := range told(t, test.task, test.file, test.file, test.text) {
			if strings.Contains(line, "one word") || strings.Contains(line, "the same label") ||
				strings.Contains(line, "different labels") || strings.Contains(line, "numbers are") {
				t.Errorf("%s: %s", name, line)
			}
		}
	}
}

func TestTheCaseOfAWordARow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(shared.Dir(t), "cases/word-a-row/st.csv"))
	if err != nil {
		t.Fatal(err)
	}
	refused := told(t, "type: ner", "st.csv, tags: labels", "st.csv", string(text))
	if len(refused) != 1 || !strings.Contains(refused[0], "want data: {sentence: sentence_id}") {
		t.Errorf("without the key: %q, want one error that names it", refused)
	}
	for _, stream := range []string{"", ", stream: true"} {
		data, err := load(t, "  - {name: x, type: ner, data: {train: st.csv, sentence: sentence_id, tags: labels, "+
			"split: {dev: 0}"+stream+"}}\n", map[string]string{"st.csv": string(text)})
		if err != nil {
			t.Fatal(err)
		}
		if n := data.Count(&data.Groups[0], 0, "train"); n.Examples != 60 || n.Labelled != 60 {
			t.Errorf("%+v%s, want 60 sentences", n, stream)
		}
		data.Close()
	}
}

func TestAFieldOfAllRowsOfASentenceDividesThem(t *testing.T) {
	text := "doc,nr,words,tags\n"
	for i := range 40 {
		text += fmt.Sprintf("D%d,%d,a,O\nD%[1]d,%[2]d,b%[2]d,B-X\n", i/4, i)
	}
	data, err := load(t, "  - {name: x, type: ner, data: {path: a.csv, sentence: nr, split: {dev: 0.2, by: doc}}}\n",
		map[string]string{"a.csv": text})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(data.Groups[0].Examples["dev"]); n != 8 {
		t.Errorf("dev has %d sentences, want those of 2 of 10 documents", n)
	}
}
