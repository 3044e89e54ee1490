package heads

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/jenga-nlp/jenga/nn"
)

func init() {
	Register("focus", focusDefaults, newFocus, scorable...)
}

var focusDefaults = FocusOptions{
	LSTMLayers: 2, LSTMHidden: 256, AttentionHeads: 4, MinAperture: 0.02, Normalise: "sum", Pool: "mean",
	Dropout: ModelDropout, ObjectiveOptions: PlainObjective,
}

// FocusOptions are the keys that may stand beside `type: focus`.
type FocusOptions struct {
	LSTMLayers     int     `yaml:"lstm_layers" range:"[0,16]" doc:"bidirectional LSTM layers before the lens; 0: none"`
	LSTMHidden     int     `yaml:"lstm_hidden" range:"[1,8192]" doc:"features of each direction"`
	AttentionHeads int     `yaml:"attention_heads" range:"[1,256]" doc:"heads of the attention; a divisor of its width"`
	MinAperture    float64 `yaml:"min_aperture" range:"[0.0001,1]" doc:"the narrowest aperture, in lengths of the text"`
	LensPerHead    bool    `yaml:"lens_per_head" doc:"whether each attention head has a lens of its own"`
	Normalise      string  `yaml:"normalise" choice:"sum|softmax" doc:"of attention times lens; softmax is nearly flat"`

	Pool    string  `yaml:"pool" choice:"cls|mean|max|attention" doc:"cls: the first token; attention: a learned mean"`
	Dropout float64 `yaml:"dropout" range:"[-1,1)" doc:"dropout rate of LSTMs, attention and output; -1: model.dropout"`

	ObjectiveOptions `yaml:",inline"`
}

// Traits implements HasTraits: it returns the lenses.
func (o FocusOptions) Traits() Traits {
	lenses := Lenses{Name: "focus", Count: 1}
	if o.LensPerHead {
		lenses.Count = o.AttentionHeads
	}
	return Traits{Lenses: lenses}
}

// focus is attention through a Gaussian lens (Focus Mechanism): a query's centre μ and aperture σ are the mean and
// deviation of its lens over the text. With p_j = j/(T-1) the position of token j of T, 0 where T is 1, query i of an
// attention head of width d weighs the values V by
//
//	x = BiLSTM(h)    μ = sigmoid(w_μ·x + b_μ)    σ = min_aperture + softplus(w_σ·x + b_σ)
//	weights_ij = softmax_j(q_i·k_j/√d - (p_j - μ_i)²/(2σ_i²))
//	y = LayerNorm(x + W_O·Concat_heads(weights·V))
//
// which is attention A = softmax(q·k/√d) times lens L = exp(-(p - μ)²/2σ²), divided by the sum. With normalise: softmax
// they are softmax_j(A_ij·L_ij). All attention heads share a query's μ and σ, unless lens_per_head. Q, K, V and W_O
// have biases, LayerNorm's ε is 1e-12. BiLSTM is as many layers as lstm_layers, each as those of the encoder bilstm.
// The logits are one linear layer over a text's pooled y, or over that of each word's first piece.
type focus struct {
	scored
	lstm             []*nn.BiLSTM
	between          []nn.Dropout
	query, key       *nn.Linear
	value, out       *nn.Linear
	centre, aperture *nn.Linear
	least            float32
	lens             nn.Focus
	norm             *nn.LayerNorm
	drop             nn.Dropout
	score            *nn.Linear
}

// lstmSize is how many parameters the LSTM layers over states of a width have.
func (o FocusOptions) lstmSize(width int) int {
	n := 0
	for range o.LSTMLayers {
		n += nn.BiLSTMSize(width, o.LSTMHidden)
		width = 2 * o.LSTMHidden
	}
	return n
}

func newFocus(o FocusOptions, env Env) (Head, error) {
	if o.LSTMLayers == 0 && o.LSTMHidden != focusDefaults.LSTMHidden {
		return nil, errors.New("lstm_hidden has no effect with lstm_layers: 0")
	}
	rate, err := dropoutRate(o.Dropout, env)
	if err != nil {
		return nil, err
	}
	const most = 1 << 28 // floats
	if n := o.lstmSize(env.Width); n > most {
		return nil, fmt.Errorf("lstm_layers is %d of lstm_hidden %d: they have %d parameters; at most %d are possible",
			o.LSTMLayers, o.LSTMHidden, n, most)
	}
	h := &focus{drop: nn.NewDropout(env.Params.In("drop"), rate), least: float32(o.MinAperture)}

	// the states that the lens is over
	width := env.Width
	for i := range o.LSTMLayers {
		at := env.Params.In("lstm").In(strconv.Itoa(i))
		h.lstm = append(h.lstm, nn.NewBiLSTM(at, width, o.LSTMHidden))
		if i > 0 {
			h.between = append(h.between, nn.NewDropout(at.In("drop"), rate))
		}
		width = h.lstm[i].Width()
	}
	if width%o.AttentionHeads != 0 {
		return nil, fmt.Errorf("attention_heads is %d, which does not divide the width, %d", o.AttentionHeads, width)
	}
	h.addLens(o, env.Params, width, rate)

	// the layer of logits
	env.Width = width
	pool := o.Pool
	if env.Output.PerWord {
		if pool != focusDefaults.Pool {
			return nil, poolsNothing(pool)
		}
		pool = "cls"
	}
	if h.scored, err = newScored(pool, o.ObjectiveOptions, env); err != nil {
		return nil, err
	}
	h.score = nn.NewLinear(env.Params.In("score"), width, h.outputs)
	return h, nil
}

// addLens makes the attention through a lens over states of a width, below a head's params.
func (h *focus) addLens(o FocusOptions, params nn.Params, width int, dropout float64) {
	lenses := o.Traits().Lenses
	at := params.In(lenses.Name)
	h.lens = nn.Focus{Heads: o.AttentionHeads, Dropout: dropout, Place: at.In("drop").Path(),
		SoftmaxTwice: o.Normalise == "softmax", Name: at.Path()}
	h.query, h.key = nn.NewLinear(at.In("query"), width, width), nn.NewLinear(at.In("key"), width, width)
	h.value, h.out = nn.NewLinear(at.In("value"), width, width), nn.NewLinear(at.In("out"), width, width)
	h.centre = nn.NewLinear(at.In("centre"), width, lenses.Count)
	h.aperture = nn.NewLinear(at.In("aperture"), width, lenses.Count)
	for i := range h.aperture.Bias.Data { // σ begins at 1, a lens so wide that it leaves attention nearly as it is
		h.aperture.Bias.Data[i] = float32(math.Log(math.Expm1(max(1-o.MinAperture, 1e-3))))
	}
	h.norm = nn.NewLayerNorm(at.In("norm"), width, 1e-12)
}

// Describe returns that of the objective: the LSTMs and the lens read all states.
func (h *focus) Describe() Description { return h.Objective.Describe() }

func (h *focus) Logits(p *nn.Pass, seen nn.Hidden) Logits {
	x := seen.States // [T D]
	for i, layer := range h.lstm {
		if i > 0 {
			x = h.between[i-1].Apply(p, x)
		}
		x = layer.Apply(p, x, seen.Rows) // [T 2H]
	}
	centre := nn.Sigmoid(h.centre.Apply(x))               // [T 1] or [T heads]
	aperture := nn.Softplus(h.aperture.Apply(x), h.least) // [T 1] or [T heads]
	y := h.lens.Apply(p, h.query.Apply(x), h.key.Apply(x), h.value.Apply(x), centre, aperture, seen.Rows)
	seen.States = h.norm.Apply(nn.Sum(x, h.out.Apply(y)))               // [T 2H]
	return LogitsOf(seen, h.score.Apply(h.drop.Apply(p, h.pool(seen)))) // [B L] or [W L]
}
