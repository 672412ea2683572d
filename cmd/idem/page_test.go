package main

import (
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/lambdaidem"
)

// page is the file with the command's documentation.
const page = "../../docs/idem.md"

var update = flag.Bool("update", false, "write what the commands print into docs/idem.md")

// line is a command on the page, with its output.
type line struct{ command, out string }

var (
	console  = regexp.MustCompile("(?ms)^```console\n(.*?)^```")
	aToken   = regexp.MustCompile(`--token ([A-Za-z0-9_-]{22})`)
	aRecord  = regexp.MustCompile(`lambdaidem#[A-Za-z0-9_-]+`)
	changing = []struct {
		what *regexp.Regexp
		with string
	}{
		{regexp.MustCompile(`(token"?:? +"?|token is |, not )[A-Za-z0-9_-]{22}`), "${1}TOKEN"}, // must be first: a token may contain a span of time, or begin with a dash
		{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
		{regexp.MustCompile(`\b(\d+(\.\d+)?(d|h|ms|m|s))+\b`), "SPAN"},
		{regexp.MustCompile(`in SPAN|SPAN ago`), "WHEN"},
		{regexp.MustCompile(` {2,}`), "  "},
	}
)

// lasting returns the output with placeholders for everything that changes from run to run.
func lasting(out string) string {
	for _, c := range changing {
		out = c.what.ReplaceAllString(out, c.with)
	}
	return strings.TrimRight(out, "\n")
}

// linesOf parses a console block of the page.
func linesOf(block string) (lines []line) {
	for _, text := range strings.Split(strings.TrimRight(block, "\n"), "\n") {
		if command, ok := strings.CutPrefix(text, "$ "); ok {
			lines = append(lines, line{command: command})
		} else {
			lines[len(lines)-1].out += text + "\n"
		}
	}
	return lines
}

// words splits a command into arguments as a shell does. Single quotes are the only quotes that it
// supports.
func words(command string) (args []string) {
	word, quoted, begun := "", false, false
	for _, r := range command {
		switch {
		case r == '\'':
			quoted, begun = !quoted, true
		case r == ' ' && !quoted:
			if begun {
				args = append(args, word)
			}
			word, begun = "", false
		default:
			word, begun = word+string(r), true
		}
	}
	if begun {
		args = append(args, word)
	}
	return args
}

// story creates the table that the page describes: a held, a dead and a live attempt, and three
// completed payments. It returns the ids of the first three records.
func story(t *testing.T) (n *night, held, dead, live string) {
	t.Helper()
	n = openNight(t)
	held = n.pay("alice", "7d1cbd70", 3*time.Hour+12*time.Minute, lambdaidem.Hold, died)
	dead = n.pay("bob", "a2", 25*time.Minute, lambdaidem.Rerun, died)
	live = n.pay("carol", "c3", -4*time.Minute, lambdaidem.Rerun, died) // a lease that ends after the test
	for _, key := range []string{"d1", "d2", "d3"} {
		n.pay("alice", key, time.Hour, lambdaidem.Rerun, well)
	}
	return n, held, dead, live
}

// Every command of the page prints the output that the page shows.
func TestIdemPage_ShowsWhatTheCommandPrints(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	n, held, dead, live := story(t)
	written := strings.NewReplacer("lambdaidem#NO_HELD", held, "lambdaidem#NO_DEAD", dead, "lambdaidem#NO_LIVE", live).Replace(string(text))
	code, ran := 0, 0
	printed := console.ReplaceAllStringFunc(written, func(block string) string {
		fresh := "```console\n"
		for _, l := range linesOf(console.FindStringSubmatch(block)[1]) {
			ran++
			out := strconv.Itoa(code) + "\n"
			if l.command != "echo $?" {
				l.command = n.knownToken(l.command)
				code, out = n.run(words(l.command)[1:]...)
			}
			if lasting(out) != lasting(l.out) && !*update {
				t.Errorf("$ %s\npage - printed +:\n%s", l.command, cmp.Diff(lasting(l.out), lasting(out)))
			}
			fresh += "$ " + l.command + "\n" + out
		}
		return strings.TrimRight(fresh, "\n") + "\n```"
	})
	if ran < 10 {
		t.Errorf("the page has %d commands", ran)
	}
	if *update {
		if err := os.WriteFile(page, []byte(printed), 0o600); err != nil { //nolint:gosec // the page is a file of this project
			t.Fatal(err)
		}
	}
}

// knownToken returns a command of the page with the token that its record had when a command first
// named it. The page shows a token of an earlier run.
func (n *night) knownToken(command string) string {
	n.t.Helper()
	token, id := aToken.FindStringSubmatch(command), aRecord.FindString(command)
	if token == nil {
		return command
	}
	if n.shown[id] == "" {
		seen, err := n.store.Inspect(n.t.Context(), id)
		if err != nil {
			n.t.Fatal(err)
		}
		n.shown[id] = seen.Record.Token
	}
	return strings.Replace(command, token[1], n.shown[id], 1)
}

// The page lists, for each command, exactly the DynamoDB actions that the command calls.
func TestS1_IdemPage_PolicyIsWhatTheCommandsCall(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	n, held, dead, _ := story(t)
	large := n.pay("dave", "e1", time.Hour, lambdaidem.Hold, died)
	token := func(id string) string {
		seen, err := n.store.Inspect(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return seen.Record.Token
	}
	for _, c := range []struct {
		row  string
		runs [][]string
	}{
		{"check", [][]string{{"check"}}},
		{"leases", [][]string{{"leases", "--lease-index", "leases"}, {"watch", "--lease-index", "leases", "--looks", "1"}}},
		{"leases --scan", [][]string{{"leases", "--scan"}, {"watch", "--scan", "--looks", "1"}}},
		{"show", [][]string{{"show", held}}},
		{"trace", [][]string{{"trace", held, "--then", "downstream:charge => bank message charges"}}},
		{"release", [][]string{{"release", dead, "--token", token(dead), "--reason", "r", "--yes"}}},
		{"settle", [][]string{
			{"settle", held, "--token", token(held), "--reason", "r", "--yes", "--status", "200"},
			{"settle", large, "--token", token(large), "--reason", "r", "--yes", "--status", "200", "--body", noise(100_000)},
		}},
		{"purge", [][]string{{"purge", "--caller", "jwt:https://login.example|dave", "--reason", "r", "--yes"}, {"purge", "--all", "--forget", "--reason", "r", "--yes"}}},
	} {
		n.mu.Lock()
		n.calls = map[string]bool{}
		n.mu.Unlock()
		for _, args := range c.runs {
			if code, out := n.run(args...); code != 0 {
				t.Fatalf("%q: %d\n%s", args, code, out)
			}
		}
		want := strings.Join(slices.Sorted(maps.Keys(n.calls)), ", ")
		if row := "| `" + c.row + "` | " + want + " |"; !strings.Contains(string(text), row) {
			t.Errorf("the page has no row %s", row)
		}
	}
}

// noise returns a text of at least size bytes that compresses badly.
func noise(size int) string {
	var b strings.Builder
	for x := uint64(1); b.Len() < size; x = x*6364136223846793005 + 1442695040888963407 {
		b.WriteString(strconv.FormatUint(x, 36))
	}
	return b.String()
}

// The page has a section for every command, and every flag and exit code that it names exists.
func TestIdemPage_NamesWhatThereIs(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	n := openNight(t)
	_, help := n.run("--help")
	all := help
	for _, command := range []string{"check", "leases", "watch", "show", "trace", "release", "settle", "purge"} {
		_, out := n.run(command, "--help")
		all += out
		if !strings.Contains(string(text), "### "+command+"\n") {
			t.Errorf("the page has no section of %s", command)
		}
	}
	for _, flag := range regexp.MustCompile("`(--[a-z-]+)").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(all, flag[1]+" ") && !strings.Contains(all, flag[1]+"\n") {
			t.Errorf("the page names %s, which no command has", flag[1])
		}
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(string(text), -1) {
		if !regexp.MustCompile(`\b` + row[1] + ` [a-z]`).MatchString(help) {
			t.Errorf("the page has an exit code %s, and the help has none", row[1])
		}
	}
}
