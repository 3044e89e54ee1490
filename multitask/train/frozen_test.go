package train

import (
	"strings"
	"testing"
)

func TestFrozenParametersAreProvenFrozen(t *testing.T) {
	for _, freeze := range []string{"none", "1", "all"} {
		m, data := threeGroups(t, freeze, 10)
		training, err := New(m, data, smallPlan())
		if err != nil {
			t.Fatal(err)
		}
		toEnd(t, training)
		proof, err := training.CheckFrozen()
		if err != nil || proof.Before != proof.After || len(proof.After) != 8 ||
			(proof.Values > 0) != (freeze != "none") {
			t.Errorf("freeze %s: CheckFrozen = %+v, %v", freeze, proof, err)
		}
		if freeze == "none" {
			continue
		}
		frozen, err := frozenParams(m)
		if err != nil {
			t.Fatal(err)
		}
		frozen[0].Data[0]++
		changed, err := training.CheckFrozen()
		want := "have changed in training: their CRC-32C was " + proof.Before + ", it is " + changed.After
		if err == nil || !strings.Contains(err.Error(), want) || changed.After == proof.After {
			t.Errorf("freeze %s: CheckFrozen of a changed parameter = %+v, %v", freeze, changed, err)
		}
	}
}

func TestParametersInAnotherMemoryAreProvenFrozen(t *testing.T) {
	m := residentModel(t, 0)
	first := m.Encoder.(*resident).params.All()[0]
	first.Frozen = true
	training, err := New(m, smallData(m, 12), smallPlan())
	if err != nil {
		t.Fatal(err)
	}
	toEnd(t, training)
	proof, err := training.CheckFrozen()
	if err != nil || proof.Values != len(first.Data) {
		t.Errorf("CheckFrozen = %+v, %v; want %d values", proof, err, len(first.Data))
	}
	first.Data[0]++
	if _, err := training.CheckFrozen(); err == nil {
		t.Error("CheckFrozen of a changed parameter: no error")
	}
}
