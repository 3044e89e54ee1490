package corpus

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// slotFiles are the files of a folder of intents and slots: the words, one tag per word, and one label per line.
var slotFiles = [3]string{"seq.in", "seq.out", "label"}

// IsSlotFolder reports whether path is a folder of intents and slots: it holds seq.in, or its compressed form.
func IsSlotFolder(path string) bool {
	for _, name := range []string{slotFiles[0], slotFiles[0] + ".gz"} {
		if info, err := os.Stat(filepath.Join(path, name)); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

func openFolder(ctx context.Context, path string, folder bool, f Format) ([]Record, error) {
	if !folder {
		return nil, fmt.Errorf("%s: a file; format slots is a folder with seq.in, seq.out and label", path)
	}
	f, err := f.settled(path, true)
	if err == nil && f.Type != "slots" {
		err = fmt.Errorf("a folder; format %s is a file", f.Type)
	}
	if err == nil {
		err = f.Check(path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}

	var readers [len(slotFiles)]*reader // of words, tags and labels
	m := &mistakes{}
	for i, name := range slotFiles {
		file, err := openSlotFile(path, name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		readers[i] = newReader(ctx, file, file.Name(), f, m)
	}
	words := readers[0]
	for words.slot(readers[1], readers[2]) {
	}
	for _, other := range readers[1:] {
		other.reportInvalid()
	}
	return words.finish(path)
}

func openSlotFile(folder, name string) (*os.File, error) {
	for _, path := range []string{filepath.Join(folder, name), filepath.Join(folder, name+".gz")} {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return openRegular(path, besideOthers)
		}
	}
	return nil, fmt.Errorf("%s: no file %s; a folder of data holds seq.in, seq.out and label", folder, name)
}

// slot reads one record: a line of words from d, a line of tags and a label. It returns false at the end.
func (d *reader) slot(tags, labels *reader) bool {
	text, more := d.next()
	tagText, moreTags := tags.next()
	label, moreLabels := labels.next()
	if d.stopped || tags.stopped || labels.stopped || !more && !moreTags && !moreLabels {
		return false
	}
	for _, other := range []*reader{tags, labels} {
		switch {
		case other.place.Line < d.place.Line:
			d.add(other.place, "the file ends here, but %s goes on; want a line for each", d.file)
			return false
		case other.place.Line > d.place.Line:
			d.add(d.place, "the file ends here, but %s goes on; want a line for each", other.file)
			return false
		}
	}

	words, wordTags := splitBlanks(text), splitBlanks(tagText)
	label = strings.Trim(label, " \t")
	if len(words) != len(wordTags) {
		d.add(tags.place, "tags: %d, words: %d (%s); want a tag a word", len(wordTags), len(words), d.place)
		return true
	}
	switch {
	case len(words) > 0:
		d.addRecord(Record{Place: d.place, Fields: map[string]any{"words": words, "tags": wordTags, "label": label}})
	case label != "":
		d.add(labels.place, "label %q, but no words; want some in %s", start(label), d.place)
	}
	return true
}
