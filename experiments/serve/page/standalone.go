package page

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // of standalone.html
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/jenga-nlp/jenga/internal/printable"
)

// alone is a page with everything in it. Its policy allows its own style and script, by their hashes, and no request.
//
//go:embed standalone.html
var alone string

// Standalone writes an explanation as a web page of one file: the answers, and where the model looked. It makes no
// requests. Its JSON is that of predict.Explanation, with offsets in UTF-16 units, as JavaScript counts.
func Standalone(w io.Writer, explanation any) error {
	data, err := json.Marshal(explanation) // with < as \u003c, so that no text ends the element
	if err != nil {
		return err
	}
	var style strings.Builder
	for _, name := range names() {
		if strings.HasSuffix(name, ".css") {
			style.Write(read(name))
		}
	}
	data = printable.Escape(data) // the page may be written to a terminal
	script := joined("standalone.js")
	_, err = fmt.Fprintf(w, alone, hashOf(style.String()), hashOf(script), style.String(), data, script)
	return err
}

// hashOf returns the source expression of an inline element in a Content-Security-Policy.
func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// imports are the imports of our modules, which each have a line.
var imports = regexp.MustCompile(`(?m)^import \{[^}]*\} from '\./([a-z]+\.js)';\n`)

// exports are the exports of declarations, the only ones that our modules have.
var exports = regexp.MustCompile(`(?m)^export `)

// joined returns a module with those that it imports as one module: each once, after those that it imports itself. The
// names at the top of our modules differ.
func joined(entry string) string {
	var all bytes.Buffer
	done := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if done[name] {
			return
		}
		done[name] = true
		source := string(read(name))
		for _, found := range imports.FindAllStringSubmatch(source, -1) {
			add(found[1])
		}
		fmt.Fprintf(&all, "// %s\n%s", name, exports.ReplaceAllString(imports.ReplaceAllString(source, ""), ""))
	}
	add(entry)
	return all.String()
}
