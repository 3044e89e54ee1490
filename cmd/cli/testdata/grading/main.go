// Command grading is jenga with an output kind of another module: grades of an ordered scale.
package main

import (
	"github.com/jenga-nlp/jenga/cmd/cli"

	_ "example.com/grading/grade"
)

func main() { cli.Main() }
