package operate_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pagePath is the path of the runbook.
const pagePath = "../../docs/operate.md"

var update = flag.Bool("update", false, "write what the commands print into docs/operate.md")

// page is the runbook, divided into sections. The text before the first section has the title "".
type page struct {
	titles []string
	text   map[string]string // by the title, which is its first line
}

var heading = regexp.MustCompile(`(?m)^## (.*)\n`)

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func readPage(t *testing.T) *page {
	t.Helper()
	text := readFile(t, pagePath)
	p := &page{titles: []string{""}, text: map[string]string{}}
	begun := 0
	for _, at := range heading.FindAllStringSubmatchIndex(text, -1) {
		p.text[p.titles[len(p.titles)-1]] = text[begun:at[0]]
		p.titles = append(p.titles, text[at[2]:at[3]])
		begun = at[0]
	}
	p.text[p.titles[len(p.titles)-1]] = text[begun:]
	return p
}

// section returns the text of a section. The test fails if there is no such section.
func (p *page) section(t *testing.T, title string) string {
	t.Helper()
	text, found := p.text[title]
	if !found {
		t.Fatalf("docs/operate.md has no section %q; it has %q", title, p.titles)
	}
	return text
}

func (p *page) write(t *testing.T) {
	t.Helper()
	var all strings.Builder
	for _, title := range p.titles {
		all.WriteString(p.text[title])
	}
	if err := os.WriteFile(pagePath, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// rows returns the cells of a table without its heading, given the first cell of the heading.
func rows(t *testing.T, text, first string) (all [][]string) {
	t.Helper()
	_, table, found := strings.Cut(text, "| "+first+" |")
	if !found {
		t.Fatalf("there is no table of %q", first)
	}
	for i, line := range strings.Split(table, "\n") {
		if i < 2 { // the rest of the heading, and the rule under it
			continue
		}
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "| ") {
			break
		}
		all = append(all, strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), " | "))
	}
	return all
}

// line is a command on the page with its output.
type line struct{ command, out string }

var console = regexp.MustCompile("(?ms)^( *)```console\n(.*?)^ *```")

// linesOf returns the commands of a block of the page.
func linesOf(block, indent string) (lines []line) {
	for _, text := range strings.Split(strings.TrimRight(block, "\n "), "\n") {
		text = strings.TrimPrefix(text, indent)
		if command, ok := strings.CutPrefix(text, "$ "); ok {
			lines = append(lines, line{command: command})
		} else {
			lines[len(lines)-1].out += text + "\n"
		}
	}
	return lines
}

// changing has the parts of outputs that differ in each run, and what to write instead.
var changing = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`(invocation +|lambdaidem#[\w-]{43} +)[0-9a-f-]{36}`), "${1}INVOCATION"},
	{regexp.MustCompile(`(token +|token is |, not )[A-Za-z0-9_-]{22}`), "${1}TOKEN"},
	{regexp.MustCompile(`\b(pay|tra)_[A-Z2-7]{26}\b`), "${1}_ID"},
	{regexp.MustCompile(`\b(\d+(\.\d+)?(d|h|ms|m|s))+\b`), "SPAN"},
	{regexp.MustCompile(`in SPAN|SPAN ago`), "WHEN"},
	{regexp.MustCompile(`\d+ records? names? no caller`), "N records name no caller"},
	{regexp.MustCompile(`Looked at \d+ items. Capacity units: [0-9.]+`), "Looked at N items."},
	{regexp.MustCompile(`(?m)^ +(\d+ )`), "$1"}, // the counts that uniq -c prints
	{regexp.MustCompile(` {2,}`), "  "},
}

// lasting returns an output without the parts that differ in each run.
func lasting(out string) string {
	for _, c := range changing {
		out = c.what.ReplaceAllString(out, c.with)
	}
	return strings.TrimRight(out, "\n")
}

// reader runs the commands of one section of the page, block by block.
type reader struct {
	t     *testing.T
	w     *world
	title string
	shell *shell
	next  int // index of the next block
	code  int // exit code of the last command
}

// read returns a reader of a section, with a shell of its own.
func (w *world) read(t *testing.T, title string) *reader {
	t.Helper()
	if script.MatchString(w.page.section(t, title)) {
		t.Errorf("%q has commands whose output is not shown", title)
	}
	w.opened[title] = true
	r := &reader{t: t, w: w, title: title, shell: w.newShell(t)}
	t.Cleanup(func() {
		if left := len(console.FindAllString(w.page.text[title], -1)) - r.next; left != 0 && !t.Failed() {
			t.Errorf("%d blocks of %q were not run", left, title)
		}
	})
	return r
}

// block runs the next block of the section and returns its output. The test fails if the output
// differs from the page's.
func (r *reader) block() string {
	r.t.Helper()
	text, printed := r.w.page.text[r.title], ""
	blocks := console.FindAllStringSubmatchIndex(text, -1)
	if r.next >= len(blocks) {
		r.t.Fatalf("the section %q has %d blocks alone", r.title, len(blocks))
	}
	at := blocks[r.next]
	indent := text[at[2]:at[3]]
	fresh := indent + "```console\n"
	for _, l := range linesOf(text[at[4]:at[5]], indent) {
		out := strconv.Itoa(r.code) + "\n"
		if l.command != "echo $?" {
			l.command = r.w.known(r.t, l.command)
			r.code, out = r.shell.run(l.command)
			r.w.learn(l.command, out)
		}
		if lasting(out) != lasting(l.out) && !*update {
			r.t.Errorf("$ %s\npage - printed +:\n%s", l.command, cmp.Diff(lasting(l.out), lasting(out)))
		}
		printed += out
		for _, text := range slices.Concat([]string{"$ " + l.command}, strings.Split(strings.TrimSuffix(out, "\n"), "\n")) {
			if text != "" {
				fresh += indent + text + "\n"
			}
		}
	}
	r.next++
	if *update {
		r.w.page.text[r.title] = text[:at[0]] + fresh + indent + "```" + text[at[1]:]
	}
	return printed
}

// completed runs the next block, whose output must show that the record is completed.
func (r *reader) completed() string {
	r.t.Helper()
	out := r.block()
	if !strings.Contains(out, "completed: retries get its answer") {
		r.t.Errorf("the record is not completed: %s", out)
	}
	return out
}

// completedBy is like completed, and checks the number of the attempt.
func (r *reader) completedBy(attempt int) {
	r.t.Helper()
	if out := r.completed(); !strings.Contains(out, fmt.Sprintf("attempt      %d", attempt)) {
		r.t.Errorf("the retry is not attempt %d: %s", attempt, out)
	}
}

var (
	aToken    = regexp.MustCompile(`(--token |"token": "|token +)([A-Za-z0-9_-]{22})`)
	aTransfer = regexp.MustCompile(`()(tra_[A-Z2-7]{26})`)
	aRecord   = regexp.MustCompile(`lambdaidem#[A-Za-z0-9_-]{43}`)
	aKey      = regexp.MustCompile(`--key (\S+)`)
)

// about returns the id or the key of the record that a command names, or "".
func about(command string) string {
	if id := aRecord.FindString(command); id != "" {
		return id
	}
	if key := aKey.FindStringSubmatch(command); key != nil {
		return key[1]
	}
	return ""
}

// passedOn matches the values that differ in each run, that a command prints about a record, and
// that later commands of the page use.
var passedOn = []*regexp.Regexp{aToken, aTransfer}

// learn remembers the values that a command has printed.
func (w *world) learn(command, out string) {
	for _, what := range passedOn {
		if found := what.FindStringSubmatch(out); found != nil {
			w.shown[shown{what, about(command)}] = found[2]
			w.shown[shown{what, ""}] = found[2] // for a command that names no record
		}
	}
}

// shown is the kind of a printed value and the record that the value belongs to.
type shown struct {
	what  *regexp.Regexp
	about string
}

// known returns a command of the page with the values that earlier commands have printed in place
// of the page's. An operator has no other values.
func (w *world) known(t *testing.T, command string) string {
	t.Helper()
	for _, what := range passedOn {
		found := what.FindStringSubmatch(command)
		if found == nil {
			continue
		}
		now := w.shown[shown{what, about(command)}]
		if now == "" {
			t.Fatalf("no command before has printed %s, for: %s", found[2], command)
		}
		command = strings.Replace(command, found[2], now, 1)
	}
	return command
}

// token returns the token that was printed last for a key.
func (w *world) token(key string) string { return w.shown[shown{aToken, key}] }
