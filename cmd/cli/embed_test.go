package cli

import (
	"strings"
	"testing"
)

// The type ids are those that the encoder reads, which are 0 for both texts of RoBERTa's pairs.
func TestTokenizeWritesTheEncodersTypeIDs(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "tokenizer.json", `{"post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 1],
 "cls": ["<s>", 0], "trim_offsets": true, "add_prefix_space": false},
 "model": {"type": "BPE", "vocab": {"<s>": 0, "</s>": 1, "a": 2, "b": 3}, "merges": []}}`)
	status, out, log := call(`{"text": "a", "pair": "b"}`+"\n", "tokenize", ".")
	if status != 0 || !strings.Contains(out, `"ids":[0,2,1,1,3,1]`) ||
		!strings.Contains(out, `"type_ids":[0,0,0,0,0,0]`) {
		t.Errorf("tokenize: %d, %s%s", status, out, log)
	}
}
