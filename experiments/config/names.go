package config

import "fmt"

// CheckName returns an error if a text cannot be the name of a task.
func CheckName(text string) error {
	if !isName.MatchString(text) {
		return fmt.Errorf("want a name, have %q; %s", text, nameRule)
	}
	return nil
}
