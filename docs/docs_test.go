// Package docs_test checks that the documentation and the code agree.
package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lambdaidem/toolkit/dynamostore"
	"github.com/lambdaidem/toolkit/dynamostore/powertools"
	"github.com/lambdaidem/toolkit/lambdaidem"
	"github.com/lambdaidem/toolkit/localstack/template"
)

// root is the path of the project's folder.
const root = ".."

func TestOptions_NamesEveryOption(t *testing.T) {
	namesEveryField(t, "docs/options.md", "lambdaidem.Options", lambdaidem.Options{})
	namesEveryField(t, "docs/options.md", "dynamostore.Options", dynamostore.Options{})
	namesEveryField(t, "docs/powertools.md", "powertools.Options", powertools.Options{})
}

// namesEveryField checks that the page's table of options has a row for each field of options, and
// no other rows.
func namesEveryField(t *testing.T, page, name string, options any) {
	t.Helper()
	var fields []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(options)) {
		fields = append(fields, f.Name)
	}
	rows := firstColumn(read(t, page), name)
	for _, field := range fields {
		if !slices.Contains(rows, "`"+field+"`") {
			t.Errorf("%s's table of %s has no row for %s", page, name, field)
		}
	}
	for _, row := range rows {
		if !slices.Contains(fields, strings.Trim(row, "`")) {
			t.Errorf("%s's table of %s has a row %s, which is no field", page, name, row)
		}
	}
}

// firstColumn returns the first cell of each row of the table whose header begins with the cell
// header. It returns nil if there is no such table.
func firstColumn(text, header string) []string {
	_, table, found := strings.Cut(text, "\n| "+header+" |")
	if !found {
		return nil
	}
	var cells []string
	for i, line := range strings.Split(table, "\n") {
		if i < 2 { // the rest of the header, and the line below it
			continue
		}
		if !strings.HasPrefix(line, "| ") {
			break
		}
		cell, _, _ := strings.Cut(line[2:], " |")
		cells = append(cells, cell)
	}
	return cells
}

// limits.md doesn't deny a decorator that the guard has.
func TestLimits_KnowEveryDecorator(t *testing.T) {
	limits := read(t, "docs/limits.md")
	for m := range reflect.TypeFor[*lambdaidem.Guard]().Methods() {
		source := strings.TrimPrefix(m.Name, "APIGateway")
		if source != "" && regexp.MustCompile(source+`( APIs)? ha(s|ve) no decorator`).MatchString(limits) {
			t.Errorf("docs/limits.md says that %s has no decorator; the guard has %s", source, m.Name)
		}
	}
}

func TestREADME_ShowsCodeThatCompiles(t *testing.T) { showsCodeThatCompiles(t, "README.md") }

func TestOptions_ShowsCodeThatCompiles(t *testing.T) { showsCodeThatCompiles(t, "docs/options.md") }

// README.md must be short, because readers decide within minutes whether to read on.
func TestREADME_IsShort(t *testing.T) {
	if n := strings.Count(read(t, "README.md"), "\n"); n > 200 {
		t.Errorf("README.md has %d lines; move what one reader in ten needs to a page of its own", n)
	}
}

// Every package is in a table of docs/architecture.md, and nothing else is.
func TestArchitecture_NamesEveryPackage(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", root+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]bool{}
	for path := range strings.FieldsSeq(string(out)) {
		packages[strings.TrimPrefix(path, "github.com/lambdaidem/toolkit/")] = true
	}
	_, table, _ := strings.Cut(read(t, "docs/architecture.md"), "\n| package |")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.SplitSeq(table, "\n") {
		cell, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " |")
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			if !packages[name[1]] {
				t.Errorf("docs/architecture.md names the package %s, which does not exist", name[1])
			}
			delete(packages, name[1])
		}
	}
	for name := range packages {
		t.Errorf("docs/architecture.md does not name the package %s", name)
	}
}

// The section on the path of a request names only functions that exist, in the files that it names.
func TestArchitecture_NamesWhatExists(t *testing.T) {
	path := section(t, "docs/architecture.md", "## The path of a request")
	named := regexp.MustCompile("`(?:(\\w+)\\.)?(\\w+)`(?: and `(\\w+)`)? \\(((?:dynamostore/|lambdaidem/)?\\w+\\.go)\\)").FindAllStringSubmatch(path, -1)
	if len(named) < 10 {
		t.Fatalf("the page names %d functions with their files", len(named))
	}
	for _, n := range named {
		file := n[4]
		if !strings.Contains(file, "/") {
			file = "lambdaidem/" + file
		}
		source := read(t, file)
		for _, function := range []string{n[2], n[3]} {
			if function != "" && !regexp.MustCompile(`(?m)^func (\([^)]*\b`+n[1]+`\) )?`+function+`\b`).MatchString(source) && !strings.Contains(source, ") "+function+"(") {
				t.Errorf("docs/architecture.md says that %s has %s, and it does not", file, function)
			}
		}
	}
}

func TestTutorial_ShowsCodeThatCompiles(t *testing.T) { showsCodeThatCompiles(t, "docs/tutorial.md") }

func TestPowertools_ShowsCodeThatCompiles(t *testing.T) {
	showsCodeThatCompiles(t, "docs/powertools.md")
}

func TestTesting_ShowsCodeThatCompiles(t *testing.T) { showsCodeThatCompiles(t, "docs/testing.md") }

func TestEncryption_ShowsCodeThatCompiles(t *testing.T) {
	showsCodeThatCompiles(t, "docs/encryption.md")
}

func TestEffects_ShowsCodeThatCompiles(t *testing.T) { showsCodeThatCompiles(t, "docs/effects.md") }

// showsCodeThatCompiles checks that each block of Go code on a page is part of a Go file of this
// project, so that it compiles.
func showsCodeThatCompiles(t *testing.T, page string) {
	t.Helper()
	var sources []string
	walk(t, ".go", func(path string) { sources = append(sources, unindented(read(t, path))) })
	blocks := codeBlocks(read(t, page), "go")
	if len(blocks) == 0 {
		t.Fatal(page + " shows no Go")
	}
	for _, block := range blocks {
		code := "\n" + unindented(block)
		if !slices.ContainsFunc(sources, func(source string) bool { return strings.Contains(source, code) }) {
			t.Errorf("no Go file has these lines of %s:\n%s", page, block)
		}
	}
}

// Every command whose import path a page mentions exists in this project.
func TestCommands_AreThere(t *testing.T) {
	mention := regexp.MustCompile(`github\.com/lambdaidem/toolkit/((?:[a-z-]+/)*cmd/[a-z-]+)`)
	walk(t, ".md", func(path string) {
		for _, m := range mention.FindAllStringSubmatch(read(t, path), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1], "main.go")); err != nil {
				t.Errorf("%s has a command %s: %v", path, m[1], err)
			}
		}
	})
}

// unindented returns a text without the white space at the beginning and end of its lines.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}

func TestErrors_ExplainEveryCode(t *testing.T) {
	page := read(t, "docs/errors.md")
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "lambdaidem/errors.go"), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Err") {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		code, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		if lambdaidem.Code(code) == lambdaidem.ErrLeaseLost {
			return true // a Store returns it to the guard; no client receives it
		}
		codes++
		if !strings.Contains(page, "\n### "+code+"\n") {
			t.Errorf("docs/errors.md has no section %s, where problem documents lead", code)
		}
		return true
	})
	if codes == 0 {
		t.Error("lambdaidem/errors.go has no code")
	}
}

// Every rule that the code or the documentation cites has a row in the table of rules, and every
// rule in the table is cited.
func TestRules_HaveTheirRows(t *testing.T) {
	rows := firstColumn(read(t, "docs/correctness.md"), "rule")
	if len(rows) == 0 {
		t.Fatal("docs/correctness.md has no table of rules")
	}
	rule := regexp.MustCompile(`\b(?:[GC][1-9]|[KFODREV][1-9]|S[12]|[LX][1-9][0-9]?)\b`) // not S3, which is a service of AWS
	citedBy := map[string]string{}
	for _, ending := range []string{".go", ".md"} {
		walk(t, ending, func(path string) {
			text := read(t, path)
			if path == filepath.Join("docs", "correctness.md") {
				before, table, _ := strings.Cut(text, "\n| rule |")
				_, after, _ := strings.Cut(table, "\n\n")
				text = before + after
			}
			if ending == ".go" { // identifiers in code may look like the names of rules
				text = strings.Join(comments(t, path), "\n")
			}
			for _, name := range rule.FindAllString(text, -1) {
				citedBy[name] = path
			}
		})
	}
	for name, path := range citedBy {
		if !slices.Contains(rows, name) {
			t.Errorf("%s cites %s, which has no row in docs/correctness.md", path, name)
		}
	}
	for _, name := range rows {
		if citedBy[name] == "" {
			t.Errorf("docs/correctness.md has a row for %s, which nothing cites", name)
		}
	}
}

// comments returns the comments of a Go file, and the names of its functions with spaces for
// underscores, so that TestX4_Something cites X4.
func comments(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, group := range file.Comments {
		texts = append(texts, group.Text())
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			texts = append(texts, strings.ReplaceAll(strings.TrimPrefix(f.Name.Name, "Test"), "_", " "))
		}
	}
	return texts
}

// docs/log.md explains every outcome that a log line can have.
func TestLog_NamesEveryOutcome(t *testing.T) {
	_, row, found := strings.Cut(read(t, "docs/log.md"), "\n| `outcome` |")
	row, _, _ = strings.Cut(row, "\n")
	if !found {
		t.Fatal("docs/log.md has no table of the fields")
	}
	kinds := regexp.MustCompile(`(?m)^\tEvent\w+ +Kind = "(\w+)"`).FindAllStringSubmatch(read(t, "lambdaidem/eventkind.go"), -1)
	if len(kinds) == 0 {
		t.Fatal("lambdaidem/eventkind.go has no kinds")
	}
	for _, kind := range kinds {
		if !strings.Contains(row, "`"+kind[1]+"`") {
			t.Errorf("docs/log.md does not name the outcome %s", kind[1])
		}
	}
}

// The SAM snippet creates the same table as template.yaml, but without the index of leases, which
// is optional.
func TestDeploy_SAMTableServes(t *testing.T) {
	_, snippet, found := strings.Cut(read(t, "docs/deploy.md"), "```yaml\n")
	snippet, _, closed := strings.Cut(snippet, "```")
	if !found || !closed {
		t.Fatal("docs/deploy.md shows no YAML")
	}
	got := recordsTable(t, "docs/deploy.md", snippet, nil)
	want := recordsTable(t, "template.yaml", read(t, "template.yaml"),
		map[string]string{"JwtIssuer": "https://issuer.example.com", "JwtAudience": "any"})
	got.Name, want.Name = "", ""
	if len(want.Indexes) != 1 || want.Indexes[0].Name != "leases" {
		t.Errorf("template.yaml has the indexes %+v", want.Indexes)
	}
	want.Indexes, want.Attributes = got.Indexes, want.Attributes[:1]
	if !reflect.DeepEqual(got, want) {
		t.Errorf("docs/deploy.md has the table\n%+v\ntemplate.yaml has\n%+v", got, want)
	}
}

// The snippet with an index of leases creates the same table as template.yaml.
func TestDeploy_SAMTableWithAnIndexOfLeasesServes(t *testing.T) {
	_, section, found := strings.Cut(read(t, "docs/deploy.md"), "\n### With an index of leases\n")
	_, snippet, shown := strings.Cut(section, "```yaml\n")
	snippet, _, closed := strings.Cut(snippet, "```")
	if !found || !shown || !closed {
		t.Fatal("docs/deploy.md shows no table with an index of leases")
	}
	got := recordsTable(t, "docs/deploy.md", snippet, nil)
	want := recordsTable(t, "template.yaml", read(t, "template.yaml"),
		map[string]string{"JwtIssuer": "https://issuer.example.com", "JwtAudience": "any"})
	got.Name, want.Name = "", ""
	if !reflect.DeepEqual(got, want) {
		t.Errorf("docs/deploy.md has the table\n%+v\ntemplate.yaml has\n%+v", got, want)
	}
}

func recordsTable(t *testing.T, name, text string, parameters map[string]string) template.Table {
	t.Helper()
	sam, err := template.Parse(name, []byte(text), template.Options{Parameters: parameters})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(sam.Tables, func(table template.Table) bool { return table.LogicalID == "IdempotencyTable" })
	if i < 0 {
		t.Fatalf("%s has no IdempotencyTable", name)
	}
	return sam.Tables[i]
}

func TestLinks_LeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	walk(t, ".md", func(path string) {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s leads to %s, which is not there", path, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s leads to %s; %s has no such heading", path, m[1], target)
			}
		}
	})
}

// anchors returns the fragments by which GitHub links to the headings of a page.
func anchors(page string) []string {
	notInNames := regexp.MustCompile(`[^a-z0-9_ -]`)
	var names []string
	for line := range strings.Lines(page) {
		if heading, found := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); found && strings.HasPrefix(line, "#") {
			name := notInNames.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			names = append(names, strings.ReplaceAll(name, " ", "-"))
		}
	}
	return names
}

func TestMakeTargets_AreThere(t *testing.T) {
	makefile := read(t, "Makefile")
	mention := regexp.MustCompile("(?m)(?:`|^)make ([a-z-]+)")
	walk(t, ".md", func(path string) {
		for _, m := range mention.FindAllStringSubmatch(read(t, path), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s mentions make %s, which the Makefile does not have", path, m[1])
			}
		}
	})
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the text between a heading of a page, such as "## Terraform", and the next heading
// of level 2.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, text, found := strings.Cut(read(t, page), "\n"+heading+"\n")
	text, _, closed := strings.Cut(text, "\n## ")
	if !found || !closed {
		t.Fatalf("%s has no section %q that another one follows", page, heading)
	}
	return text
}

// codeBlocks returns the contents of the code blocks of one language in Markdown. A block in a list is
// indented.
func codeBlocks(markdown, language string) []string {
	var all []string
	for _, block := range regexp.MustCompile("(?ms)^ *```"+language+"\n(.*?)^ *```").FindAllStringSubmatch(markdown, -1) {
		all = append(all, block[1])
	}
	return all
}

// walk calls f with the path of every file whose name has the ending, relative to the project's
// folder.
func walk(t *testing.T, ending string, f func(path string)) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."): // .git, .venv, .aws-sam
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ending):
			f(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A reserved concurrency of 0 stops a function. Lambda then sends each new event of an asynchronous
// invocation to the on-failure destination or the dead-letter queue, without any retry, or drops it
// (AWS Lambda Developer Guide, "Capturing records of Lambda asynchronous invocations"). A section
// that tells the operator to stop a function says so.
func TestPages_SayWhatBecomesOfTheEventsOfAStoppedFunction(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		for _, section := range regexp.MustCompile(`(?m)^##+ `).Split(read(t, "docs/"+page), -1) {
			if !strings.Contains(section, "--reserved-concurrent-executions 0") {
				continue
			}
			found++
			for _, word := range []string{"on-failure destination", "dead-letter queue", "without any retry", "stream"} {
				if title, _, _ := strings.Cut(section, "\n"); !strings.Contains(section, word) {
					t.Errorf("%s, %q stops a function, and does not say what becomes of its events: no %q", page, title, word)
				}
			}
		}
	}
	if found == 0 {
		t.Error("no page stops a function")
	}
}
