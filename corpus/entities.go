package corpus

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Entity is a labelled span of a record's text.
type Entity struct {
	Label string
	Span  Span // bytes of its text
}

// Entities returns AllEntities, of which two that overlap are an error.
func (r Record) Entities(text string) (entities []Entity, ok bool, err error) {
	entities, ok, err = r.AllEntities(text)
	for i := 1; i < len(entities); i++ {
		if a, b := entities[i-1], entities[i]; b.Span.Start < a.Span.End {
			return nil, false, fmt.Errorf("%s: entities %s %q and %s %q overlap; a character belongs to one entity "+
				"at most, or overlap: longest or first beside the task's type keeps one of them",
				r.Place, start(a.Label), start(text[a.Span.Start:a.Span.End]), start(b.Label),
				start(text[b.Span.Start:b.Span.End]))
		}
	}
	return entities, ok, err
}

// AllEntities returns the field entities: a list of {"start": 13, "end": 21, "label": "PER"} by these names or those of
// annotation tools, or of [13, 21, "PER"]; or the same in a text, as JSON or as Python writes it; or the text with
// entities in brackets, as MASSIVE's "wake me at [time : nine]". Offsets are in the format's unit, by default in
// characters (code points) of text. An entity's own text, if it has one, must be the one that its offsets give. They
// are sorted by start, and may overlap; an empty entity is an error. ok is false if the field is absent, null or an
// empty text.
func (r Record) AllEntities(text string) (entities []Entity, ok bool, err error) {
	field := r.Fields["entities"]
	if written, isText := field.(string); isText {
		if strings.TrimSpace(written) == "" {
			return nil, false, nil
		}
		if field, ok = ParseJSON(written); !ok {
			field, ok = parsePython(written) // ( begins a list too
		}
		if !ok {
			entities, err = bracketed(written, text)
			if err != nil {
				err = fmt.Errorf("%s: field \"entities\" is a text: %w", r.Place, err)
			}
			return entities, err == nil, err
		}
	}
	if field == nil {
		return nil, false, nil
	}
	list, ok := field.([]any)
	if columns, isObject := field.(map[string]any); isObject {
		list, ok = transposed(columns)
	}
	if !ok {
		return nil, false, fmt.Errorf(`%s: field "entities" is %s; it takes a list of {"start", "end", "label"}`,
			r.Place, kind(field))
	}
	at, err := r.positions(text)
	if err != nil {
		return nil, false, err
	}
	entities = make([]Entity, len(list))
	for i, item := range list {
		if entities[i], err = at.entity(item); err != nil {
			return nil, false, fmt.Errorf("%s: entity %d: %w", r.Place, i+1, err)
		}
	}
	slices.SortStableFunc(entities, func(a, b Entity) int { return a.Span.Start - b.Span.Start })
	return entities, true, nil
}

// Names of what an entity has, as jenga and other tools write them: spaCy, Prodigy, doccano, Label Studio, Rasa,
// Hugging Face's pipelines, UIMA, and the services of Amazon, Google and Microsoft.
var (
	startNames = []string{"start", "start_offset", "begin", "start_char", "startOffset", "char_start", "BeginOffset",
		"beginOffset", "start_idx", "offset"}
	endNames = []string{"end", "end_offset", "stop", "end_char", "endOffset", "char_end", "EndOffset", "end_idx"}
	// labels is a list of one
	labelNames = []string{"label", "labels", "type", "tag", "entity_group", "entity", "entity_type", "category",
		"class", "Type"}
	ownTextNames = []string{"text", "surface", "surface_form", "mention", "value", "quote", "coveredText", "Text"}
)

func firstOf(fields map[string]any, names []string) (name string, value any) {
	for _, name := range names {
		if value := fields[name]; value != nil {
			return name, value
		}
	}
	return names[0], nil
}

// transposed returns the entities in an object of lists, {"start": [0, 5], "end": […], "label": […]}, as Hugging
// Face's datasets write a sequence of objects. ok is false for another object.
func transposed(columns map[string]any) (entities []any, ok bool) {
	for name, column := range columns {
		values, isList := column.([]any)
		if texts, isTexts := column.([]string); isTexts {
			for _, text := range texts {
				values = append(values, text)
			}
			isList = true
		}
		if entities == nil {
			entities = make([]any, len(values))
			for i := range entities {
				entities[i] = map[string]any{}
			}
		}
		if !isList || len(values) != len(entities) {
			return nil, false
		}
		for i, value := range values {
			entities[i].(map[string]any)[name] = value
		}
	}
	return entities, len(columns) > 0
}

// entity reads one entity of a text.
func (p positions) entity(item any) (Entity, error) {
	fields, err := entityFields(item)
	if err != nil {
		return Entity{}, err
	}

	var offsets [2]int
	for i, names := range [][]string{startNames, endNames} {
		name, value := firstOf(fields, names)
		length := i == 1 && value == nil && fields["length"] != nil
		if length {
			name, value = "length", fields["length"]
		}
		number, _ := scalar(value)
		n, err := wholeNumber(number)
		if err != nil {
			return Entity{}, fmt.Errorf("%q is %s; want a whole number", name, shown(value))
		}
		if offsets[i] = n + p.shift[i]; length {
			offsets[i] = n + offsets[0]
		}
	}
	span, err := p.span(offsets[0], offsets[1])
	if err != nil {
		return Entity{}, err
	}

	labelName, value := firstOf(fields, labelNames)
	if list, isList := value.([]any); isList && len(list) == 1 {
		value = list[0]
	}
	label, ok := scalar(value)
	if !ok || label == "" {
		return Entity{}, fmt.Errorf("%q is %s; want a name", labelName, shown(value))
	}
	textName, own := firstOf(fields, ownTextNames)
	if textName == "value" && labelName == "entity" {
		own = nil // Rasa's may be a synonym
	}
	if own, isText := own.(string); isText && !sameLetters(own, p.text[span.Start:span.End]) {
		return Entity{}, &OffsetsError{fmt.Errorf("%ss %d to %d are %q, not %q", p.one(), offsets[0], offsets[1],
			start(p.text[span.Start:span.End]), start(own))}
	}
	return Entity{label, span}, nil
}

// entityFields returns an entity as an object, of a list [start, end, label] or [label, start, end] too.
func entityFields(item any) (map[string]any, error) {
	switch v := item.(type) {
	case []any:
		if len(v) != 3 && len(v) != 4 {
			return nil, fmt.Errorf("it is a list of %d; want [start, end, label]", len(v))
		}
		if label, isText := v[0].(string); isText && len(v) == 3 {
			if _, err := wholeNumber(label); err != nil { // else a start that is written as a text
				v = []any{v[1], v[2], v[0]}
			}
		}
		fields := map[string]any{"start": v[0], "end": v[1], "label": v[2]}
		if len(v) == 4 {
			fields["text"] = v[3]
		}
		return fields, nil
	case map[string]any:
		if inner, nested := v["value"].(map[string]any); nested {
			return inner, nil // of Label Studio
		}
		return v, nil
	}
	return nil, fmt.Errorf("it is %s; want {\"start\", \"end\", \"label\"}", kind(item))
}

// sameLetters reports whether two texts differ at most in white space, case and the form of accents, which tools trim
// and fold.
func sameLetters(a, b string) bool {
	letters := func(text string) string {
		text = FoldName(text)
		return strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) {
				return -1
			}
			return r
		}, text)
	}
	return a == b || letters(a) == letters(b)
}

// slot matches an annotation of MASSIVE: [label : words].
var slot = regexp.MustCompile(`\[\s*([^\[\]:]*[^\[\]:\s])\s*:\s*([^\[\]]*[^\[\]\s])\s*\]`)

// maxMoved is how many entities in brackets are looked for in a text whose other words differ.
const maxMoved = 1000

// bracketed returns the entities that brackets mark in a copy of text. Other words of the copy may differ from those of
// the text, if each entity is where it is in the copy, or once in the rest of the text.
func bracketed(annotated, text string) ([]Entity, error) {
	matches := slot.FindAllStringSubmatchIndex(annotated, -1)
	entities, same, done, next := []Entity{}, true, 0, 0 // same: so far; done: of annotated; next: of text
	for _, m := range matches {
		between, label, words := annotated[done:m[0]], annotated[m[2]:m[3]], annotated[m[4]:m[5]]
		begin := next + len(between)
		same = same && strings.HasPrefix(text[next:], between)
		if !same || !strings.HasPrefix(text[begin:], words) {
			same, begin = false, next+strings.Index(text[next:], words)
			if begin < next || strings.Contains(text[begin+1:], words) || len(entities) > maxMoved {
				return nil, fmt.Errorf("%s %q is not once in the rest of the text, %q; want the same text, with "+
					"entities in brackets", start(label), start(words), start(text[next:]))
			}
		}
		next, done = begin+len(words), m[1]
		entities = append(entities, Entity{label, Span{begin, next}})
	}
	if len(matches) == 0 && !sameLetters(annotated, text) {
		return nil, errors.New("it is neither a list in JSON, [{\"start\": 0, \"end\": 3, \"label\": \"PER\"}], nor " +
			"the record's text with entities in brackets, [label : words]")
	}
	return entities, nil
}

// CopyDiffers reports whether the field entities is a copy of text with entities in brackets, whose words are others
// than those of the text.
func (r Record) CopyDiffers(text string) bool {
	annotated, isText := r.Fields["entities"].(string)
	if !isText || !slot.MatchString(annotated) {
		return false
	}
	_, isJSON := ParseJSON(annotated)
	_, isPython := parsePython(annotated)
	return !isJSON && !isPython && !sameLetters(slot.ReplaceAllString(annotated, "$2"), text)
}

// pythonToken matches a token of a literal in Python: a text, a word, a number, or another character.
var pythonToken = regexp.MustCompile(
	`(?s)'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[A-Za-z_]+|-?[0-9][0-9.]*(?:e[-+]?[0-9]+)?|\s+|.`)

// parsePython parses a text that holds a list as Python writes it, which pandas does in a cell: [{'start': 0}], or
// [(0, 3, 'PER')]; or as NumPy does, without commas.
func parsePython(text string) (value any, ok bool) {
	text = strings.TrimSpace(text)
	const most = 1 << 20 // bytes: a token of a few bytes takes a string of its own
	if text == "" || len(text) > most || !strings.Contains("[({", text[:1]) {
		return nil, false
	}
	var out strings.Builder
	comma := false             // before the token, and not written yet: a tuple may end with one
	after, gap := false, false // the token before is a value, or a blank after one
	words := map[string]string{"True": "true", "False": "false", "None": "null", "(": "[", ")": "]"}
	for _, token := range pythonToken.FindAllString(text, -1) {
		if token == "," && !comma {
			comma = true
			continue
		}
		if other, known := words[token]; known {
			token = other
		}
		blank := strings.TrimSpace(token) == ""
		isValue := len(token) > 1 && !blank || token[0] >= '0' && token[0] <= '9'
		if comma && token != "]" && !blank || gap && isValue {
			out.WriteByte(',')
		}
		comma, gap, after = comma && blank, blank && after, isValue
		switch quote := token[0] == '\'' || token[0] == '"'; {
		case quote && len(token) > 1: // one alone does not close
			token = pythonText(token[1 : len(token)-1])
		case isValue:
			token = strings.TrimSuffix(token, ".") // of NumPy's 1.
		}
		out.WriteString(token)
	}
	return ParseJSON(out.String())
}

// pythonText returns the inner part of a text in Python as JSON. Of its escapes, those of a character are kept.
func pythonText(inner string) string {
	var out strings.Builder
	out.WriteByte('"')
	for i := 0; i < len(inner); i++ {
		switch c := inner[i]; {
		case c == '\\' && i+1 < len(inner) && inner[i+1] == '\'':
		case c == '\\' && strings.HasPrefix(inner[i+1:], "x") && len(inner) >= i+4:
			out.WriteString(`\u00`)
			i++
		case c == '\\' && i+1 < len(inner):
			out.WriteString(inner[i : i+2])
			i++
		case c == '"':
			out.WriteString(`\"`)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
