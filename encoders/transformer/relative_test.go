package transformer

import "testing"

// TestBuckets compares the buckets with those of transformers' MPNetEncoder.relative_position_bucket, by their first
// distances.
func TestBuckets(t *testing.T) {
	first := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91, 1101}
	for b := range 16 {
		for n := first[b]; n < first[b+1]; n++ {
			if got := bucket(-n); got != b {
				t.Errorf("a key %d tokens before is in bucket %d, want %d", n, got, b)
			}
			if got := bucket(n); n > 0 && got != b+16 {
				t.Errorf("a key %d tokens after is in bucket %d, want %d", n, got, b+16)
			}
		}
	}
}
