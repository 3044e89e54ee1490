package serve

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/predict"
)

// predict answers POST /v1/predict.
func (s *Server) predict(q *request) (any, error) {
	if err := s.read(q, "texts", "tasks", "top", "offsets", "min_probability", "thresholds"); err != nil {
		return nil, err
	}
	predictions := make([]predict.Prediction, len(q.texts))
	var examples []*corpus.Example
	for i, t := range q.texts {
		if predictions[i].Err = t.err; t.err == nil {
			examples = append(examples, t.example)
		}
	}
	s.logTexts("predict", q)
	answers, err := q.model.PredictExamples(q.Context(), q.form, examples...)
	if err != nil {
		return nil, err
	}
	answered := 0
	for i := range predictions {
		if predictions[i].Err == nil {
			predictions[i], answers = answers[0], answers[1:]
		}
		if predictions[i].Err == nil {
			answered++
		}
	}
	if q.one && predictions[0].Err != nil {
		return nil, mistake(http.StatusUnprocessableEntity, "%w", predictions[0].Err)
	}
	s.metrics.texts.WithLabelValues(q.run.name).Add(float64(answered))
	return struct {
		Run         string               `json:"run"`
		Predictions []predict.Prediction `json:"predictions"`
	}{q.run.name, predictions}, nil
}

// embed answers POST /v1/embed.
func (s *Server) embed(q *request) (any, error) {
	if err := s.read(q, "texts", "pool"); err != nil {
		return nil, err
	}
	var examples []*corpus.Example
	for _, t := range q.texts {
		if t.err != nil {
			return nil, mistake(http.StatusUnprocessableEntity, "%w", t.err)
		}
		examples = append(examples, t.example)
	}
	s.logTexts("embed", q)
	embeddings, err := q.model.Embed(q.Context(), q.pool, examples...)
	if err != nil {
		return nil, err
	}
	for i, e := range embeddings {
		switch {
		case e.Err != nil && examples[i].Place.String() == "":
			return nil, mistake(http.StatusUnprocessableEntity, "text %d of %d: %w", i+1, len(examples), e.Err)
		case e.Err != nil:
			return nil, mistake(http.StatusUnprocessableEntity, "%w", e.Err)
		}
	}
	s.metrics.texts.WithLabelValues(q.run.name).Add(float64(len(examples)))
	return struct {
		Run        string              `json:"run"`
		Embeddings []predict.Embedding `json:"embeddings"`
	}{q.run.name, embeddings}, nil
}

func (s *Server) logTexts(what string, q *request) {
	if !s.options.LogTexts {
		return
	}
	for _, t := range q.texts {
		if t.err == nil {
			s.options.Log.Info(what, "run", q.run.name, "text", t.example.Text, "pair", t.example.Pair)
		}
	}
}

// tasks answers GET /v1/tasks.
func (s *Server) tasks(*request) (any, error) {
	type runTasks struct {
		Run   string             `json:"run"`
		Tasks []predict.TaskInfo `json:"tasks"`
	}
	all := []runTasks{}
	for _, r := range s.runs {
		m, done := r.use()
		all = append(all, runTasks{r.name, m.Tasks()})
		done()
	}
	return map[string]any{"runs": all}, nil
}

// readDecisions reads the fields that say which probabilities of labels make an answer. Their names and bounds are
// checked with the model.
func (q *request) readDecisions(fields map[string]any) error {
	if value, ok := fields["min_probability"]; ok {
		least, ok := numbersOf(value)
		if !ok {
			return mistake(http.StatusBadRequest, "min_probability: want a number from 0 to 1, or an object with one "+
				"for each of some tasks")
		}
		q.form.MinProbability = least
	}
	value, ok := fields["thresholds"]
	if !ok {
		return nil
	}
	tasks, ok := value.(map[string]any)
	if !ok {
		return mistake(http.StatusBadRequest, "thresholds: want an object with a number, or an object of numbers by "+
			"label, for each of some tasks")
	}
	q.form.Thresholds = map[string]map[string]float64{}
	for _, name := range slices.Sorted(maps.Keys(tasks)) {
		labels, ok := numbersOf(tasks[name])
		if !ok {
			return mistake(http.StatusBadRequest,
				"thresholds: %q: want a number from 0 to 1, or an object with one for each of some labels", name)
		}
		q.form.Thresholds[name] = labels
	}
	return nil
}

// numbersOf returns the numbers of an object by their names, or a number by the name "".
func numbersOf(value any) (numbers map[string]float64, ok bool) {
	fields, isObject := value.(map[string]any)
	if !isObject {
		fields = map[string]any{"": value}
	}
	numbers = map[string]float64{}
	for name, value := range fields {
		number, isNumber := value.(json.Number)
		f, err := number.Float64()
		if !isNumber || err != nil || isObject && name == "" {
			return nil, false
		}
		numbers[name] = f
	}
	return numbers, true
}

// decisionSchemas are those of the fields that readDecisions reads; none for a model without labels.
func decisionSchemas(heads []predict.DecidingHead) object {
	if len(heads) == 0 {
		return nil
	}
	number := object{"type": "number", "minimum": 0, "maximum": 1}
	least, thresholds := object{}, object{}
	labels := map[string]object{} // of names of tasks or heads with several labels
	for _, head := range heads {
		for _, name := range head.Names() {
			least[name], thresholds[name] = number, number
			if head.One {
				continue
			}
			if labels[name] == nil {
				labels[name] = object{}
			}
			for _, label := range head.Labels {
				labels[name][label] = number
			}
			thresholds[name] = object{"anyOf": []any{number, closed(labels[name])}}
		}
	}
	return object{
		"min_probability": object{"anyOf": []any{number, closed(least)},
			"description": "least probability of an answer, of all tasks or by task"},
		"thresholds": object{"type": "object", "properties": thresholds, "additionalProperties": false,
			"description": "least probabilities in place of the run's, by task and, of several labels, by label"},
	}
}
