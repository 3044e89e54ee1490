package serve

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/predict"
)

// object is a JSON object.
type object = map[string]any

// document answers GET /openapi.json.
func (s *Server) document(w http.ResponseWriter, r *http.Request) {
	s.write(w, r, http.StatusOK, s.openAPI())
}

// textStatuses are those of requests with texts that are not answered.
var textStatuses = []string{"400", "403", "404", "408", "413", "415", "422", "429", "500", "503"}

// openAPI describes the server in OpenAPI 3.1, with the answers of the tasks that are served.
func (s *Server) openAPI() object {
	document := object{
		"openapi": "3.1.0",
		"info": object{"title": "jenga", "version": "1",
			"description": "Answers of all tasks of a trained run, in one pass of its encoder."},
		"paths": object{
			"/v1/predict": object{"post": s.operation("predict", "Answer texts by all tasks",
				"PredictRequest", "Predictions", textStatuses...)},
			"/v1/embed": object{"post": s.operation("embed", "Vectors of texts, from the encoder's last states",
				"EmbedRequest", "Embeddings", textStatuses...)},
			"/v1/explain": object{"post": s.operation("explain", "What the model computed on the way to its answers",
				"ExplainRequest", "Explanation", textStatuses...)},
			"/v1/tasks":  object{"get": s.operation("tasks", "The runs and their tasks", "", "Runs")},
			"/v1/reload": object{"post": s.operation("reload", "Open the runs again", "", "Runs", "403", "409")},
			"/healthz":   object{"get": withoutToken(plainText("The process answers", "200"))},
			"/readyz":    object{"get": withoutToken(plainText("Requests may be sent", "200", "503"))},
			"/metrics":   object{"get": s.withToken(plainText("Metrics for Prometheus", "200"))},
		},
		"components": object{"schemas": s.schemas()},
	}
	if len(s.options.Hosts) > 0 {
		refused := inJSON("A page of another site, or another name of this machine", schemaRef("Error"))
		for _, path := range document["paths"].(object) {
			for _, operation := range path.(object) {
				operation.(object)["responses"].(object)["403"] = refused
			}
		}
	}
	if s.options.Token != "" {
		bearer := object{"type": "http", "scheme": "bearer"}
		document["security"] = []any{object{"bearer": []string{}}}
		document["components"].(object)["securitySchemes"] = object{"bearer": bearer}
	}
	return document
}

func schemaRef(name string) object { return object{"$ref": "#/components/schemas/" + name} }

func inJSON(description string, schema object) object {
	return object{"description": description, "content": object{"application/json": object{"schema": schema}}}
}

// operation describes an operation that answers JSON. request is the schema of its body, "" for none.
func (s *Server) operation(id, summary, request, response string, statuses ...string) object {
	responses := object{"200": inJSON("The answer", schemaRef(response))}
	for _, status := range statuses {
		responses[status] = inJSON("A mistake in the request, or no answer", schemaRef("Error"))
	}
	o := s.withToken(object{"operationId": id, "summary": summary, "responses": responses})
	if request != "" {
		body := object{"application/json": object{"schema": schemaRef(request)}}
		o["requestBody"] = object{"required": true, "content": body}
	}
	return o
}

// withToken adds the response to a request without the token, if there is one.
func (s *Server) withToken(operation object) object {
	if s.options.Token != "" {
		operation["responses"].(object)["401"] = inJSON("The token is missing or wrong", schemaRef("Error"))
	}
	return operation
}

// withoutToken marks an operation that needs no token.
func withoutToken(operation object) object {
	operation["security"] = []any{}
	return operation
}

func plainText(summary string, statuses ...string) object {
	responses := object{}
	for _, status := range statuses {
		responses[status] = object{"description": summary,
			"content": object{"text/plain": object{"schema": object{"type": "string"}}}}
	}
	return object{"summary": summary, "responses": responses}
}

// schemas are those of requests and responses.
func (s *Server) schemas() object {
	all := s.requestSchemas()
	text, count := object{"type": "string"}, object{"type": "integer", "minimum": 0}
	answers := mapOf(object{"anyOf": s.answers()}) // by head
	prediction := closed(object{"text": text, "pair": text, "truncated": count,
		"windows": object{"type": "integer", "minimum": 2}, "tasks": mapOf(answers)}, "text", "truncated", "tasks")
	embedding := closed(object{"vector": list(object{"type": "number"}), "tokens": count, "truncated": count},
		"vector", "tokens", "truncated")
	head := closed(object{"name": text, "output": text, "labels": list(text), "schema": object{"type": "object"}},
		"name", "output")
	yes := object{"type": "boolean"}
	task := closed(object{"name": text, "pairs": yes, "single": yes, "heads": list(head)},
		"name", "pairs", "single", "heads")
	all["Error"] = closed(object{"error": text}, "error")
	all["Prediction"] = object{"anyOf": []any{schemaRef("Error"), prediction}}
	all["Predictions"] = closed(object{"run": text, "predictions": list(schemaRef("Prediction"))}, "run", "predictions")
	all["Explanation"] = explanationSchema(prediction)
	all["Embeddings"] = closed(object{"run": text, "embeddings": list(embedding)}, "run", "embeddings")
	all["Runs"] = closed(object{"runs": list(closed(object{"run": text, "tasks": list(task)}, "run", "tasks"))}, "runs")
	return all
}

func list(items object) object { return object{"type": "array", "items": items} }

// mapOf is an object whose properties, of any names, have a schema.
func mapOf(values object) object { return object{"type": "object", "additionalProperties": values} }

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

// textForms returns the forms of a text, with a pair or without one.
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

// formsOf returns the forms that some of the tasks read.
func formsOf(tasks []predict.TaskInfo) []form {
	single, pairs := false, false
	for _, task := range tasks {
		single, pairs = single || !task.Pairs, pairs || !task.Single
	}
	return textForms(single, pairs)
}

// itemsOf are the schemas of a text of a list.
func itemsOf(forms []form) (items []any) {
	for _, f := range forms {
		items = append(items, closed(f.fields, f.required...))
		if slices.Equal(f.required, []string{"text"}) {
			items = append(items, f.fields["text"])
		}
	}
	return items
}

// textList is the form of a list of texts.
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

// answers are the schemas of the answers of all heads, each once.
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
