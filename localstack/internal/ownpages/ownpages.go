// Package ownpages keeps the web pages of other servers away from a server on this machine.
package ownpages

import (
	"fmt"
	"net"
	"net/http"
)

// Only returns a handler for a server on a loopback address that refuses the requests of web
// pages from other servers, and calls next for all others:
//
//   - A request whose Host is neither the address at which it arrived nor localhost, with the
//     same port, gets a 421. Otherwise another page could read the responses by a name that
//     resolves to the loopback address (DNS rebinding).
//   - A request that changes something and comes from another origin gets a 403; see
//     [http.CrossOriginProtection].
//
// Programs such as curl send neither Origin nor Sec-Fetch-Site, and are served.
func Only(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
		if at == nil || r.Host != at.String() && r.Host != fmt.Sprintf("localhost:%d", at.Port) {
			http.Error(w, fmt.Sprintf("this server is at http://%v and not at %q", at, r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}
