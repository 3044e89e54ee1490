package claims

import (
	"fmt"
	"strings"
)

// Lists of sentences are for train, dev and test, in this order, here and in the other files of this package.

// treatments state who treated the member, and when.
var treatments = [3][]string{
	{
		"I was seen by {clinic} on {day}.",
		"On {day} I went to {clinic}.",
		"{clinic} treated me on {day}.",
		"I had an appointment at {clinic} on {day}.",
		"The treatment was at {clinic} on {day}.",
	}, {
		"I was treated by {clinic} on {day}.",
		"On {day} I was at {clinic} for the treatment.",
	}, {
		"On {day} {clinic} treated me.",
		"I had my appointment on {day} at {clinic}.",
		"It was {clinic} that treated me on {day}.",
	},
}

// direct claims name their amount.
var direct = [3][]string{
	{
		"Please [refund|reimburse|pay] {sum} for {claimed}.",
		"I [claim|am claiming] {sum} for {claimed}.",
		"{claimed} {claimed was} {sum}, please [refund|pay] it.",
		"You owe us {sum} for {claimed}.",
		"My claim is for {claimed}, {sum} in all.",
		"This claim of {sum} is for {claimed}.",
		"What I want [refunded|paid] is {sum} for {claimed}.",
	}, {
		"I want you to pay {sum} for {claimed}.",
		"My claim for {claimed} is for {sum}.",
		"For {claimed} I want {sum} refunded.",
	}, {
		"I am writing to claim {sum} for {claimed}.",
		"What I claim is {sum} for {claimed}.",
		"Could you refund {sum} for {claimed}?",
		"For {claimed} you owe me {sum}.",
	},
}

// sums follow a claim that does not name its amount.
var sums = [3][]string{
	{
		"The amount is {sum}.",
		"It comes to {sum} in all.",
		"That is {sum}.",
		"I want {sum}.",
		"The sum I claim is {sum}.",
	}, {
		"In all I claim {sum}.",
		"The amount I want is {sum}.",
	}, {
		"The amount I claim is {sum}.",
		"In all it comes to {sum}.",
		"I want you to pay {sum}.",
	},
}

// shares name the total of an invoice and the member's own share; the rest is claimed.
var shares = [3][]string{
	{
		"The invoice comes to {total}, of which {share} is my own share.",
		"The total was {total}, my own share is {share}.",
		"I pay {share} of the {total} myself.",
		"Of the {total} you owe me all but {share}.",
		"The bill was {total}, I have to pay {share} of it.",
	}, {
		"The invoice is {total} and my own share {share}.",
		"I have to pay {share} of {total} myself.",
	}, {
		"My own share of the {total} is {share}.",
		"The total is {total}, I pay {share} of it myself.",
		"It was {total}, and all but {share} is for you to pay.",
	},
}

// rests claim the rest.
var rests = [3][]string{
	{
		"I claim the rest for {claimed}.",
		"Please [pay|refund] the rest of it for {claimed}.",
		"The rest is my claim for {claimed}.",
		"My claim for {claimed} is for the rest.",
	}, {
		"The rest for {claimed} is my claim.",
		"Please cover the rest for {claimed}.",
	}, {
		"I want the rest refunded for {claimed}.",
		"For {claimed} I claim the rest.",
		"You owe me the rest for {claimed}.",
	},
}

// elsewhere are amounts that are not claimed.
var elsewhere = [3][]string{
	{
		"You paid {else} for {third} last month.",
		"{else} for {third} was settled last year.",
		"I do not claim the {else} for {third}.",
		"{third} {third was} {else}, which you have paid.",
	}, {
		"Last month you paid {else} for {third}.",
		"You settled {else} for {third} last year.",
	}, {
		"For {third} you have paid {else}.",
		"I do not claim {third}, {else} in all.",
		"The {else} for {third} was paid last month.",
	},
}

// money chooses the claimed amount in euros, and sentences that state it.
func (w *writer) money() (amount int, sentences []string) {
	part := w.split.part
	switch n := w.Float64(); {
	case n < 0.4:
		return w.euros("sum", 60, 2000), []string{pick(w.Rand, direct[part])}
	case n < 0.6:
		return w.euros("sum", 60, 2000), []string{w.claimSentence(), pick(w.Rand, sums[part])}
	}
	share := w.euros("share", 20, 600)
	total := w.euros("total", share+60, 2000)
	return total - share, []string{pick(w.Rand, shares[part]), pick(w.Rand, rests[part])}
}

// settled returns a sentence about an item that is not claimed, with its amount or without.
func (w *writer) settled() string {
	if w.IntN(2) == 0 {
		w.euros("else", 60, 2000)
		return pick(w.Rand, elsewhere[w.split.part])
	}
	return strings.ReplaceAll(pick(w.Rand, w.split.from.settled), "{other", "{third")
}

// euros fills a slot with a random amount in [low, high), and returns it. The sum of its digits determines its split:
// by the last digit, as for other values, amounts of test would have endings that no amount of train has.
func (w *writer) euros(slot string, low, high int) int {
	for {
		n := low + w.IntN(high-low)
		sum := 0
		for rest := n; rest > 0; rest /= 10 {
			sum += rest % 10
		}
		if partOf(sum) == w.split.part {
			w.facts[slot] = fact{"amount", fmt.Sprintf("%d euros", n)}
			return n
		}
	}
}

// slotted reports whether a pattern has a slot.
func slotted(pattern, slot string) bool { return strings.Contains(pattern, slot) }
