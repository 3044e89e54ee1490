package transformer

import "testing"

func TestConfigsOfNoNetworkAreErrors(t *testing.T) {
	for want, change := range map[string]func(*config){
		`layout "gpt" not found; available: ` + layoutNames():                       func(c *config) { c.Layout = "gpt" },
		`activation "relu" not found; want gelu, the exact one`:                     func(c *config) { c.Activation = "relu" },
		"vocabulary is 0; want 1 to 16777216":                                       func(c *config) { c.Vocabulary = 0 },
		"layers: want a whole number in [1, 1024], have 0":                          func(c *config) { c.Layers = 0 },
		"width: want a whole number in [1, 16777216], have -12":                     func(c *config) { c.Width = -12 },
		"heads: want a whole number in [1, 16777216], have 0":                       func(c *config) { c.Heads = 0 },
		"feed_forward: want a whole number in [1, 16777216], have 16777217":         func(c *config) { c.FeedForward = 1<<24 + 1 },
		"max_positions: want a whole number in [1, 16777216], have 0":               func(c *config) { c.MaxPositions = 0 },
		"token types is 129; want 0 to 128":                                         func(c *config) { c.Types = 129 },
		"width 12 is not a multiple of 5 heads":                                     func(c *config) { c.Heads = 5 },
		"the norms' epsilon is 0; want a number above 0 and below 1, such as 1e-12": func(c *config) { c.Epsilon = 0 },
		"dropout is 1; want a rate in [0, 1)":                                       func(c *config) { c.AttentionDropout = 1 },
		"a network of this size has 4295512832 parameters; want at most 1073741824": func(c *config) {
			c.Width,
				c.Heads, c.Vocabulary = 1<<8, 1, 1<<24-8
		},
	} {
		c := tiny("bert")
		change(&c)
		if err := c.check(); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if c := tiny("bert"); c.check() != nil {
		t.Errorf("%+v: %v", c, c.check())
	}
}
