package iam

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/localstack/template"
)

// The proxy delivers a request even if its sender is gone, because DynamoDB would receive it too.
func TestProxy_DeliversForASenderThatHasGone(t *testing.T) {
	arrived := 0
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived++ }))
	defer service.Close()
	checker, err := New(&template.Template{})
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := checker.Start(DynamoDB, service.URL, "local", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close() //nolint:errcheck // the test is over
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	proxy.server.Handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodPost, "/", strings.NewReader("{}")))
	if arrived != 1 {
		t.Errorf("%d requests arrived; want 1", arrived)
	}
}
