package commands

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// unsafeText has a character of each kind that could change what a terminal shows.
const unsafeText = "\x1b[2J\a\r\n\tX\x00\x7f\u0085\u009b2J\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c" +
	"\u200b\u200c\u200d\ufeff\u2028\u2029\u00a0\u00ad\u115f\u3164\u034f\ufe0f\U000e0041\xff\xc3\ue000"

func TestS2_EveryValueIsEscapedWhateverItsVerb(t *testing.T) {
	type named string
	for _, c := range []struct {
		format string
		arg    any
		want   string
	}{
		{"%s", "plain é 漢 😀", "plain é 漢 😀"},
		{"%s", "a\nb\tc", `a\nb\tc`},
		{"%s", "\x1b[2J\x7f\u0085", `\x1b[2J\x7f\u0085`},
		{"%v", errors.New("\u202e"), `\u202e`},
		{"%v", []string{"\u2066", "\xff"}, `[\u2066 \xff]`},
		{"%s", named("\u200b"), `\u200b`},
		{"%s", lambdaidem.Code("\u2028"), `\u2028`},
		{"%s", []byte("\x00"), `\x00`},
		{"%-8s|", "\u061c", `\u061c       |`},
		{"%q", "\x1b\u202e", `"\x1b\u202e"`},
		{"%s", "\U000e0041", `\U000e0041`},
		{"%s", "\ufffd", "\ufffd"},
		{"%s", `C:\n`, `C:\n`},
		{"%d", 7, "7"},
		{"%g", 0.5, "0.5"},
		{"%+v", struct{ A string }{"\n"}, `{A:\n}`},
	} {
		var out strings.Builder
		say(printer{&out}, c.format, c.arg)
		if out.String() != c.want {
			t.Errorf("%s of %q prints %q; want %q", c.format, c.arg, out.String(), c.want)
		}
	}
}

func TestS2_EscapedTextIsPlain(t *testing.T) {
	for name, got := range map[string]string{"text": escape(unsafeText), "JSON": escapeJSON(unsafeText), "shell": shellQuote(unsafeText)} {
		checkPlain(t, name, got)
	}
}

func TestS2_EscapedJSONIsExact(t *testing.T) {
	valid := strings.ToValidUTF8(unsafeText, "") + "😀<>&\"\\"
	var out strings.Builder
	if err := printJSON(printer{&out}, map[string]any{valid: json.RawMessage(`{"` + "\u202e" + `":"` + "\U000e0041\x7f" + `"}`)}, true); err != nil {
		t.Fatal(err)
	}
	checkPlain(t, "JSON", out.String())
	var got map[string]map[string]string
	if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got[valid]["\u202e"] != "\U000e0041\x7f" {
		t.Errorf("it decodes to %q, %v", got, err)
	}
	if strings.Count(out.String(), "\n") != 5 {
		t.Errorf("it is not indented:\n%s", out.String())
	}
}

func TestO2_ShellWordsAreExact(t *testing.T) {
	for _, s := range []string{"", "a b", "it's $HOME `x` \\n !", "\a\x1b[2J\r\n'\\'\u202e\xff", "\ufffd", "\x1b1", "\xff"} {
		out, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+shellQuote(s)).Output()
		if err != nil || string(out) != s {
			t.Errorf("%q as %s reads %q, %v", s, shellQuote(s), out, err)
		}
	}
}

// checkPlain fails the test if out has a character that could change what a terminal shows. what
// describes the output.
func checkPlain(t *testing.T, what, out string) {
	t.Helper()
	for i, r := range out {
		switch {
		case r == '\n', r == unicode.ReplacementChar && strings.HasPrefix(out[i:], "\ufffd"):
		case r == unicode.ReplacementChar, r < ' ', r >= 0x7f && r < 0xa0, !unicode.IsPrint(r),
			unicode.In(r, unicode.Cf, unicode.Bidi_Control, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			t.Errorf("%s prints %U at byte %d: %q", what, r, i, out[max(0, i-40):min(len(out), i+40)])
			return
		}
	}
}

// Only terminal.go writes to the streams, in the three ways that escape what they print.
func TestS2_OnlyTerminalWritesToStreams(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	forbidden := map[string]bool{"fmt.Print": true, "fmt.Printf": true, "fmt.Println": true, "fmt.Fprint": true, "fmt.Fprintf": true, "fmt.Fprintln": true,
		"io.WriteString": true, "io.Copy": true, "json.NewEncoder": true, "tabwriter.NewWriter": true, "bufio.NewWriter": true, "os.Stdout": true, "os.Stderr": true}
	for _, file := range files {
		if file == "terminal.go" || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := s.X.(*ast.Ident); ok && forbidden[of.Name+"."+s.Sel.Name] || s.Sel.Name == "w" {
				t.Errorf("%s writes to a stream by %s.%s; use say, a table or printJSON, which escape what they print", file, of, s.Sel.Name)
			}
			return true
		})
		for _, call := range sayCalls(parsed) {
			if _, literal := call.Args[1].(*ast.BasicLit); !literal {
				t.Errorf("%s: say has a format that is no literal, so values in it would not be escaped", file)
			}
		}
	}
}

// sayCalls returns all calls of say in a file.
func sayCalls(file *ast.File) (calls []*ast.CallExpr) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 1 {
			if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "say" {
				calls = append(calls, call)
			}
		}
		return true
	})
	return calls
}

func TestO2_APurgeCountsInWords(t *testing.T) {
	for want, v := range map[string]purgeView{
		`1 record erased.
1 part of an answer deleted.
1 record to which --steps applies belongs to an attempt that died after a step (the steps may be the only proof of a payment: decide such a record before you erase them, see docs/operate.md).
1 part had no record that referred to it.
1 part was left: an answer that is being stored may need it.
1 record keeps the results of its steps (--steps erases those of released records and dead attempts).
1 record is released, and a retry needs the answer of a guarded call that its handler made (if that was erased, nothing can complete the request: see docs/idem.md).
1 had no answer to erase.
1 is in progress, and was left.
1 changed meanwhile, and was left.
1 item is no record, or has renamed attributes (--attribute), and was left.
Looked at 1 item. Capacity units: 0.5.
`: {Purged: 1, Looked: 1, Parts: 1, Orphans: 1, KeptParts: 1, KeptSteps: 1, Undecided: 1, InnerCalls: 1, Before: 1, InProgress: 1, Changed: 1, Foreign: 1, Units: 0.5},
		`2 records erased.
2 parts of answers deleted.
2 records to which --steps applies belong to attempts that died after a step (the steps may be the only proof of a payment: decide such a record before you erase them, see docs/operate.md).
2 parts had no records that referred to them.
2 parts were left: an answer that is being stored may need them.
2 records keep the results of their steps (--steps erases those of released records and dead attempts).
2 records are released, and retries need the answers of guarded calls that their handlers made (if that was erased, nothing can complete the request: see docs/idem.md).
2 had no answer to erase.
2 are in progress, and were left.
2 changed meanwhile, and were left.
2 items are no records, or have renamed attributes (--attribute), and were left.
Looked at 2 items. Capacity units: 4.
`: {Purged: 2, Looked: 2, Parts: 2, Orphans: 2, KeptParts: 2, KeptSteps: 2, Undecided: 2, InnerCalls: 2, Before: 2, InProgress: 2, Changed: 2, Foreign: 2, Units: 4},
		`1 record would be forgotten.
1 record would be erased, not forgotten: its attempt died; repeat --forget to let it expire.
2 had been forgotten before.
Looked at 0 items. Capacity units: 0.
`: {DryRun: true, Matched: 4, Before: 2, Forgotten: 1, OnlyErased: 1, forget: true},
		`0 records forgotten, as of 1h15m from now, or as of an earlier expiry.
2 records erased, not forgotten: their attempts died; repeat --forget to let them expire.
Looked at 2 items. Capacity units: 3.
`: {Purged: 2, OnlyErased: 2, Looked: 2, Units: 3, forget: true, expiresIn: 75 * time.Minute},
	} {
		var out strings.Builder
		if v.text(printer{&out}); out.String() != want {
			t.Errorf("it prints\n%swant\n%s", out.String(), want)
		}
	}
}

func TestO2_ALongTextIsClipped(t *testing.T) {
	for n, want := range map[int]int{399: 399, 400: 400, 401: 401} { // in characters; the last of the 401 is the ellipsis
		got := []rune(clip(strings.Repeat("ü", n)))
		if len(got) != want || (got[len(got)-1] == '…') != (n > 400) {
			t.Errorf("%d characters become %d, and end in %c", n, len(got), got[len(got)-1])
		}
	}
}
