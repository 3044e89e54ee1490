// Command jenga trains one shared encoder on many tasks. To build a jenga with parts of your own, copy this file and
// add a blank import of their packages.
package main

import (
	"github.com/jenga-nlp/jenga/cmd/cli"
	_ "github.com/jenga-nlp/jenga/encoders/hugot"
)

func main() { cli.Main() }
