package commands

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
)

// printer prints to one of the command's streams. A record contains text that clients
// choose, so it can contain escape sequences that attack the operator's terminal. A printer
// therefore has no Write method. The only ways to print are say, a table and printJSON, and
// each of them escapes every value.
type printer struct{ w io.Writer }

// say formats its arguments like fmt.Fprintf and prints the result. It escapes each
// argument, whatever its type and verb, but not the format. It ignores a failed write,
// because there is no other place to report the failure.
func say(to printer, format string, args ...any) {
	escaped := make([]any, len(args))
	for i, arg := range args {
		escaped[i] = value{arg}
	}
	_, _ = fmt.Fprintf(to.w, format, escaped...)
}

// value wraps an argument of say, so that fmt prints it escaped.
type value struct{ v any }

// Format formats the value with the verb and its flags, and escapes the result.
func (v value) Format(f fmt.State, verb rune) {
	_, _ = io.WriteString(f, escape(fmt.Sprintf(fmt.FormatString(f, verb), v.v)))
}

// table prints lines whose columns are separated by tabs, and aligns the columns. It prints
// nothing before flush.
type table struct {
	printer

	aligned *tabwriter.Writer
}

func newTable(to printer) *table {
	w := tabwriter.NewWriter(to.w, 0, 0, 2, ' ', 0)
	return &table{printer{w}, w}
}

// row adds a row with two columns: the name, which is not escaped, and the formatted
// arguments, which are.
func (t *table) row(name, format string, args ...any) {
	say(t.printer, name+"\t"+format+"\n", args...)
}

// flush prints the table.
func (t *table) flush() error { return t.aligned.Flush() } //nolint:wrapcheck // the stream's own error

// printJSON prints v as JSON, indented by two spaces for each level unless indent is
// false. Characters that could change what a terminal shows become \u escapes, so the
// output is safe to look at and decodes to the exact value.
func printJSON(to printer, v any, indent bool) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	_, err := io.WriteString(to.w, escapeJSON(text.String()))
	return err //nolint:wrapcheck // the stream's own error
}

// newBar returns a progress bar. The bar moves the cursor, so it writes to the stream without
// escapes. items is the number of steps; -1 means that it is unknown.
func newBar(to printer, items int64) *progressbar.ProgressBar {
	return progressbar.NewOptions64(items, progressbar.OptionSetWriter(to.w), progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(items > 0), progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond))
}

// isPlain reports whether a terminal shows the character visibly, unchanged, and in its
// place. Control characters (C0, DEL, C1), bidirectional controls, zero-width characters,
// line separators, variation selectors and unassigned characters are not plain. Neither is
// a space other than U+0020.
func isPlain(r rune) bool {
	return unicode.IsPrint(r) && !unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// escape returns the text with every character that is not plain escaped as in a Go string
// literal, such as \n, \x1b or \u202e. A byte that is not UTF-8 becomes \xff or the like. A
// backslash is not escaped, so the original text can't always be recovered. JSON output is
// exact.
func escape(s string) string {
	return replaceUnsafe(s, func(b *strings.Builder, r rune, raw string) {
		if isInvalid(r, raw) {
			_, _ = fmt.Fprintf(b, `\x%02x`, raw[0])
			return
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	})
}

// escapeJSON returns JSON text with every character that is not plain escaped by \u.
// Invalid UTF-8 becomes \ufffd. Newlines are kept, because the encoder has already
// escaped those inside strings.
func escapeJSON(text string) string {
	return replaceUnsafe(text, func(b *strings.Builder, r rune, _ string) {
		switch high, low := utf16.EncodeRune(r); {
		case r == '\n':
			b.WriteByte('\n')
		case high != utf8.RuneError:
			_, _ = fmt.Fprintf(b, `\u%04x\u%04x`, high, low)
		default:
			_, _ = fmt.Fprintf(b, `\u%04x`, r)
		}
	})
}

// replaceUnsafe returns s with each character that is not plain replaced by what write
// writes. raw has the bytes of the character in s.
func replaceUnsafe(s string, write func(b *strings.Builder, r rune, raw string)) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if raw := s[i : i+size]; isPlain(r) && !isInvalid(r, raw) {
			b.WriteString(raw)
		} else {
			write(&b, r, raw)
		}
		i += size
	}
	return b.String()
}

// isInvalid reports whether raw, decoded as r, is a byte that is not UTF-8.
func isInvalid(r rune, raw string) bool { return r == utf8.RuneError && len(raw) == 1 }

// counted returns the number and the noun in the singular or plural, such as "1 record" or
// "2 records".
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// clip shortens a text to at most 400 characters, so that it fits on a few lines of a
// terminal.
func clip(s string) string {
	const most = 400
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// shellQuote returns the text quoted as one word for bash or zsh. The word has only plain
// characters, so say prints it unchanged, and it can be copied into a command.
func shellQuote(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == utf8.RuneError || !isPlain(r) }) < 0 {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	quoted := replaceUnsafe(strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s), func(b *strings.Builder, _ rune, raw string) {
		for i := range len(raw) {
			_, _ = fmt.Fprintf(b, `\x%02x`, raw[i])
		}
	})
	return "$'" + quoted + "'"
}
