package ddblocal

import (
	"context"
	"sync"
	"testing"
	"time"
)

// ForTest returns the server that all tests of a process share: give each test a table of its own. It never skips: if
// no server can be had, the test fails and says why. The server ends with the process.
//
// A test that stops the server needs one of its own: [Start] with Options.Own.
func ForTest(t testing.TB) *Server {
	t.Helper()
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

var shared = sync.OnceValues(func() (*Server, error) {
	// Long enough for a first download on a slow line; go test itself gives up after ten minutes.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return Start(ctx)
})
