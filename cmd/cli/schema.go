package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/docs"
	"github.com/jenga-nlp/jenga/experiments/config"
)

// schemaFile is the name of the file in which editors look for the schema, where an experiment's first line says so.
const schemaFile = "experiment.schema.json"

func (c *commands) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Write the JSON Schema of experiment files, by which editors complete and explain keys",
		Args:  between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			e := json.NewEncoder(c.out)
			e.SetIndent("", " ")
			e.SetEscapeHTML(false)
			return e.Encode(config.Schema(explain))
		},
	}
}

// explain returns what the pages say of a key of a part or of a section; of a part as a whole the first sentence.
func explain(kind, name, key string) string {
	if key == "" {
		return start(docs.Part(kind, name))
	}
	if text := docs.Option(kind, name, key); text != "" || kind != "section" {
		return text
	}
	return docs.Option(kind, name, "freeze."+key) // the mapping of model.freeze
}
