package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// byOwnName refuses requests that call the server by a name that is none of its own.
func (s *Server) byOwnName(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := (&url.URL{Host: r.Host}).Hostname()
		own := func(name string) bool { return strings.EqualFold(name, host) }
		if len(s.options.Hosts) > 0 && net.ParseIP(host) == nil && !slices.ContainsFunc(s.options.Hosts, own) {
			s.fail(w, r, mistake(http.StatusForbidden, "the host %q: want %s, as --allow-host names them", host,
				strings.Join(s.options.Hosts, " or ")))
			return
		}
		h.ServeHTTP(w, r)
	})
}

// authorised refuses requests without the bearer token.
func (s *Server) authorised(h http.Handler) http.Handler {
	want := sha256.Sum256([]byte(s.options.Token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.options.Token != "" {
			scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			sum := sha256.Sum256([]byte(given)) // of equal length, whatever is given
			bearer, right := strings.EqualFold(scheme, "Bearer"), subtle.ConstantTimeCompare(sum[:], want[:]) == 1
			if !bearer || !right {
				err := mistake(http.StatusUnauthorized, "want the header Authorization: Bearer TOKEN")
				if bearer {
					err = mistake(http.StatusUnauthorized, "the bearer token is wrong")
				}
				w.Header().Set("WWW-Authenticate", "Bearer")
				s.fail(w, r, err)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}
