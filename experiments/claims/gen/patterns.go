package main

import (
	"regexp"
)

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

// trainPatterns are the sentence patterns of the training notes.
var trainPatterns = patterns{
	openings: []string{
		"[Good morning|Good afternoon|Hello|Hi|Dear team],",
		"[Hello|Hi|Dear team], my policy is {policy}.",
		"Policy {policy}.",
		"Ref {policy}:",
		"Policy number {policy}, member since {date}.",
		"I am writing about policy {policy}.",
		"Member [called|phoned|wrote] on {date}.",
		"As discussed [on the phone|with your colleague] on {date}:",
		"[Call|Email|Letter] of {date}, policy {policy}.",
		"My form from {date} has come back.",
		"Here are the papers you asked for.",
	},
	claims: []string{
		"[Please|Kindly] [refund|reimburse|pay|cover] {claimed}.",
		"I [claim|am claiming] for {claimed}.",
		"I want to claim {claimed}.",
		"This claim is for {claimed}.",
		"My claim is about {claimed}.",
		"[Enclosed|Attached] is my claim for {claimed}.",
		"We still have to be paid for {claimed}.",
		"{claimed} {claimed is} still [open|unpaid|outstanding].",
		"{claimed} {claimed has} not been [paid|settled|reimbursed] yet.",
		"Could you [cover|pay|refund] {claimed}?",
		"What I want [refunded|reimbursed|paid] is {claimed}.",
		"{claimed} {claimed was} {amount}, please [refund|pay] it.",
		"Payment for {claimed} is [missing|outstanding].",
		"You owe us {amount} for {claimed}.",
	},
	settled: []string{
		"{other} {other was} [settled|paid|reimbursed] [last month|last year|in full|on {date}].",
		"You have already [paid|settled|refunded] {other}.",
		"{other} {other has} been [paid|settled|reimbursed|covered] already.",
		"{other} {other is} not part of my claim.",
		"I do not claim {other}.",
		"Please [ignore|forget|leave out] {other}.",
		"Nothing more is due on {other}.",
		"The file on {other} is closed.",
		"My employer took care of {other}.",
		"{other} {other was} [declined|refused] and I accept that.",
		"{other} {other is} covered by another insurer.",
		"I am not asking for {other}.",
	},
	contrasts: []string{
		"The claim is for {claimed}, not {other}.",
		"This is not for {other}, but for {claimed}.",
		"I claim {claimed} rather than {other}.",
		"Not {other} but {claimed} {claimed is} still [unpaid|open].",
		"I am claiming for {claimed} and not for {other}.",
		"While {other} {other was} paid, {claimed} {claimed is} still open.",
		"{other} {other has} been settled, {claimed} {claimed has} not been paid.",
		"{claimed} {claimed is} still unpaid, although {other} {other was} settled.",
		"Please pay {claimed} and ignore {other}.",
		"Please do not pay {other}, pay {claimed}.",
		"We are asking for {claimed}, since {other} {other was} covered by my employer.",
		"{other} {other is} closed, so this is about {claimed}.",
		"Only {claimed} {claimed is} claimed, {other} {other is} settled.",
		"I wrote {other} by mistake, my claim is for {claimed}.",
	},
	asides: []string{
		"I was seen by {provider} on {date}.",
		"{provider} sent me home after {number} days.",
		"The total was {amount}.",
		"The invoice of {date} comes to {amount}.",
		"I am {number} years old and have been with you for {number} years.",
		"The papers are from {provider}.",
		"[My doctor|The doctor] at {provider} [sent|referred] me.",
		"It all happened on {date}.",
		"I paid {amount} in cash at {provider}.",
		"There are {number} pages in all.",
		"My own share is {amount}.",
		"We live {number} miles from {provider}.",
		"{provider} has [all|the] papers.",
		"I sent the form on {date}.",
	},
	urgent: []string{
		"This is [very|most|] urgent.",
		"Please [act|answer|decide|pay] [at once|immediately|today].",
		"It cannot wait [another day|any longer].",
		"I am in [great|bad|terrible] pain.",
		"They will not treat me until you [pay|approve].",
		"We need an answer [today|within hours|this very day].",
		"[The patient|He|She] is in a critical condition.",
		"[The patient|He|She] cannot be sent home until this is approved.",
		"It is an emergency.",
		"The treatment starts tomorrow.",
		"Every hour counts.",
		"Without it I may lose my sight.",
		"Treat this as urgent, do not leave it until next week.",
		"It is not routine, it is an emergency.",
	},
	soon: []string{
		"Please answer [this week|within a week|by next week].",
		"It is not urgent but I need it this month.",
		"The reminder is due [next week|on {date}].",
		"I have to pay by {date}.",
		"A [quick|prompt] reply would help.",
		"The next visit is in two weeks.",
		"It is no emergency, but please do not wait too long.",
		"{provider} wants its money by {date}.",
		"Please [see to it|deal with it] before the end of the month.",
		"I should like to hear from you in the next few days.",
		"It can wait until next week, not longer.",
		"The deadline is [next week|this month].",
	},
	routine: []string{
		"There is no hurry.",
		"It is not urgent [at all|].",
		"[Take your time|No rush].",
		"It can wait.",
		"Answer whenever you [can|like].",
		"This is no emergency.",
		"It is only for your files.",
		"Any time this year is fine.",
		"Nothing urgent.",
		"I am in no pain any more.",
		"We do not need an answer today or this week.",
		"Please deal with urgent cases first.",
	},
	closings: []string{
		"[Thank you|Thanks|Many thanks|Regards].",
		"[Thank you|Thanks], policy {policy}.",
		"My policy number is {policy}.",
		"You have my papers under {policy}.",
		"[Kind regards|Best wishes], member {policy}.",
		"Please use {policy} when you answer.",
		"The old policy was {policy}.",
		"Please send the money to my account.",
	},
}

// devPatterns are the sentence patterns of the dev notes.
var devPatterns = patterns{
	openings: []string{
		"Good day,",
		"Hello, this is about policy {policy}.",
		"The policy in question: {policy}.",
		"The member wrote to us on {date}.",
		"I phoned your colleague on {date}.",
	},
	claims: []string{
		"I ask you to [refund|cover] {claimed}.",
		"My claim is for {claimed}.",
		"We are still to be paid for {claimed}.",
		"My claim for {claimed} is [enclosed|attached].",
		"{claimed} {claimed has} still not been paid.",
		"Would you please pay {claimed}?",
		"{amount} for {claimed} {claimed is} still outstanding.",
	},
	settled: []string{
		"{other} {other was} already [settled|covered].",
		"I am not claiming for {other}.",
		"You can ignore {other}.",
		"My wife's employer paid {other}.",
		"I accept that {other} {other was} declined.",
		"Another insurer has covered {other}.",
		"You settled {other} last month.",
	},
	contrasts: []string{
		"I am asking for {claimed}, not for {other}.",
		"This is about {claimed} rather than {other}.",
		"{other} {other was} settled last year, but {claimed} {claimed is} still open.",
		"I wrote {other}, by mistake, on my claim for {claimed}.",
		"Please cover {claimed}, as {other} {other was} paid by my employer.",
		"It is not {other} but {claimed} that I claim.",
		"Although {other} {other is} closed, {claimed} {claimed is} still open.",
		"Only {claimed} {claimed is} unpaid, since {other} {other was} settled.",
	},
	asides: []string{
		"On {date} I was at {provider}.",
		"In all it comes to {amount}.",
		"{provider} sent the invoice on {date}.",
		"I have {number} pages from {provider}.",
		"I paid {amount} myself.",
	},
	urgent: []string{
		"Please pay today, it is urgent.",
		"I need an answer at once.",
		"My pain is terrible.",
		"It is an emergency and cannot wait.",
		"They will not start until you approve.",
	},
	soon: []string{
		"Please reply by next week.",
		"The money is due on {date}.",
		"It is no emergency but I need it this week.",
		"I need your answer before the end of the month.",
		"Please do not wait longer than two weeks.",
	},
	routine: []string{
		"No hurry at all.",
		"Nothing about this is urgent.",
		"Take all the time you need.",
		"It is not an emergency.",
		"You can answer any time.",
	},
	closings: []string{
		"Thanks and regards.",
		"My policy: {policy}.",
		"Many thanks from member {policy}.",
		"Please answer under {policy}.",
	},
}

// testPatterns are the sentence patterns of the test notes.
var testPatterns = patterns{
	openings: []string{
		"[Good evening|Dear all],",
		"Hi, policy {policy} here.",
		"About policy {policy}:",
		"Member {policy} wrote on {date}.",
		"You asked for my papers on {date}.",
		"On {date} I called about policy {policy}.",
	},
	claims: []string{
		"I would like you to [pay|refund|cover] {claimed}.",
		"What I claim is {claimed}.",
		"We have not yet been [paid|reimbursed] for {claimed}.",
		"Please find [enclosed|attached] my claim for {claimed}.",
		"Can you [reimburse|cover] {claimed}?",
		"Still [unpaid|outstanding]: {claimed}.",
		"The payment for {claimed} is still missing.",
		"I am writing to claim {amount} for {claimed}.",
	},
	settled: []string{
		"{other} you have [paid|settled] already.",
		"We do not claim {other}.",
		"{other} {other is} [closed|settled] and not part of this.",
		"Please do not [pay|refund] {other}.",
		"I accept that you [refused|declined] {other}.",
		"{other} {other has} already been taken care of.",
		"Leave out {other}, please.",
		"Another insurer covered {other}.",
	},
	contrasts: []string{
		"I am not claiming for {other}, which {other was} paid, but for {claimed}.",
		"What is open is {claimed}, not {other}.",
		"We want {claimed} refunded rather than {other}.",
		"{other} {other was} [paid|settled] on {date}, {claimed} {claimed is} still unpaid.",
		"{claimed} {claimed is} still outstanding, although {other} {other was} settled.",
		"You have already paid {other}, but {claimed} {claimed is} open.",
		"{other} {other was} written by mistake, I claim {claimed}.",
		"Since my employer covered {other}, I claim only {claimed}.",
		"Please refund {claimed} and ignore {other}.",
		"Now that {other} {other is} settled, please pay {claimed}.",
		"Nothing is due on {other}, but you owe me {claimed}.",
	},
	asides: []string{
		"{provider} saw me on {date}.",
		"All in all it was {amount}.",
		"The doctor, {provider}, has the papers.",
		"After {number} days at {provider} I was sent home.",
		"My share of it is {amount}.",
		"I have been a member for {number} years.",
		"The invoice is from {date}.",
	},
	urgent: []string{
		"Urgent, please answer today.",
		"I cannot wait any longer, I am in pain.",
		"This needs to be paid at once.",
		"The patient is in an emergency, please decide immediately.",
		"Until you approve it they will not treat her.",
		"It starts tomorrow, so every hour counts.",
	},
	soon: []string{
		"It has to be paid by {date}.",
		"I need to hear from you this week.",
		"Not an emergency, but I need the money this month.",
		"Please deal with this in the next two weeks.",
		"A reply within a few days would help.",
		"The end of the month is the deadline.",
	},
	routine: []string{
		"I am in no hurry.",
		"This is not an urgent case.",
		"It can wait, take your time.",
		"No emergency, answer when you can.",
		"You need not answer this week.",
		"There is nothing urgent about it.",
	},
	closings: []string{
		"Thank you very much.",
		"Regards, {policy}.",
		"The policy number is {policy}.",
		"You can find me under {policy}.",
		"Best wishes and many thanks.",
	},
}
