package ddblocal

import (
	"context"
	"sync"
	"testing"
	"time"
)

// ForTest returns the server that all tests of a process share. Give each test its own tables. If no server can be found
// or started, ForTest fails the test and says why; it never skips the test. The server ends with the process.
//
// A test that stops the server must call [Start] with Options.Own instead.
func ForTest(t testing.TB) *Server {
	t.Helper()
	server, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return server
}

var shared = sync.OnceValues(func() (*Server, error) {
	// Long enough for a download over a slow connection, and less than the ten minutes of go test.
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	return Start(ctx)
})
