package heads

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/jenga-nlp/jenga/nn"
)

// The goldens are from scikit-learn: scripts/fixtures/gaussian.py.
func TestGaussianMatchesScikitLearn(t *testing.T) {
	text, err := os.ReadFile("testdata/gaussian.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name             string
		Rows, Covariance [][]float64
		Shrinkage        float64
		Distances        []float64
	}
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < 4 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			n, p := len(c.Rows), len(c.Rows[0])
			x := mat.NewDense(n, p, nil)
			rows := make([][]float32, n)
			for i, row := range c.Rows {
				for f, v := range row {
					x.Set(i, f, v)
					rows[i] = append(rows[i], float32(v))
				}
			}
			for f := range p {
				column := mat.Col(nil, f, x)
				for i := range n {
					x.Set(i, f, column[i]-mat.Sum(mat.NewVecDense(n, column))/float64(n))
				}
			}
			covariance, shrinkage := ledoitWolf(x)
			if !(math.Abs(shrinkage-c.Shrinkage) <= 1e-9) {
				t.Errorf("shrinkage %v, want %v", shrinkage, c.Shrinkage)
			}
			for i := range p {
				for j := range p {
					if got, want := covariance.At(i, j),
						c.Covariance[i][j]; !(math.Abs(got-want) <= 1e-9*max(1, math.Abs(want))) {
						t.Errorf("covariance[%d %d] = %v, want %v", i, j, got, want)
					}
				}
			}

			g := newGaussian(nn.NewParams(1), p)
			g.fit(rows)
			for i, row := range rows {
				if got, want := g.distance(row), c.Distances[i]; !(math.Abs(got-want) <= 1e-5*max(1, want)) {
					t.Errorf("row %d: distance %v, want %v", i, got, want)
				}
			}
		})
	}
}

func TestGaussianOfConstantFeatures(t *testing.T) {
	g := newGaussian(nn.NewParams(1), 3)
	g.fit([][]float32{{1, 5, 5}, {2, 5, 5}, {3, 5, 5}})
	if near, far := g.distance([]float32{2, 5, 5}), g.distance([]float32{2, 6, 5}); near != 0 || !(far > 0.5) ||
		math.IsInf(far, 0) {
		t.Errorf("distances %v and %v, want 0 and a finite one above 0.5: the second feature never varied", near, far)
	}
	nextTo5 := math.Nextafter32(5, 6)
	g.fit([][]float32{{1, 5, 5}, {2, nextTo5, 5}, {3, 5, nextTo5}})
	if d := g.distance([]float32{2, 5.001, 5}); !(d < 0.01) {
		t.Errorf("distance %v, want less than 0.01: rounding of float32 is not a deviation", d)
	}
	g.fit([][]float32{{7, 7, 7}})
	if d := g.distance([]float32{7, 7, 8}); math.IsNaN(d) || math.IsInf(d, 0) || d == 0 {
		t.Errorf("distance %v of constant features, want a finite one above 0", d)
	}
}

func TestGaussianOfNaNIsNotFitted(t *testing.T) {
	g := newGaussian(nn.NewParams(1), 2)
	g.fit([][]float32{{1, 2}, {float32(math.NaN()), 3}, {3, 4}})
	if d := g.distance([]float32{3, 4}); d != 5 {
		t.Errorf("distance %v, want 5: that of a Gaussian that is not fitted", d)
	}
}
