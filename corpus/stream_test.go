package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// streamed are files whose records begin in different ways.
var streamed = []struct {
	name, data string
	format     Format
}{
	{"a.jsonl", "{\"a\": 1}\n{\"a\": \"ü\"}\r\n{\"a\": [1, {\"b\": null}]}", Format{}},
	{"blank.jsonl", "\ufeff\n{\"a\": 1}\n\n \n{\"a\": 2}\n\n", Format{}},
	{"a.csv", "text,label\n\"two\nlines, \"\"quoted\"\"\",x\n\nplain,y\n", Format{}},
	{"bare.csv", "a,b\n\"c\n\",d\n", Format{NoHeader: true}},
	{"named.tsv", "a\tb\tmore\nc\td\n", Format{NoHeader: true, Columns: []string{"text", "_"}}},
	{"renamed.csv", "x,y\na,b\n\nc,d", Format{Columns: []string{"text", "label"}}},
	{"blanks.csv", "A a text\nB  another one\n",
		Format{NoHeader: true, Columns: []string{"label", "text"}, Delimiter: " "}},
	{"words.csv", "s,w,t\n1,a,O\n1,\"b\nc\",X\n\n2,d,O\n\n", Format{Sentence: "s"}},
	{"first.tsv", "1\ta\tO\n\tb\tX\n2\tc\tO\n\td\tO", Format{NoHeader: true, Sentence: "1"}},
	{"words.jsonl", "{\"s\": 1, \"w\": \"a\"}\n\n{\"s\": 1, \"w\": \"b\", \"t\": \"X\"}\n{\"s\": 2, \"w\": \"c\"}\n",
		Format{Sentence: "s"}},
	{"a.conll", "-DOCSTART- O\n\nA B-X\nb O\n\n\n\nc O\n", Format{}},
	{"a.conllu", "# text = A b\n1\tA\ta\tX\t_\t_\t_\t_\t_\t_\n1-2\t_\t_\t_\t_\t_\t_\t_\t_\t_\n" +
		"2\tb\tb\tY\t_\t_\t_\t_\t_\t_\n\n# text = C\n# id = 2\n1\tC\tc\t_\t_\t_\t_\t_\t_\t_\n\n", Format{}},
}

func TestAStreamReadsTheRecordsThatOpenReads(t *testing.T) {
	for _, test := range streamed {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), test.name)
			if err := os.WriteFile(path, []byte(test.data), 0o644); err != nil {
				t.Fatal(err)
			}
			checkStream(t, path, test.format)
		})
	}
}

// checkStream compares a stream of a file with its records.
func checkStream(t *testing.T, path string, format Format) {
	t.Helper()
	want, wantErr := Open(t.Context(), path, format)
	var scanned []Record
	s, err := Scan(t.Context(), []string{path, path}, format, func(r Record, _ int64) {
		scanned = append(scanned, r)
	})
	if wantErr != nil {
		if err == nil || !strings.Contains(err.Error(), wantErr.Error()) {
			t.Fatalf("error %v, want %v", err, wantErr)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	want = append(want, want...)
	if !reflect.DeepEqual(scanned, want) {
		t.Errorf("scanned %v, want %v", scanned, want)
	}
	if s.Len() != len(want) {
		t.Fatalf("%d records, want %d", s.Len(), len(want))
	}
	again := reopened(t, s, format)
	defer again.Close()
	for i := len(want) - 1; i >= 0; i-- {
		if have, err := again.Record(i); err != nil || !reflect.DeepEqual(have, want[i]) {
			t.Errorf("record %d by the index is %v, %v, want %v", i, have, err, want[i])
		}
		have, err := s.Record(i)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(have, want[i]) {
			t.Errorf("record %d is %v, want %v", i, have, want[i])
		}
	}
}

func FuzzStream(f *testing.F) {
	for _, test := range streamed {
		f.Add(filepath.Ext(test.name), test.data)
	}
	f.Fuzz(func(t *testing.T, extension, data string) {
		if FileType("x"+extension) == "" || strings.ContainsAny(extension, "/\x00") || len(extension) > 10 {
			return
		}
		if (Format{}).CheckStream("x"+extension) != nil {
			return
		}
		path := filepath.Join(t.TempDir(), "x"+extension)
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		checkStream(t, path, Format{})
		if kind := FileType(path); kind != "conll" && kind != "conllu" {
			checkStream(t, path, Format{Sentence: "s"})
		}
	})
}

func TestStreamsRefuseWhatHasNoPlaces(t *testing.T) {
	for _, test := range []struct {
		name   string
		format Format
		want   string
	}{
		{"a.jsonl.gz", Format{}, "a gzip file has no places to read from; unpack it with gunzip"},
		{"a.json", Format{}, "format json is read as a whole; want one of jsonl, csv, tsv, conll, conllu"},
		{"a.csv", Format{Encoding: "cp1252"}, "encoding cp1252 is read from the beginning; convert the file to utf-8"},
	} {
		if err := test.format.CheckStream(test.name); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %s", test.name, err, test.want)
		}
	}
}

func TestAStreamNoticesAChangedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	if err := os.WriteFile(path, []byte("{\"a\": 1}\n{\"a\": 2}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Scan(t.Context(), []string{path}, Format{}, func(Record, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.Chtimes(path, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Record(1); err == nil || !strings.Contains(err.Error(), "a.jsonl: the file was changed") {
		t.Errorf("error %v", err)
	}
}

// reopened returns the stream of the same files that the places of s give.
func reopened(t *testing.T, s *Stream, format Format) *Stream {
	t.Helper()
	again, err := OpenStream(format, s.Places())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(again.Places(), s.Places()) || again.Len() != s.Len() {
		t.Errorf("%d records at %v, want %d at %v", again.Len(), again.Places(), s.Len(), s.Places())
	}
	return again
}

func TestPlacesOfAChangedFileAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write := func(text string, at time.Time) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("{\"a\": 1}\n", time.Unix(1, 0))
	s, err := Scan(t.Context(), []string{path}, Format{}, func(Record, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	places := s.Places()
	s.Close()
	for _, test := range []struct {
		text string
		at   int64
		ok   bool
	}{
		{"{\"a\": 1}\n", 1, true},
		{"{\"a\": 1}\n", 2, true}, // the same content at another time
		{"{\"a\": 2}\n", 2, false},
		{"{\"a\": 1}\n\n", 1, false},
	} {
		write(test.text, time.Unix(test.at, 0))
		s, err := OpenStream(Format{}, places)
		if (err == nil) != test.ok {
			t.Errorf("%q: error %v", test.text, err)
		}
		if err == nil {
			s.Close()
		}
	}
}

// FuzzPlaces opens a file with any places, in JSON.
func FuzzPlaces(f *testing.F) {
	path := filepath.Join(f.TempDir(), "a.jsonl")
	if err := os.WriteFile(path, []byte("{\"a\": 1}\n{\"a\": 2}\n"), 0o644); err != nil {
		f.Fatal(err)
	}
	s, err := Scan(f.Context(), []string{path}, Format{}, func(Record, int64) {})
	if err != nil {
		f.Fatal(err)
	}
	places := s.Places()
	s.Close()
	f.Add([]byte("[]"))
	for _, lines := range [][]uint32{nil, {1, 1}, {7}} {
		places[0].Path, places[0].Lines = "PATH", lines // the file of the seeds has another name in each process
		text, err := json.Marshal(places)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var places []Places
		if json.Unmarshal(bytes.ReplaceAll(text, []byte("PATH"), []byte(path)), &places) != nil {
			return
		}
		s, err := OpenStream(Format{}, places)
		if err != nil {
			return
		}
		for i := range s.Len() {
			s.Record(i)
		}
		s.Close()
	})
}

// TestAStreamSeesThatItsFileIsNotTheSame changes a file's content but not its size and time, and then its name.
func TestAStreamSeesThatItsFileIsNotTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"text": "good"}` + "\n")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Scan(t.Context(), []string{path}, Format{}, func(Record, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Verify(); err != nil || len(s.Replaced()) > 0 {
		t.Errorf("an unchanged file: %v, replaced %q", err, s.Replaced())
	}

	write(`{"text": "poor"}` + "\n")
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Record(0); err != nil { // it is not known without reading all
		t.Error(err)
	}
	if err := s.Verify(); !errors.Is(err, ErrChanged) {
		t.Errorf("other content: %v", err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Skip(err) // where an open file cannot be renamed
	}
	if got := s.Replaced(); len(got) != 1 || got[0] != path {
		t.Errorf("without the file replaced files are %q", got)
	}
	write(`{"text": "good"}` + "\n")
	if got := s.Replaced(); len(got) != 1 {
		t.Errorf("with another file replaced files are %q", got)
	}
}
