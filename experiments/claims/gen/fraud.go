package main

// circumstance is a sentence with two facts that agree in a genuine note and contradict each other in fraud. Genuine
// notes have the same sentences and slot values: only the combination differs.
type circumstance struct {
	sentences [3][]string
	fill      func(w *writer, fraud bool) // sets the slots of sentences
}

// circumstances are all circumstances.
var circumstances = []circumstance{
	{ // in fraud, a clinic treats while it is closed
		[3][]string{
			{
				"{clinic} closed {late}, I was treated there {early}.",
				"I was treated at {clinic} {early}, it closed {late}.",
				"{clinic} opened {early}, I was treated there {late}.",
				"They treated me at {clinic} {late}, it opened {early}.",
				"{early} {clinic} opened and {late} they treated me.",
				"{early} they treated me and {late} {clinic} closed.",
			}, {
				"{late} {clinic} closed, {early} I was treated there.",
				"They treated me there {late}, {clinic} opened {early}.",
			}, {
				"{clinic} treated me {early} and closed {late}.",
				"It was {late} that {clinic} treated me, it opened {early}.",
				"{early} I was treated at {clinic}, {late} it closed.",
			},
		},
		fillTimes,
	},
	{ // in fraud, a document has a date before what it is about
		[3][]string{
			{
				"The invoice was written [a day|two days|a week] {after} the treatment.",
				"The receipt is dated [a day|two days|a week] {after} the visit.",
				"The estimate was written [a day|two days|a week] {before} the treatment.",
				"The estimate is dated [a day|two days|a week] {before} the visit.",
				"I was admitted [two days|a week] {before} they sent me home.",
				"They sent me home [a day|two days] {after} I was admitted.",
			}, {
				"[A day|Two days|A week] {after} the treatment the receipt was written.",
				"The estimate was dated [a day|a week] {before} the treatment.",
			}, {
				"[Two days|A week] {before} the visit the estimate was written.",
				"The invoice is dated [a day|two days] {after} the treatment.",
				"It was [a day|a week] {after} I was admitted that they sent me home.",
			},
		},
		func(w *writer, fraud bool) { w.fillTwo(fraud, "before", "after", [2]string{"before", "after"}) },
	},
	{ // in fraud, the unconscious walk
		[3][]string{
			{
				"I was {awake} and {arrival}.",
				"I {arrival}, I was {awake} at the time.",
				"When they saw me I was {awake}, I {arrival}.",
				"I {arrival} and was {awake}.",
			}, {
				"I was {awake} when they saw me and I {arrival}.",
				"I was {awake}, I {arrival}.",
			}, {
				"At the time I was {awake} and {arrival}.",
				"I {arrival}, and they saw me {awake}.",
				"I {arrival} when I was {awake}.",
			},
		},
		fillArrival,
	},
}

// circumstance draws a sentence of one of the circumstances and sets its slots.
func (w *writer) circumstance(fraud bool) string {
	c := pick(w.Rand, circumstances)
	c.fill(w, fraud)
	return pick(w.Rand, c.sentences[w.split.index])
}

// fillTwo sets two slots to two texts, swapped in fraud.
func (w *writer) fillTwo(fraud bool, first, second string, texts [2]string) {
	if fraud {
		first, second = second, first
	}
	w.slotValues[first], w.slotValues[second] = slotValue{"", texts[0]}, slotValue{"", texts[1]}
}

// fillTimes sets {early} and {late}.
func fillTimes(w *writer, fraud bool) {
	times := [][2]string{{"last year", "this year"}, {"in January", "in June"}, {"in spring", "in autumn"}}
	w.fillTwo(fraud, "early", "late", pick(w.Rand, times))
}

// fillArrival sets {awake} and {arrival}. The unconscious are carried in, except in fraud.
func fillArrival(w *writer, fraud bool) {
	awake, walked := w.IntN(3) > 0, w.IntN(2) == 0
	if fraud {
		awake, walked = false, true
	} else if !awake {
		walked = false
	}

	states := []string{"unconscious", "not awake", "not conscious"}
	if awake {
		states = []string{"awake", "conscious", "wide awake"}
	}
	arrivals := []string{"was carried in", "was brought there", "had to be carried"}
	if walked {
		arrivals = []string{"walked in by myself", "drove there myself", "went there on foot"}
	}
	w.slotValues["awake"] = slotValue{"", pick(w.Rand, states)}
	w.slotValues["arrival"] = slotValue{"", pick(w.Rand, arrivals)}
}
