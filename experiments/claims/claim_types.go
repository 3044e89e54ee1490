package claims

// claimType is a label of the notes, with the words for an expense of that type: nouns, which all splits use, and
// procedures, medical terms invented for this data whose ending determines the claim type.
type claimType struct {
	name             string
	nouns            []noun
	procedureEndings []string
}

// noun is a word for an expense.
type noun struct {
	text   string
	plural bool
}

// claimTypes are all claim types.
var claimTypes = []claimType{
	{
		"hospital",
		[]noun{{"hospital stay", false}, {"hospital bill", false}, {"inpatient bill", false}, {"ward charges", true},
			{"hospital admission", false}, {"nights on the ward", true}},
		[]string{"ectomy", "plasty"},
	},
	{
		"dental",
		[]noun{{"dental bill", false}, {"dentist's invoice", false}, {"dental work", false},
			{"visit to the dentist", false}, {"dental fees", true}, {"toothache treatment", false}, {"braces", true}},
		[]string{"dontics", "denture"},
	},
	{
		"optical",
		[]noun{{"optician's bill", false}, {"visit to the optician", false}, {"spectacles", true},
			{"contact lenses", true}, {"optical invoice", false}, {"eyewear", false}},
		[]string{"metry", "vision"},
	},
	{
		"maternity",
		[]noun{{"maternity bill", false}, {"birth of our baby", false}, {"midwife's fees", true},
			{"maternity care", false}, {"pregnancy course", false}, {"maternity fees", true}},
		[]string{"partum", "natology"},
	},
	{
		"pharmacy",
		[]noun{{"pharmacy receipt", false}, {"medicines", true}, {"prescription drugs", true},
			{"chemist's bill", false}, {"medication", false}, {"pharmacy order", false}},
		[]string{"cillin", "statin"},
	},
	{
		"physiotherapy",
		[]noun{{"physio sessions", true}, {"physiotherapist's invoice", false}, {"rehab course", false},
			{"physio bill", false}, {"exercise course", false}, {"physio course", false}},
		[]string{"therapy", "massage"},
	},
	{
		"diagnostics",
		[]noun{{"laboratory bill", false}, {"laboratory tests", true}, {"lab work", false}, {"imaging invoice", false},
			{"lab fees", true}, {"imaging bill", false}},
		[]string{"gram", "scopy"},
	},
	{
		"ambulance",
		[]noun{{"ambulance", false}, {"ambulance ride", false}, {"ambulance bill", false}, {"rescue helicopter", false},
			{"paramedics", true}, {"ambulance invoice", false}},
		[]string{"rescue", "transit"},
	},
}
