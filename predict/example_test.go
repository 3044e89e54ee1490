package predict_test

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/jenga-nlp/jenga/corpus"
	_ "github.com/jenga-nlp/jenga/encoders/transformer" // the encoder of the run
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/predict"
)

// A run with two tasks, team and things, answers both in one pass.
func Example() {
	model, err := predict.Open(context.Background(), trainedRun(), predict.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	answers, err := model.Predict(context.Background(), "the invoice came_late", "a window hangs")
	if err != nil {
		log.Fatal(err)
	}
	for _, answer := range answers {
		team, err := predict.Answer[outputs.LabelAnswer](answer, "team", "team")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(team.Label)
		things, err := predict.Answer[outputs.TagsAnswer](answer, "things", "things")
		if err != nil {
			log.Fatal(err)
		}
		for _, thing := range things.Spans {
			fmt.Printf(", %s at %d to %d", thing.Text, thing.Start, thing.End)
		}
		fmt.Println()
	}
	// Output:
	// billing, invoice at 4 to 11
	// support, window at 2 to 8
}

// Goroutines share one model. Texts that meet are encoded together.
func ExampleModel_Predict() {
	model, err := predict.Open(context.Background(), trainedRun(), predict.Options{MaxWaiting: 1000})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	texts := []string{"the fee is too_high", "a button hangs", "the bill came_late"}
	teams := make([]string, len(texts))
	var all sync.WaitGroup
	for i, text := range texts {
		all.Go(func() {
			answers, err := model.Predict(context.Background(), text)
			if err != nil {
				log.Print(err) // predict.ErrBusy, for example
				return
			}
			team, err := predict.Answer[outputs.LabelAnswer](answers[0], "team", "team")
			if err != nil {
				log.Fatal(err)
			}
			teams[i] = team.Label
		})
	}
	all.Wait()
	fmt.Println(teams)
	// Output: [billing support billing]
}

// The likeliest labels of one task alone, for a text of which the words are known.
func ExampleModel_PredictExamples() {
	model, err := predict.Open(context.Background(), trainedRun(), predict.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	text := corpus.Record{Fields: map[string]any{"words": []string{"a", "menu", "hangs"}}}
	example, err := text.Example()
	if err != nil {
		log.Fatal(err)
	}
	answers, err := model.PredictExamples(context.Background(), predict.Form{Tasks: []string{"team"}, Top: 2}, &example)
	if err != nil {
		log.Fatal(err)
	}
	team, err := predict.Answer[outputs.LabelAnswer](answers[0], "team", "team")
	if err != nil {
		log.Fatal(err)
	}
	for _, label := range team.Top {
		fmt.Println(label.Label)
	}
	// Output:
	// support
	// billing
}

// A label that is less probable than a Form wants is marked, and stays in the answer.
func ExampleForm() {
	model, err := predict.Open(context.Background(), trainedRun(), predict.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	sure := predict.Form{MinProbability: map[string]float64{"team": 1}} // which no label is
	answers, err := model.PredictExamples(context.Background(), sure, &corpus.Example{Text: "a window hangs"})
	if err != nil {
		log.Fatal(err)
	}
	team, err := predict.Answer[outputs.LabelAnswer](answers[0], "team", "team")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(team.Label, team.Abstained)
	// Output: support true
}
