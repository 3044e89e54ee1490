package claims

import "regexp"

// patterns are the sentence patterns that the notes of a split are made of. A pattern may have:
//
//   - alternatives, of which one is drawn: [paid|settled], [very|most|];
//   - slots, filled in by writer.writePattern: an entity such as {policy}, {date}, {provider} or {amount}; {number},
//     which is no entity; an expense, {claimed} for the one that the member claims, {other} and {third} for further
//     ones;
//   - verbs that agree with an expense: {claimed is}, {other was}, {third has}.
type patterns struct {
	openings  []string
	claims    []string // the member claims an expense
	settled   []string // another expense is not claimed
	contrasts []string // one expense is claimed, another is not
	asides    []string // no bearing on the labels, but entities
	urgent    []string
	soon      []string
	routine   []string
	closings  []string
}

// alternativesPattern matches alternatives.
var alternativesPattern = regexp.MustCompile(`\[[^\]]*\]`)

// slotPattern matches a slot or verb. Its groups are the slot and the verb's singular, if there is one.
var slotPattern = regexp.MustCompile(`\{(\w+)(?: (\w+))?\}`)
