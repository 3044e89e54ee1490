package multitask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/bytereader"
)

// gatherResults sets the results of the batches of other ranks; all ranks call it.
func (m Cached) gatherResults(g *Group, examples []*corpus.Example, batches [][]int, results []*batchResult,
) error {
	types := g.types()
	return m.gatherBatches(len(batches), func(at int) []byte {
		var b []byte
		for h, l := range results[at].losses {
			for _, v := range []float64{l.Units, l.Sum} {
				b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
			}
			for _, p := range results[at].predicted[h] {
				one := types[h].Output().MarshalPrediction(p)
				b = append(binary.AppendUvarint(b, uint64(len(one))), one...)
			}
		}
		return b
	}, func(at int, r *bytereader.Reader) error {
		result := &batchResult{
			read: g.evaluationBatch(examples, batches[at]).Examples, losses: g.Losses(),
			predicted: make([][]corpus.Prediction, len(types)),
		}
		for h := range types {
			result.losses[h].Units, result.losses[h].Sum = r.Float64(), r.Float64()
			for range batches[at] {
				p, err := types[h].Output().UnmarshalPrediction(r.Take(r.Count()))
				if err != nil {
					return err
				}
				result.predicted[h] = append(result.predicted[h], p)
			}
		}
		results[at] = result
		return nil
	})
}

// gatherRows sets the rows of the batches of other ranks: one for each example, all of one length.
func (m Cached) gatherRows(batches [][]int, rows [][][]float32) error {
	return m.gatherBatches(len(batches), func(at int) []byte {
		var b []byte
		for _, row := range rows[at] {
			b = appendFloats(binary.AppendUvarint(b, uint64(len(row))), row)
		}
		return b
	}, func(at int, r *bytereader.Reader) error {
		for range batches[at] {
			rows[at] = append(rows[at], takeFloats(r, r.Count()))
		}
		return nil
	})
}

// gatherBatches sends the records of this rank's batches to all others, and reads theirs. Rank k of n has the batches
// k, k+n, ….
func (m Cached) gatherBatches(batches int, record func(at int) []byte,
	read func(at int, r *bytereader.Reader) error) error {
	if m.Ranks == nil {
		return nil
	}
	rank, ranks := m.Ranks.Rank()
	if ranks == 1 {
		return nil
	}
	var message []byte
	for at := rank; at < batches; at += ranks {
		one := record(at)
		message = append(binary.AppendUvarint(message, uint64(len(one))), one...)
	}
	messages, err := m.Ranks.AllGather(message)
	if err != nil {
		return err
	}
	for from, message := range messages {
		if from == rank {
			continue
		}
		all := bytereader.Reader{Rest: message}
		for at := from; at < batches; at += ranks {
			one := bytereader.Reader{Rest: all.Take(all.Count())}
			err := read(at, &one)
			if err := errors.Join(all.Err, err, one.End()); err != nil {
				return fmt.Errorf("batch %d of rank %d: %w", at, from, err)
			}
		}
	}
	return nil
}

func takeFloats(r *bytereader.Reader, n uint64) []float32 {
	if n > uint64(len(r.Rest)/4) {
		r.Fail(errors.New("the bytes end too early"))
		return nil
	}
	all := make([]float32, n)
	for i := range all {
		all[i] = r.Float32()
	}
	return all
}

func appendFloats(b []byte, values []float32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
