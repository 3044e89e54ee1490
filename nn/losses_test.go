package nn

import (
	"math"
	"testing"
)

func TestCoSENTComparesPairs(t *testing.T) {
	p := NewPass(1)
	scores := p.Input([]float32{0.9, 0.2, 0.5, 0.7}, 4, 1)
	loss := CoSENT(scores, []float64{1, 3, math.NaN(), 3}, 20)
	forward(t, p)
	// row 0 is below rows 1 and 3, which are equal; row 2 has no number
	want := 3 * math.Log(1+math.Exp(20*(0.9-0.2))+math.Exp(20*(0.9-0.7)))
	if got := float64(Values(loss)[0]); !(math.Abs(got-want) <= 1e-4) {
		t.Errorf("loss %v, want %v", got, want)
	}
	d := zeros(4)
	if err := p.Backward(loss, 1, Gradients{}, []*Node{scores}, [][]float32{d}); err != nil {
		t.Fatal(err)
	}
	at := func(i int, by float64) float64 {
		s := []float64{0.9, 0.2, 0.5, 0.7}
		s[i] += by
		return 3 * math.Log(1+math.Exp(20*(s[0]-s[1]))+math.Exp(20*(s[0]-s[3])))
	}
	for i := range d {
		if want := (at(i, 1e-5) - at(i, -1e-5)) / 2e-5; !(math.Abs(float64(d[i])-want) <= 1e-3) {
			t.Errorf("gradient at %d is %v, want %v", i, d[i], want)
		}
	}
}

func TestCosineOfZerosIsZero(t *testing.T) {
	p := NewPass(1)
	a, b := p.Input([]float32{0, 0, 3, 4}, 2, 2), p.Input([]float32{1, 0, 6, 8}, 2, 2)
	cosine := Cosine(a, b)
	loss := halfSquares(cosine)
	forward(t, p)
	if got := Values(cosine); got[0] != 0 || !(math.Abs(float64(got[1])-1) <= 1e-6) {
		t.Errorf("cosines %v, want 0 and 1", got)
	}
	d := zeros(4)
	if err := p.Backward(loss, 1, Gradients{}, []*Node{a}, [][]float32{d}); err != nil {
		t.Fatal(err)
	}
	finite(t, "gradient", d)
}
