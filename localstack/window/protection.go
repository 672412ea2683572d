package window

import (
	"fmt"
	"net/http"
)

// OwnPagesOnly returns a handler for a server on a port of 127.0.0.1 that refuses the requests
// of web pages from other servers, and calls next for all others:
//
//   - A request whose Host is neither 127.0.0.1 nor localhost, with this port, gets a 421.
//     Otherwise another page could read the responses by a name that resolves to 127.0.0.1
//     (DNS rebinding).
//   - A request that changes something and comes from another origin gets a 403; see
//     [http.CrossOriginProtection].
//
// Programs such as curl send neither Origin nor Sec-Fetch-Site, and are served.
func OwnPagesOnly(port int, next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Host != fmt.Sprintf("127.0.0.1:%d", port) && r.Host != fmt.Sprintf("localhost:%d", port) {
			http.Error(rw, fmt.Sprintf("this server is at http://127.0.0.1:%d and not at %q", port, r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(rw, r)
	})
}
