package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// numbersWithoutLabel are the values of {number}, which is not an entity.
var numbersWithoutLabel = []string{"two", "three", "four", "five", "six", "seven", "ten", "twelve"}

// entityGenerators draw an entity value that the split with the index owns, by label.
var entityGenerators = map[string]func(r *rand.Rand, split int) string{
	"amount":   drawAmountText,
	"date":     drawDate,
	"policy":   drawPolicy,
	"provider": drawProvider,
}

// splitOfNumber returns the index of the split that owns a number. Each number belongs to one split: last digits 0 to 5
// to train, 6 and 7 to dev, 8 and 9 to test.
func splitOfNumber(n int) int { return max(0, n%10-4) / 2 }

// drawNumber draws a number in [low, high) that the split owns.
func drawNumber(r *rand.Rand, split, low, high int) int {
	for {
		if n := low + r.IntN(high-low); splitOfNumber(n) == split {
			return n
		}
	}
}

func drawAmountText(r *rand.Rand, split int) string {
	return fmt.Sprintf("%d %s", drawNumber(r, split, 100, pick(r, []int{1000, 1000, 10000})),
		pick(r, []string{"euros", "dollars", "shillings"}))
}

func drawDate(r *rand.Rand, split int) string {
	// the years are no leap years, so that a calendar day has the same number, and owner, in both
	day := time.Date(2022+r.IntN(2), 1, 1+drawNumber(r, split, 0, 365), 0, 0, 0, 0, time.UTC)
	return ordinal(day.Day()) + day.Format(pick(r, []string{" January", " January 2006", " Jan", " of January"}))
}

// ordinal writes the day of a month: 1st, 2nd, 3rd, 4th.
func ordinal(day int) string {
	ending := "th"
	if day/10 != 1 && day%10 >= 1 && day%10 <= 3 {
		ending = []string{"st", "nd", "rd"}[day%10-1]
	}
	return fmt.Sprintf("%d%s", day, ending)
}

// drawPolicy draws a policy number, such as MED40312.
func drawPolicy(r *rand.Rand, split int) string {
	return fmt.Sprintf("%s%d", pick(r, []string{"HK", "MED", "POL"}), drawNumber(r, split, 10000, 100000))
}

// drawProvider draws a doctor or a medical facility.
func drawProvider(r *rand.Rand, split int) string {
	if r.IntN(3) == 0 {
		return "Dr " + joinHalves(r, split, surnameHalves)
	}
	return drawFacility(r, split)
}

// drawFacility draws a medical facility, such as Lakeside Clinic.
func drawFacility(r *rand.Rand, split int) string {
	return joinHalves(r, split, placeHalves) + pick(r, []string{" Clinic", " Clinic", " Hospital", " Health Centre"})
}

// joinHalves makes a name of a first and a second half. Each pair of halves belongs to one split; all splits have all
// halves.
func joinHalves(r *rand.Rand, split int, halves [2][]string) string {
	for {
		i, j := r.IntN(len(halves[0])), r.IntN(len(halves[1]))
		if splitOfNumber(3*i+j) == split {
			return halves[0][i] + halves[1][j]
		}
	}
}

// Halves of the names of providers.
var (
	placeHalves = [2][]string{
		{"Lake", "River", "Hill", "Oak", "North", "East", "West", "South", "Green", "Silver", "Rose", "Stone", "Maple",
			"Ash", "Wood", "Fair"},
		{"side", "bank", "crest", "field", "gate", "view", "brook", "moor", "ford", "stead", "wick", "mere"},
	}
	surnameHalves = [2][]string{
		{"Oka", "Wanji", "Lind", "Castel", "Petro", "Yama", "Had", "Nova", "Ferre", "Kowal", "Orte", "Rah"},
		{"for", "ru", "qvist", "lano", "vic", "da", "dad", "kov", "ira", "ski", "gan", "man"},
	}
)
