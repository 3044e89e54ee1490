package serve

import (
	"cmp"
	_ "embed" // of openapi.json
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/predict"
)

type object = map[string]any

func (s *Server) document(w http.ResponseWriter, r *http.Request) {
	s.write(w, r, http.StatusOK, s.openAPI())
}

// openAPIText describes a server in OpenAPI 3.1, without what depends on its runs and options.
//
//go:embed openapi.json
var openAPIText []byte

// openAPI describes the server, with the requests and the answers of the tasks that are served.
func (s *Server) openAPI() object {
	var document object
	if err := json.Unmarshal(openAPIText, &document); err != nil {
		panic("serve: openapi.json: " + err.Error())
	}
	components := document["components"].(object)
	schemas := components["schemas"].(object)
	schemas["Answer"] = object{"anyOf": s.answers()}
	maps.Copy(schemas, s.requestSchemas())
	for _, path := range document["paths"].(object) {
		for _, operation := range path.(object) {
			responses := operation.(object)["responses"].(object)
			if len(s.options.Hosts) > 0 {
				responses["403"] = object{"$ref": "#/components/responses/OtherSite"}
			}
			if operation.(object)["security"] == nil && s.options.Token != "" { // it needs the token
				responses["401"] = object{"$ref": "#/components/responses/WithoutToken"}
			}
		}
	}
	if s.options.Token != "" {
		document["security"] = []any{object{"bearer": []string{}}}
		components["securitySchemes"] = object{"bearer": object{"type": "http", "scheme": "bearer"}}
	}
	return document
}

// closed is an object with the given properties alone.
func closed(properties object, required ...string) object {
	o := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// requestSchemas are those of requests: a form for each way to give a text to each run.
func (s *Server) requestSchemas() object {
	var units []string
	for unit := corpus.Characters; unit <= corpus.UTF16; unit++ {
		units = append(units, unit.String())
	}
	var predictions, embeddings, explanations []any
	for _, r := range s.runs {
		m, done := r.use()
		tasks, decisions := m.Tasks(), decisionSchemas(m.Deciding())
		done()
		var names []string
		for _, task := range tasks {
			names = append(names, task.Name)
		}
		ofTasks := formsOf(tasks)
		item := object{"description": "a text, or an object with one; others have an error in the answer"}
		options := object{
			"tasks":   object{"type": "array", "minItems": 1, "items": object{"type": "string", "enum": names}},
			"offsets": object{"type": "string", "enum": units},
			"top": object{"type": "integer", "minimum": 0, "maximum": maxTop,
				"description": "number of the likeliest labels to list"},
		}
		explanations = append(explanations, s.bodies(r, ofTasks, explainFields(options))...)
		maps.Copy(options, decisions)
		predictions = append(predictions, s.bodies(r, append(ofTasks, s.textList(item)), options)...)
		all := textForms(true, true)
		embeddings = append(embeddings, s.bodies(r, append(all, s.textList(object{"anyOf": itemsOf(all)})),
			object{"pool": object{"type": "string", "enum": []string{"mean", "cls"}}})...)
	}
	return object{"PredictRequest": object{"anyOf": predictions}, "EmbedRequest": object{"anyOf": embeddings},
		"ExplainRequest": object{"anyOf": explanations, "not": stepsWithoutGradients}}
}

// form is a way to give a text: its fields, and those that it must have.
type form struct {
	fields   object
	required []string
}

func textForms(single, pairs bool) (forms []form) {
	notEmpty := object{"type": "string", "minLength": 1}
	anyText := object{"type": "string"}
	words := object{"type": "array", "minItems": 1, "items": notEmpty, "description": "the words of the text"}
	schemas := object{"text": notEmpty, "words": words}
	for _, name := range []string{"text", "words"} {
		first := form{object{name: schemas[name]}, []string{name}}
		if single {
			forms = append(forms, first)
		}
		if pairs {
			both := maps.Clone(first.fields)
			both["pair"] = anyText
			forms = append(forms, form{both, append(slices.Clone(first.required), "pair")})
		}
	}
	if pairs {
		forms = append(forms, form{object{"question": notEmpty, "context": anyText}, []string{"question", "context"}})
	}
	return forms
}

func formsOf(tasks []predict.TaskInfo) []form {
	single, pairs := false, false
	for _, task := range tasks {
		single, pairs = single || !task.Pairs, pairs || !task.Single
	}
	return textForms(single, pairs)
}

func itemsOf(forms []form) (items []any) {
	for _, f := range forms {
		items = append(items, closed(f.fields, f.required...))
		if slices.Equal(f.required, []string{"text"}) {
			items = append(items, f.fields["text"])
		}
	}
	return items
}

func (s *Server) textList(item object) form {
	return form{object{"texts": object{"type": "array", "minItems": 1, "maxItems": s.options.MaxTexts,
		"items": item}}, []string{"texts"}}
}

// bodies are the schemas of the bodies for a run: one for each form.
func (s *Server) bodies(r *liveRun, forms []form, options object) (schemas []any) {
	var required []string
	if len(s.runs) > 1 {
		required = []string{"run"}
	}
	for _, f := range forms {
		properties := maps.Clone(options)
		properties["run"] = object{"const": r.name}
		maps.Copy(properties, f.fields)
		schemas = append(schemas, closed(properties, append(slices.Clone(f.required), required...)...))
	}
	return schemas
}

// Runs returns the names of the runs.
func (s *Server) Runs() (names []string) {
	for _, r := range s.runs {
		names = append(names, r.name)
	}
	return names
}

// Precisions returns the precisions of the runs' encoders, in the order of Runs.
func (s *Server) Precisions() (all []string) {
	for _, r := range s.runs {
		m, done := r.use()
		all = append(all, m.Precision().String())
		done()
	}
	return all
}

// Devices returns what the runs' encoders compute on, in the order of Runs; "" for the processor.
func (s *Server) Devices() (all []string) {
	for _, r := range s.runs {
		m, done := r.use()
		all = append(all, m.Device())
		done()
	}
	return all
}

func (s *Server) answers() (all []any) {
	var known []string
	for _, r := range s.runs {
		m, done := r.use()
		for _, task := range m.Tasks() {
			for _, head := range task.Heads {
				schema := cmp.Or(string(head.Schema), "{}") // a kind of another module may have none
				if !slices.Contains(known, schema) {
					known, all = append(known, schema), append(all, json.RawMessage(schema))
				}
			}
		}
		done()
	}
	return all
}
