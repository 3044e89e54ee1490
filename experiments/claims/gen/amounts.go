package main

import (
	"fmt"
	"strings"
)

// Lists of sentences [3][]string, here and in the other files, are for train, dev and test, in this order.

// claimsWithAmount claim an expense and an amount.
var claimsWithAmount = [3][]string{
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

// amountSentences follow a claim without an amount.
var amountSentences = [3][]string{
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

// copaymentSentences have the total of an invoice and the member's copayment. The difference is claimed.
var copaymentSentences = [3][]string{
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

// remainderClaims claim the difference.
var remainderClaims = [3][]string{
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

// otherAmountSentences have an amount that is not claimed.
var otherAmountSentences = [3][]string{
	{
		"You paid {other_sum} for {third} last month.",
		"{other_sum} for {third} was settled last year.",
		"I do not claim the {other_sum} for {third}.",
		"{third} {third was} {other_sum}, which you have paid.",
	}, {
		"Last month you paid {other_sum} for {third}.",
		"You settled {other_sum} for {third} last year.",
	}, {
		"For {third} you have paid {other_sum}.",
		"I do not claim {third}, {other_sum} in all.",
		"The {other_sum} for {third} was paid last month.",
	},
}

// drawClaim draws the amount claimed, in euros, and the sentences that claim it.
func (w *writer) drawClaim() (amount int, sentences []string) {
	split := w.split.index
	switch n := w.Float64(); {
	case n < 0.4:
		return w.fillEuros("sum", 60, 2000), []string{pick(w.Rand, claimsWithAmount[split])}
	case n < 0.6:
		return w.fillEuros("sum", 60, 2000), []string{w.claimWithoutAmount(), pick(w.Rand, amountSentences[split])}
	}
	copayment := w.fillEuros("share", 20, 600)
	total := w.fillEuros("total", copayment+60, 2000)
	return total - copayment, []string{pick(w.Rand, copaymentSentences[split]), pick(w.Rand, remainderClaims[split])}
}

// claimWithoutAmount draws a sentence that claims an expense and has no amount.
func (w *writer) claimWithoutAmount() string {
	for {
		if s := pick(w.Rand, w.split.patterns.claims); !strings.Contains(s, "{amount}") {
			return s
		}
	}
}

// settledSentence draws a sentence about an expense that is not claimed, with or without its amount.
func (w *writer) settledSentence() string {
	if w.IntN(2) == 0 {
		w.fillEuros("other_sum", 60, 2000)
		return pick(w.Rand, otherAmountSentences[w.split.index])
	}
	return strings.ReplaceAll(pick(w.Rand, w.split.patterns.settled), "{other", "{third")
}

// fillEuros sets a slot to an amount in [low, high) and returns it. Which split owns an amount depends on the sum of
// its digits: if it depended on the last digit, as for other numbers, no amount in test would end like one in train.
func (w *writer) fillEuros(slot string, low, high int) int {
	for {
		n := low + w.IntN(high-low)
		digitSum := 0
		for rest := n; rest > 0; rest /= 10 {
			digitSum += rest % 10
		}
		if splitOfNumber(digitSum) == w.split.index {
			w.slotValues[slot] = slotValue{"amount", fmt.Sprintf("%d euros", n)}
			return n
		}
	}
}
