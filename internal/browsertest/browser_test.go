package browsertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"go.uber.org/goleak"

	"github.com/lambdaidem/toolkit/internal/browsertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(browsertest.Closing(m)) }

// recorder is a test that records its errors and does not fail.
type recorder struct {
	testing.TB
	errors   []string
	cleanups []func()
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// visit opens a page in a tab for a recorder, calls the recorder's cleanups, and returns its errors.
func visit(t *testing.T, html string) []string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(html))
		case "/favicon.ico": // asked for by the browser itself
			w.WriteHeader(http.StatusNoContent)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	test := &recorder{TB: t}
	ctx := browsertest.Tab(test)
	if err := chromedp.Do(ctx, chromedp.Navigate(server.URL)); err != nil {
		t.Fatal(err)
	}
	for _, f := range slices.Backward(test.cleanups) {
		f()
	}
	if ctx.Err() == nil {
		t.Error("the tab is open after its test")
	}
	return test.errors
}

func TestTab_QuietPagePasses(t *testing.T) {
	if got := visit(t, `<title>quiet</title>`); len(got) > 0 {
		t.Errorf("the test fails: %q", got)
	}
}

func TestTab_ConsoleFailsTheTest(t *testing.T) {
	for _, c := range []struct{ name, html, want string }{
		{"message", `<script>console.log("hello")</script>`, "hello"},
		{"exception", `<script>throw new Error("oops")</script>`, "oops"},
		{"rejection", `<script>Promise.reject(new Error("oops"))</script>`, "oops"},
		{"policy", `<meta http-equiv="Content-Security-Policy" content="script-src 'none'"><script>1</script>`, "Content Security Policy"},
		{"request", `<img src="missing.png">`, "404"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := visit(t, c.html); len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("the errors are %q, want one with %q", got, c.want)
			}
		})
	}
}
