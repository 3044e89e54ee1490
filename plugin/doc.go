// Package plugin holds the registries of parts, and reads their sections of an experiment file into typed options.
//
// # Options and their tags
//
// The options of a part are a struct. Its values at registration are the defaults, its tags define the rest:
//
//	type Options struct {
//		Pool    string    `yaml:"pool" choice:"cls|mean|max" doc:"how the states of a text become one"`
//		Dropout float64   `yaml:"dropout" range:"[0,1)" doc:"dropout rate of the features in training"`
//		Range   []float64 `yaml:"range" takes:"[LEAST, MOST]" doc:"of the numbers; none: any number"`
//	}
//
//	func init() { heads.Register("mine", Options{Pool: "cls", Dropout: 0.1}, New) }
//
// A value of another type, or outside its choice or range, and a key that no field has are errors with their place in
// the file. Each field is exported and has one of the types string, bool, an integer or float type, a slice of such, a
// map of such by strings or integers, a struct, Factors, an Option that reads itself, such as the Choice of a part, or
// *Section: any value, which the part decodes itself. The tags are:
//
//	yaml     the key, in snake_case; required. "-": no file can set the field. ",inline": the field is a struct, whose
//	         fields are keys beside those of the outer struct; without it they are keys of a mapping.
//	         "key,omitempty": SectionOf omits the key if the field is zero
//	choice   the valid words of a string, of each string in a list, or of a Factors; the two words of a bool, false
//	         first
//	range    the valid numbers as an interval: [0,1) has 0 and not 1; an end that is missing, as in [1,), is infinite.
//	         It holds for each number of a list, a map or a Factors
//	one      "no": a Factors that is not one number for all
//	opposite "yes": a bool that the key says the opposite of
//	doc      what the option is, with its unit, for `jenga parts` and docs/parts.md; in a section that ships with
//	         jenga the comment of the field may say it
//	takes    for the same: a description of the valid values, if type, choice and range do not describe them
//	default  for the same: what is listed in place of the registered default, if that stands for another value; in
//	         parentheses if it depends on others: "(the encoder's width)"
//	listed   "no": errors that list keys leave it out, as one that is read for files of another program alone
//
// The registered default of an option is valid even outside its choice or range. What tags cannot express, such as
// options that exclude each other, the part's constructor checks.
package plugin
