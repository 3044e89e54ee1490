package tasks

import (
	"fmt"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// outside is the tag of a word that is in no span.
const outside = "O"

// splitTag splits a tag into the position of its word in a span and the span's label: B-city into B and city. ok is
// false if it is not a tag of BIO, BIOES or IO. As in seqeval, a bare B has the label "_".
func splitTag(tag string) (position byte, label string, ok bool) {
	if tag == "" || tag == outside {
		return 'O', "", true
	}
	if !strings.ContainsRune("BIES", rune(tag[0])) {
		return 0, "", false
	}
	label, dash := strings.CutPrefix(tag[1:], "-")
	if len(tag) == 1 {
		return tag[0], "_", true
	}
	return tag[0], label, dash && label != ""
}

// checkTags refuses tags that mark no spans.
func checkTags(at corpus.Place, tags []string) error {
	for i, tag := range tags {
		if _, _, ok := splitTag(tag); !ok {
			return fmt.Errorf("%s: tag %d is %q; ner takes O, and B-, I-, E- or S- before a label, tagging takes "+
				"any tag", at, i+1, tag)
		}
	}
	return nil
}

// spansOf lists the spans that tags mark in seqeval's default mode, which is conlleval's: I or E after B or I of the
// same label continues a span; any other tag but O begins one. A tag that is not a span tag marks its word alone.
func spansOf(tags []string) []outputs.TagSpan {
	var spans []outputs.TagSpan
	open := false // the last span may continue
	for i, tag := range tags {
		position, label, ok := splitTag(tag)
		if !ok {
			position, label = 'S', tag
		}
		if position == 'O' {
			open = false
			continue
		}
		inner := position == 'I' || position == 'E'
		if open && inner && spans[len(spans)-1].Label == label {
			spans[len(spans)-1].End = i + 1
		} else {
			spans = append(spans, outputs.TagSpan{Label: label, Start: i, End: i + 1})
		}
		open = position == 'B' || position == 'I'
	}
	return spans
}
