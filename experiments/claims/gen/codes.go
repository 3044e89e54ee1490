package main

// code is a code of a claim beside its type, with the sentences that assert and that deny it.
type code struct {
	name               string
	asserting, denying [3][]string
}

// impliedCodes are the codes that follow from a claim type.
var impliedCodes = map[string]string{
	"hospital": "inpatient", "dental": "outpatient", "optical": "outpatient", "physiotherapy": "outpatient",
	"pharmacy": "prescription",
}

// settingCodes are the codes of which a note has at most one, if its claim type implies no code.
var settingCodes = []code{
	{"inpatient", [3][]string{
		{"I stayed overnight.", "They kept me for [two|three] nights.", "I spent the night on the ward.",
			"I was kept in for {number} days.", "I had to spend {number} nights there."},
		{"They kept me there overnight.", "I was there for [two|three] nights."},
		{"I spent [two|three] nights there.", "I stayed for the night.", "I had to be kept overnight."},
	}, [3][]string{}},
	{"outpatient", [3][]string{
		{"I went home the same day.", "I did not stay overnight.", "It was done in an hour and I went home.",
			"They did not keep me, I went home the same day."},
		{"The same day I went home.", "I did not have to stay overnight."},
		{"I was not kept overnight.", "In an hour I was home.", "They sent me home on the same day."},
	}, [3][]string{}},
}

// otherCodes are the codes of which a note has any number.
var otherCodes = []code{
	{"abroad", [3][]string{
		{"It happened abroad.", "I was on holiday abroad.", "We were travelling in another country.",
			"I was treated in a foreign country.", "I fell ill on a journey abroad."},
		{"I fell ill in another country.", "It happened on a holiday abroad."},
		{"I was treated abroad, on a holiday.", "We were in a foreign country.",
			"It happened on a journey in another country."},
	}, [3][]string{
		{"I was not abroad.", "It was at home, not in another country."},
		{"We were at home, not abroad."},
		{"It was not abroad.", "I was not on a journey, it was at home."},
	}},
	{"accident", [3][]string{
		{"I fell off my bicycle.", "I slipped on the stairs and broke my arm.", "A car hit me.",
			"It was an accident at work.", "I had an accident on the road.", "I was hit by a car."},
		{"I slipped and fell on the road.", "It was an accident with my bicycle.", "A car hit my bicycle."},
		{"I fell on the stairs at work.", "I broke my arm in an accident.", "My bicycle was hit by a car."},
	}, [3][]string{
		{"There was no accident.", "It was an illness, not an accident."},
		{"It was not from an accident."},
		{"It was no accident but an illness."},
	}},
	{"chronic", [3][]string{
		{"I have had this illness for years.", "It will never go away.", "I need it every month for life.",
			"It is a chronic illness.", "I have been ill with it since I was a child.", "I need it every week."},
		{"I have been ill for years.", "I will need it for life.", "It will not go away."},
		{"It is chronic, I have had it since I was a child.", "I need it every week, for years.",
			"This illness will never go away."},
	}, [3][]string{
		{"It is not a chronic illness.", "It will go away in a few weeks.", "I did not have this illness before."},
		{"It is not chronic."},
		{"The illness is not chronic.", "I did not have it before."},
	}},
	{"referral", [3][]string{
		{"My family doctor sent me.", "My doctor wrote a referral.", "I have a letter from my doctor.",
			"I was referred by my doctor.", "The referral is enclosed."},
		{"The referral is from my family doctor.", "A doctor referred me."},
		{"I was sent by my family doctor.", "My doctor referred me with a letter.",
			"I have a referral from my doctor."},
	}, [3][]string{
		{"I went without a referral.", "No doctor sent me.", "There is no letter from a doctor."},
		{"I was not referred."},
		{"I went there without a letter from a doctor.", "There is no referral."},
	}},
	{"follow_up", [3][]string{
		{"It was the check after my operation.", "This was the second visit.", "I had to come back for a check.",
			"It was a follow-up visit.", "They wanted to see me again after [two|three|six] weeks."},
		{"They wanted to see me again.", "It was a second check after the operation."},
		{"I had to come back for a follow-up.", "This was a check [two|three] weeks after the operation.",
			"They wanted me to come back again."},
	}, [3][]string{
		{"It was my first visit.", "There was no check after it.", "I did not have to come back."},
		{"This was the first visit."},
		{"It was the first visit, no follow-up.", "I did not come back for a check."},
	}},
	{"prescription", [3][]string{
		{"I was given a prescription too.", "The doctor prescribed tablets.", "There are tablets on the invoice, too.",
			"I had to buy tablets, as prescribed."},
		{"They prescribed tablets, too.", "There was a prescription for tablets."},
		{"I had to buy prescribed tablets too.", "The doctor gave me a prescription.",
			"There is a prescription for tablets, too."},
	}, [3][]string{
		{"I was given no tablets.", "Nothing was prescribed.", "The doctor gave me no prescription."},
		{"I was not given a prescription."},
		{"No tablets were prescribed.", "I had to buy no tablets."},
	}},
}

// drawCodes draws the codes of a note with the claim type, and the sentences about them: three at most.
func (w *writer) drawCodes(claimed claimType) (names, sentences []string) {
	split := w.split.index
	names = []string{}
	if name := impliedCodes[claimed.name]; name != "" {
		names = append(names, name)
	} else if w.Float64() < 0.6 {
		setting := pick(w.Rand, settingCodes)
		names, sentences = append(names, setting.name), append(sentences, pick(w.Rand, setting.asserting[split]))
	}
	for _, c := range otherCodes {
		if c.name == impliedCodes[claimed.name] || len(sentences) == 3 {
			continue
		}
		switch n := w.Float64(); {
		case n < 0.16:
			names, sentences = append(names, c.name), append(sentences, pick(w.Rand, c.asserting[split]))
		case n < 0.23:
			sentences = append(sentences, pick(w.Rand, c.denying[split]))
		}
	}
	w.Shuffle(len(sentences), func(i, j int) { sentences[i], sentences[j] = sentences[j], sentences[i] })
	return names, sentences
}
