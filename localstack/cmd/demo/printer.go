package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strings"
	"time"
	"unicode/utf8"
)

// printer writes the demo's report.
type printer struct {
	w      io.Writer
	colour bool
	steps  int
	checks int
	wrong  []string // failed checks, each with its step
	step   string
}

func newPrinter(w io.Writer, colour bool) *printer {
	return &printer{w: w, colour: colour}
}

// wantsColour reports whether w is a terminal and neither NO_COLOR (no-color.org) nor TERM=dumb
// asks for plain text.
func wantsColour(w *os.File) bool {
	info, err := w.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// style is a parameter of the control sequence SGR, Select Graphic Rendition (ECMA-48).
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
	cyan   style = "36"
)

func (p *printer) in(s style, text string) string {
	if !p.colour {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

func (p *printer) printf(format string, args ...any) {
	// Ignore the error: there is no other place to report it.
	_, _ = fmt.Fprintf(p.w, format, args...)
}

func (p *printer) title(url string) {
	p.printf("\n%s on %s\n%s\n", p.in(bold, "Payments, refunds and transfers, safe to retry,"), url,
		p.in(dim, "real requests → the binaries that deploy → a real DynamoDB Local; record = the item that guards a key"))
}

// begin prints the title of the next step.
func (p *printer) begin(what string) {
	p.steps++
	p.step = fmt.Sprintf("%d. %s", p.steps, what)
	p.printf("\n%s\n", p.in(bold, p.step))
}

// bodyWidth is the maximum number of characters to print of a body.
const bodyWidth = 80

// outputWidth is the maximum number of characters to print of a line of a command's output.
const outputWidth = 160

func (p *printer) request(r request) {
	parts := []string{"POST " + r.path}
	if r.key != "" {
		parts = append(parts, "Idempotency-Key: "+shorten(r.key, 40))
	}
	names := make([]string, 0, len(r.headers))
	for name := range r.headers {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		parts = append(parts, name+": "+r.headers[name])
	}
	p.printf("   → %s %s %s\n", r.user, p.in(cyan, strings.Join(parts, "  ")), shorten(r.body, bodyWidth))
}

func (p *printer) answer(a answer) {
	s := green
	switch {
	case a.status >= 500:
		s = red
	case a.status >= 400:
		s = yellow
	}
	line := fmt.Sprintf("%d %s", a.status, http.StatusText(a.status))
	for _, name := range []string{replayMark, "Retry-After"} {
		if value := a.header.Get(name); value != "" {
			line += "  " + name + ": " + value
		}
	}
	p.printf("   ← %s  %s\n", p.in(s, line), p.in(dim, shorten(a.gist(), bodyWidth)))
}

func (p *printer) record(r record) {
	line := fmt.Sprintf("%s  attempt %d", r.Status, r.Attempt)
	if r.Outcome != "" {
		line += "  " + r.Outcome
	}
	line += "  token " + shorten(r.Token, 7) + "  validation " + shorten(r.Validation, 9)
	if r.Status == "INPROGRESS" {
		line += "  lease until " + time.UnixMilli(r.LeaseEnd).Format("15:04:05.000")
	}
	if r.Expiration == 0 { // a held record
		line += "  does not expire"
	} else {
		line += "  expires " + time.Unix(r.Expiration, 0).Format("Jan 2 15:04")
	}
	if r.Data != "" {
		line += fmt.Sprintf("  data %d bytes", len(r.Data))
	}
	p.printf("   %s %s\n", p.in(dim, "record"), line)
}

func (p *printer) noRecord() { p.printf("   %s none\n", p.in(dim, "record")) }

func (p *printer) note(format string, args ...any) {
	p.printf("   %s\n", fmt.Sprintf(format, args...))
}

// command prints a command line.
func (p *printer) command(line string) {
	p.printf("   %s %s\n", p.in(dim, "$"), p.in(cyan, line))
}

// output prints the output of a command, and its exit code unless it is 0.
func (p *printer) output(s said) {
	for line := range strings.Lines(s.out + s.errs) {
		p.printf("     %s\n", shorten(strings.TrimRight(line, "\n"), outputWidth))
	}
	if s.code != 0 {
		p.printf("     %s\n", p.in(yellow, fmt.Sprintf("exit code %d", s.code)))
	}
}

// stop is a place on a payment's way, and what happened there.
type stop struct{ place, happened string }

// picture prints a payment's way, with one line for each place.
func (p *printer) picture(way []stop) {
	for i, s := range way {
		if i > 0 {
			p.printf("   %14s │\n", "")
		}
		p.printf("   %s │ %s\n", p.in(bold, fmt.Sprintf("%14s", s.place)), s.happened)
	}
}

// check prints and counts the result of one check. expected describes what is checked.
func (p *printer) check(ok bool, expected string, got any) {
	p.checks++
	if ok {
		p.printf("   %s %s\n", p.in(green, "✓"), expected)
		return
	}
	p.printf("   %s expected: %s; got: %v\n", p.in(red, "✗"), expected, got)
	p.wrong = append(p.wrong, fmt.Sprintf("%s: expected: %s; got: %v", p.step, expected, got))
}

// summary prints the result of all checks. It returns an error if a check failed.
func (p *printer) summary() error {
	if len(p.wrong) == 0 {
		p.printf("\n%s %d steps, %d checks\n", p.in(green, "All as expected:"), p.steps, p.checks)
		return nil
	}
	for _, w := range p.wrong {
		p.printf("\n%s %s\n", p.in(red, "✗"), w)
	}
	return fmt.Errorf("%d of %d checks failed", len(p.wrong), p.checks)
}

// shorten returns s as one line of at most n characters.
func shorten(s string, n int) string {
	s = strings.ReplaceAll(s, "\n", "␤")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}
