package window

import (
	"maps"
	"slices"
	"strings"
)

// curl returns the command that sends a request, for a shell.
func (r request) curl() string {
	parts := []string{"curl -i -X " + r.Method + " " + quoted(r.URL)}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		parts = append(parts, "-H "+quoted(name+": "+r.Header.Get(name)))
	}
	parts = append(parts, "-H "+quoted(keyHeader+": "+r.Key), "-d "+quoted(r.Body))
	return strings.Join(parts, " \\\n  ")
}

// quoted returns a text as one word of a POSIX shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// curlExample returns a command for the page to show, or "" if the stack has no route.
func (w *Window) curlExample() string {
	f := form{Key: "curl-1", Path: "/", Body: "{}", Caller: sampleCaller}
	if w.samples() {
		f.Sample = "payment"
	} else {
		w.mu.Lock()
		if routes := w.controls.routes; len(routes) > 0 {
			f.Path = routes[0].Path
		}
		w.mu.Unlock()
	}
	r, err := w.request(f)
	if err != nil {
		return ""
	}
	return r.curl()
}
