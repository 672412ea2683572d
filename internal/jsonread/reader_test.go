//go:build !race

package jsonread_test

import (
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/internal/jsonread"
)

// A text is read into one piece of memory, however many escapes it has. A stored answer is JSON
// inside a JSON string, so each of its quotes is escaped. The race detector would add allocations.
func TestR1_ATextWithEscapesIsOneAllocation(t *testing.T) {
	const times = 100
	text := `"` + strings.Repeat(`{\"currency\":\"EUR\"}`, times) + `" , "more"`
	var read string
	allocations := testing.AllocsPerRun(10, func() {
		r := jsonread.New(text)
		read, _ = r.Text()
	})
	if want := strings.Repeat(`{"currency":"EUR"}`, times); read != want {
		t.Errorf("it is read as %q; want %q", read, want)
	}
	if allocations != 1 {
		t.Errorf("it takes %v allocations; want 1", allocations)
	}
}

// A text without its end is rejected, wherever it breaks off.
func TestR1_ATextThatBreaksOffIsNone(t *testing.T) {
	const text = `"a\"b\\c\u00e9d\n"`
	for i := range text {
		r := jsonread.New(text[:i])
		if got, ok := r.Text(); ok {
			t.Errorf("%s is read as %q", text[:i], got)
		}
	}
}
