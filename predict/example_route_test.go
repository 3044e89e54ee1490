package predict_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/predict"
)

// A router reads each mail once: it sends it to a team, and masks what the mail is about, so that a log may have it. A
// run that was trained on intents and on names or numbers does the same with those.
func Example_route() {
	model, err := predict.Open(context.Background(), trainedRun(), predict.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()

	mails := []string{"the invoice has the_wrong_sum", "a menu crashes_at_start"}
	answers, err := model.PredictExamples(context.Background(), inBytes, examplesOf(mails)...)
	if err != nil {
		log.Fatal(err)
	}
	for i, answer := range answers {
		team, err := predict.Answer[outputs.LabelAnswer](answer, "team", "team")
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s: %s\n", team.Label, masked(mails[i], answer))
	}
	// Output:
	// billing: the [THING] has the_wrong_sum
	// support: a [THING] crashes_at_start
}

// masked returns a mail with its spans replaced by their labels.
func masked(mail string, answer predict.Prediction) string {
	things, err := predict.Answer[outputs.TagsAnswer](answer, "things", "things")
	if err != nil {
		log.Fatal(err)
	}
	var b strings.Builder
	at := 0
	for _, span := range things.Spans { // in order, none within another
		fmt.Fprintf(&b, "%s[%s]", mail[at:span.Start], strings.ToUpper(span.Label))
		at = span.End
	}
	return b.String() + mail[at:]
}
