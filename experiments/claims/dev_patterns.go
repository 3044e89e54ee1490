package claims

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
