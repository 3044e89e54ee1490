package serve

import (
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

func TestNamesOfOtherHostsAreRefused(t *testing.T) {
	folder := trained(t, "mails")
	o := options()
	anyHost := start(t, o, folder)
	o.Hosts = []string{"localhost", "Jenga.example"}
	s := start(t, o, folder)
	for host, status := range map[string]int{
		"localhost:8080": 200, "LOCALHOST": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "10.1.2.3": 200,
		"jenga.example": 200, "jenga.example:443": 200, "evil.example:8080": 403, "localhost.evil.example": 403,
		"127.0.0.1.evil.example": 403, "": 403,
	} {
		for _, server := range []served{s, anyHost} {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/predict", strings.NewReader(`{"text": "a"}`))
			r.Host = host
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			w := httptest.NewRecorder()
			server.Handler().ServeHTTP(w, r)
			want := status
			if server == anyHost {
				want = 200
			}
			if w.Code != want || want == 403 && !strings.Contains(w.Body.String(), "want localhost or Jenga.example") {
				t.Errorf("host %q: %d, want %d\n%s", host, w.Code, want, w.Body)
			}
		}
	}
}

func TestTheDocumentSaysThatNamesAreRefused(t *testing.T) {
	o := options()
	folder := trained(t, "mails")
	for _, o.Hosts = range [][]string{nil, {"localhost"}} {
		paths := start(t, o, folder).openAPI()["paths"].(object)
		responses := paths["/v1/tasks"].(object)["get"].(object)["responses"].(object)
		if (responses["403"] != nil) != (o.Hosts != nil) {
			t.Errorf("with hosts %v the answers of /v1/tasks are %v", o.Hosts, responses)
		}
	}
}

func TestTheTokenIsRequired(t *testing.T) {
	o := options()
	o.Token = "a token"
	s := start(t, o, trained(t, "mails"))
	for _, path := range []string{"/v1/tasks", "/metrics", "/openapi.json"} {
		for authorization, status := range map[string]int{
			"": 401, "Bearer a toke": 401, "Bearer ": 401, "Basic a token": 401, "Bearer a token": 200,
			"a token": 401, "bearer a token": 200,
		} {
			response, text := s.send(t, "GET", path, "", "Authorization", authorization)
			if response.StatusCode != status {
				t.Errorf("%s with %q: %s, want %d\n%s", path, authorization, response.Status, status, text)
			}
			wrong := strings.HasPrefix(authorization, "Bearer ")
			if status == 401 && wrong != strings.Contains(text, "is wrong") {
				t.Errorf("%s with %q: %s", path, authorization, text)
			}
			if status == 401 && response.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s with %q: no WWW-Authenticate", path, authorization)
			}
		}
	}
	if response, _ := s.send(t, "GET", "/readyz", ""); response.StatusCode != 200 {
		t.Errorf("without a token /readyz is %s", response.Status)
	}
	paths := s.openAPI()["paths"].(object)
	if of := paths["/readyz"].(object)["get"].(object)["security"]; !reflect.DeepEqual(of, []any{}) {
		t.Errorf("the document says that /readyz needs %v", of)
	}
	if paths["/metrics"].(object)["get"].(object)["responses"].(object)["401"] == nil {
		t.Error("the document says nothing of /metrics without a token")
	}
}
