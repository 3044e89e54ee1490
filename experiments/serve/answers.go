package serve

import (
	"net/http"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

// predict answers POST /v1/predict.
func (s *Server) predict(r *http.Request) (any, error) {
	q := s.newRequest(r)
	defer q.end()
	err := s.read(q, r, "texts", "tasks", "top", "offsets", "min_probability", "thresholds")
	if err != nil {
		return nil, err
	}
	predictions := make([]predict.Prediction, len(q.texts))
	var examples []*corpus.Example
	var numbers []int // of examples among texts
	for i, t := range q.texts {
		if t.err != nil {
			predictions[i].Err = t.err
			continue
		}
		examples, numbers = append(examples, t.example), append(numbers, i)
	}
	s.logTexts("predict", q)
	if err := q.model.CheckForm(q.form); err != nil {
		return nil, mistake(http.StatusBadRequest, "%w", err)
	}
	answers, err := q.model.PredictExamples(r.Context(), q.form, examples...)
	if err != nil {
		return nil, err
	}
	answered := 0
	for i, p := range answers {
		predictions[numbers[i]] = p
		if p.Err == nil {
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
func (s *Server) embed(r *http.Request) (any, error) {
	q := s.newRequest(r)
	defer q.end()
	if err := s.read(q, r, "texts", "pool"); err != nil {
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
	embeddings, err := q.model.Embed(r.Context(), q.pool, examples...)
	if err != nil {
		return nil, err
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
func (s *Server) tasks(*http.Request) (any, error) {
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
