package cli

import (
	"net"
	"net/http"
	"testing"
)

func TestServeAnswersToItsOwnNamesAlone(t *testing.T) {
	trainMails(t)
	writeFile(t, ".", "token", "a token\n")
	for _, test := range []struct {
		args  []string
		hosts map[string]int
	}{
		{nil, map[string]int{"localhost:8080": 200, "evil.example": 403}},
		{[]string{"--allow-host", "jenga.example"}, map[string]int{"jenga.example": 200, "evil.example": 403}},
		{[]string{"--token-file", "token"}, map[string]int{"any.example": 200}},
		{[]string{"--listen", ":0"}, map[string]int{"any.example": 200}},
	} {
		address, _, end := serving(t, append([]string{"runs/mails"}, test.args...)...)
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		for host, want := range test.hosts {
			r, err := http.NewRequest("GET", "http://127.0.0.1:"+port+"/v1/tasks", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			r.Header.Set("Authorization", "Bearer a token")
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if response.StatusCode != want {
				t.Errorf("serve %v, host %s: %s, want %d", test.args, host, response.Status, want)
			}
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}
