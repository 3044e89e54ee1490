// Command serve plays a hub for scripts: serve FOLDER prints the URL for HF_ENDPOINT and serves the folder's files as
// those of the model org/small, until it is killed.
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/internal/hub/hubtest"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: serve FOLDER")
	}
	entries, err := os.ReadDir(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(os.Args[1], entry.Name()))
		if err != nil {
			log.Fatal(err)
		}
		files[entry.Name()] = string(content)
	}
	fmt.Println(hubtest.Start(files).Hub.URL)
	select {}
}
