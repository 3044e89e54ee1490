package parttest

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/tasks"
)

// checkDescribed reports what a task hides of one that it has in a field, embedded or not. An embedded tasks.Task lends
// its three methods and no others, so that its tables, its survey and its warnings would be gone without an error.
func checkDescribed(t *testing.T, task tasks.Task) {
	t.Helper()
	own := reflect.ValueOf(tasks.DescriptionOf(task))
	for field, inner := range heldIn[tasks.Task](task) {
		theirs := reflect.ValueOf(tasks.DescriptionOf(inner))
		var lost []string
		for i := range theirs.NumField() {
			if !theirs.Field(i).IsZero() && own.Field(i).IsZero() {
				lost = append(lost, theirs.Type().Field(i).Name)
			}
		}
		if len(lost) > 0 {
			t.Errorf("the description of the task in field %s has %s, which the task's own lacks; give %T a method "+
				"Describe that returns tasks.DescriptionOf(x.%[1]s) with what it changes; an empty list or function "+
				"stands for what it does without", field, strings.Join(lost, ", "), task)
		}
	}
	for _, field := range unreadable(task) {
		t.Errorf("the task in field %s has a description, which %T lacks; give it a method Describe", field, task)
	}
}

// fields yields those of a struct, or of one that a pointer is to, by their descriptions.
func fields(part any) iter.Seq2[reflect.StructField, reflect.Value] {
	return func(yield func(reflect.StructField, reflect.Value) bool) {
		v := reflect.Indirect(reflect.ValueOf(part))
		if v.Kind() != reflect.Struct {
			return
		}
		for i := range v.NumField() {
			if !yield(v.Type().Field(i), v.Field(i)) {
				return
			}
		}
	}
}

// heldIn returns the parts in the exported fields of a part, by the names of the fields.
func heldIn[P any](part P) map[string]P {
	held := map[string]P{}
	for field, value := range fields(part) {
		if !field.IsExported() || value.Kind() == reflect.Interface && value.IsNil() {
			continue
		}
		if inner, ok := value.Interface().(P); ok {
			held[field.Name] = inner
		}
	}
	return held
}

// unreadable returns the names of the fields that are not exported and have a task with a description, of a task
// without one.
func unreadable(task tasks.Task) (names []string) {
	if _, ok := task.(tasks.Describer); ok {
		return nil
	}
	for field, value := range fields(task) {
		if field.IsExported() || value.Kind() != reflect.Interface || value.IsNil() {
			continue
		}
		of := value.Elem().Type()
		if of.Implements(reflect.TypeFor[tasks.Task]()) && of.Implements(reflect.TypeFor[tasks.Describer]()) {
			names = append(names, field.Name)
		}
	}
	return names
}

// checkOptions reports the traits of options that stand in those of a part, by the key ",inline" or embedded, where the
// part's own options do not have them.
func checkOptions(t *testing.T, options any) {
	t.Helper()
	for _, message := range hiddenTraits(options) {
		t.Error(message)
	}
}

func hiddenTraits(options any) (messages []string) {
	own := reflect.TypeOf(options)
	if own == nil || own.Kind() != reflect.Struct {
		return nil
	}
	for i := range own.NumField() {
		field := own.Field(i)
		if _, rest, _ := strings.Cut(field.Tag.Get("yaml"), ","); rest != "inline" && !field.Anonymous {
			continue
		}
		for trait, method := range map[reflect.Type]string{
			reflect.TypeFor[heads.HasTraits]():      "Traits",
			reflect.TypeFor[encoders.SizedByBase](): "SizedByBase",
		} {
			if field.Type.Implements(trait) && !own.Implements(trait) {
				messages = append(messages, fmt.Sprintf("the options in field %s of %v have the method %s, which "+
					"those of the part lack; give it to them", field.Name, own, method))
			}
		}
	}
	return messages
}
