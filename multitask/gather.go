package multitask

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/corpus"
)

// batchResult is what one batch of an evaluation has come to: the losses of its heads, and the predictions
// [heads][examples].
type batchResult struct {
	read      []*corpus.Example // with the targets of heads that change batches
	losses    []Loss
	predicted [][]corpus.Prediction
}

// gatherResults sets the results of the batches of other ranks; all ranks call it.
func (m cachedModel) gatherResults(g *Group, examples []*corpus.Example, batches [][]int, results []*batchResult,
) error {
	types := g.types()
	return m.gatherBatches(len(batches), func(at int) []byte {
		var b []byte
		for h, l := range results[at].losses {
			b = appendFloat64(appendFloat64(b, l.Units), l.Sum)
			for _, p := range results[at].predicted[h] {
				one := types[h].Output().MarshalPrediction(p)
				b = append(binary.AppendUvarint(b, uint64(len(one))), one...)
			}
		}
		return b
	}, func(at int, r *recordReader) error {
		result := &batchResult{
			read: g.evaluationBatch(examples, batches[at]).Examples, losses: g.losses(),
			predicted: make([][]corpus.Prediction, len(types)),
		}
		for h := range types {
			result.losses[h].Units, result.losses[h].Sum = r.float64(), r.float64()
			for range batches[at] {
				p, err := types[h].Output().UnmarshalPrediction(r.take(int(r.count())))
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
func (m cachedModel) gatherRows(batches [][]int, rows [][][]float32) error {
	return m.gatherBatches(len(batches), func(at int) []byte {
		var b []byte
		for _, row := range rows[at] {
			b = appendFloats(binary.AppendUvarint(b, uint64(len(row))), row)
		}
		return b
	}, func(at int, r *recordReader) error {
		for range batches[at] {
			rows[at] = append(rows[at], r.floats(int(r.count())))
		}
		return nil
	})
}

// gatherBatches sends the records of this rank's batches to all others, and reads theirs. Rank k of n has the batches
// k, k+n, ….
func (m cachedModel) gatherBatches(batches int, record func(at int) []byte, read func(at int, r *recordReader) error,
) error {
	if m.ranks == nil {
		return nil
	}
	rank, ranks := m.ranks.Rank()
	var message []byte
	for at := rank; at < batches; at += ranks {
		one := record(at)
		message = append(binary.AppendUvarint(message, uint64(len(one))), one...)
	}
	messages, err := m.ranks.AllGather(message)
	if err != nil {
		return err
	}
	for from, message := range messages {
		if from == rank {
			continue
		}
		all := recordReader{rest: message}
		for at := from; at < batches; at += ranks {
			one := recordReader{rest: all.take(int(all.count()))}
			err := read(at, &one)
			if err := errors.Join(all.err, err, one.err); err != nil {
				return fmt.Errorf("batch %d of rank %d: %w", at, from, err)
			}
		}
	}
	return nil
}

// recordReader reads values from a record until the first error.
type recordReader struct {
	rest []byte
	err  error
}

func (r *recordReader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.err, r.rest = errors.New("a record of another rank ends too early"), nil
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *recordReader) count() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > math.MaxInt {
		r.err, r.rest = errors.New("a record of another rank has no number where one should be"), nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *recordReader) float64() float64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

func (r *recordReader) floats(n int) []float32 {
	b := r.take(4 * min(n, len(r.rest)))
	if b == nil {
		return nil
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return values
}

func appendFloat64(b []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
}

func appendFloats(b []byte, values []float32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}
