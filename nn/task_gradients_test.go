package nn

import (
	"slices"
	"testing"
)

func TestCombinedGradientsHaveTheRowsOfAllTasks(t *testing.T) {
	s, shared := twoTasks()
	table := shared[0]
	for round := range 2 {
		s.Zero()
		for task, row := range []int32{7, 11} {
			s.SelectTask(task)
			s.Gradients().AddRows(table, []float32{3, 0, 0}, []int32{row})
		}
		s.Combine([]float64{1, 2})
		if sum, err := s.SumSquares(); sum != 9+36 || err != nil {
			t.Errorf("round %d: the squares sum to %v, want 45", round, sum)
		}
		var rows []int
		for row, touched := range s.gradients.of[table].touched {
			if touched != 0 {
				rows = append(rows, row)
			}
		}
		if !slices.Equal(rows, []int{7, 11}) {
			t.Errorf("round %d: the rows with a gradient are %v, want 7 and 11", round, rows)
		}
	}
}

// One task may have a whole gradient, as of an output layer tied to the table, and another one by rows.
func TestCombinedGradientsOfRowsAndOfTheWhole(t *testing.T) {
	s, shared := twoTasks()
	table := shared[0]
	s.SelectTask(0)
	s.Gradients().Of(table)[5*3] = 4
	s.SelectTask(1)
	s.Gradients().AddRows(table, []float32{3, 0, 0}, []int32{7})
	s.Combine([]float64{1, 1})
	if sum, err := s.SumSquares(); sum != 16+9 || err != nil {
		t.Errorf("the squares sum to %v, want 25", sum)
	}
}
