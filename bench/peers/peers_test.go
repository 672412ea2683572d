package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lambdaidem/toolkit/localstack/ddblocal"
)

const root = "../.."

const mend = "run make scoreboard ARGS=-write"

func TestScoreboard_PageHasTheCommittedResults(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := committed(t).into(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), string(fresh)); diff != "" {
		t.Errorf("%s (-) has other results than %s (+); %s:\n%s", pageFile, resultsFile, mend, diff)
	}
}

// The table and the plot show the committed timings.
func TestTimings_PageAndPlotHaveTheCommittedFigures(t *testing.T) {
	const mend = "run make bench-peers ARGS=-write"
	figures, err := readTimings(root)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := timingsPlace.fill(page, figures.markdown())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), string(fresh)); diff != "" {
		t.Errorf("%s (-) has other timings than %s (+); %s:\n%s", pageFile, timingsFile, mend, diff)
	}
	plot, err := os.ReadFile(filepath.Join(root, plotFile))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(plot, figures.plot()) {
		t.Errorf("%s shows other timings than %s has; %s", plotFile, timingsFile, mend)
	}
	if diff := cmp.Diff(versions(peers(root)), figures.Versions); diff != "" {
		t.Errorf("the peers' versions (-) are not those of %s (+); %s:\n%s", timingsFile, mend, diff)
	}
}

// If the results have not changed, -write writes the same bytes.
func TestWrite_WritesTheCommittedFiles(t *testing.T) {
	files := map[string][]byte{}
	for _, file := range []string{pageFile, resultsFile, timingsFile, plotFile} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		files[file] = text
	}
	blank := string(files[pageFile])
	for _, p := range []place{verdictsPlace, evidencePlace, timingsPlace} {
		emptied, err := p.fill([]byte(blank), "")
		if err != nil {
			t.Fatal(err)
		}
		blank = string(emptied)
	}
	other := projectWithPage(t, blank)
	figures, err := readTimings(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(committed(t).write(other), figures.write(other)); err != nil {
		t.Fatal(err)
	}
	for file, want := range files {
		got, err := os.ReadFile(filepath.Join(other, file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s as it is committed (-) and as it is written (+):\n%s", file, diff)
		}
	}
}

// If the page has no place for the results, -write writes nothing.
func TestWrite_NeedsAPlaceInThePage(t *testing.T) {
	other := projectWithPage(t, "# Another page\n")
	if err := committed(t).write(other); err == nil || !strings.Contains(err.Error(), pageFile) {
		t.Errorf("write = %v; want an error that names the page", err)
	}
	if _, err := os.Stat(filepath.Join(other, resultsFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat of the results = %v; want them not to exist", err)
	}
}

// projectWithPage returns a project's folder in which only the page exists.
func projectWithPage(t *testing.T, page string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	err := errors.Join(
		os.MkdirAll(filepath.Join(folder, sources), 0o750),
		os.MkdirAll(filepath.Join(folder, filepath.Dir(pageFile)), 0o750),
		os.WriteFile(filepath.Join(folder, pageFile), []byte(page), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func committed(t *testing.T) scoreboard {
	t.Helper()
	b, err := readScoreboard(root)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The committed results have a verdict and evidence for every scenario and every peer, and no others.
func TestScoreboard_CommittedResultsAreComplete(t *testing.T) {
	b := committed(t)
	if diff := cmp.Diff(versions(peers(root)), b.Versions); diff != "" {
		t.Errorf("the peers' versions (-) are not those of %s (+); %s:\n%s", resultsFile, mend, diff)
	}
	if len(b.Results) != len(scenarios) {
		t.Errorf("%s has %d scenarios; there are %d", resultsFile, len(b.Results), len(scenarios))
	}
	for _, sc := range scenarios {
		of := b.Results[sc.name]
		if len(of) != len(peers(root)) {
			t.Errorf("%s: %d peers have a result", sc.name, len(of))
		}
		for _, p := range peers(root) {
			r := of[p.Name]
			if r.Evidence == "" || r.Verdict != yes && r.Verdict != no && r.Verdict != notApplicable {
				t.Errorf("%s, %s: %+v is no result", sc.name, p.Name, r)
			}
		}
	}
}

// The page names the versions that install.go installs.
func TestScoreboard_VersionsAreThePinnedOnes(t *testing.T) {
	var pins []byte
	for _, file := range []string{"python/requirements.txt", "node/package.json", "fiber/go.mod"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pins = append(pins, text...)
	}
	// pip, npm and Go write a name and a version in different ways.
	for _, p := range peers(root) {
		name, version, _ := strings.Cut(p.version, " ")
		if version == "" {
			continue
		}
		found := false
		for _, line := range []string{
			strings.ReplaceAll(name, "-", "_") + "==" + version, `"` + name + `": "` + version + `"`, name + " " + version,
		} {
			found = found || bytes.Contains(pins, []byte(line))
		}
		if !found {
			t.Errorf("%s: no file pins %s", p.Name, p.version)
		}
	}
}

// If a rule held for a run in which nothing happened, it would hold for a peer that does nothing.
func TestScoreboard_NoRuleHoldsForNothing(t *testing.T) {
	for _, sc := range scenarios {
		if sc.holds(seen{}) {
			t.Errorf("the rule of %s holds although nothing was seen", sc.name)
		}
	}
}

// With this toolkit, all scenarios that don't wait for a lease to end give the committed results.
func TestScoreboard_ToolkitDoesWhatThePageSays(t *testing.T) {
	server := ddblocal.ForTest(t)
	b := committed(t)
	toolkit := builtToolkit(t)
	for _, sc := range scenarios {
		if sc.timed {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			r, err := sc.judge(t.Context(), toolkit, server)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(b.Results[sc.name][toolkit.Name], r); diff != "" {
				t.Errorf("the result differs from %s; if the new one (+) is right, %s:\n%s", resultsFile, mend, diff)
			}
		})
	}
}

// builtToolkit builds the driver of this toolkit, and returns the toolkit as a peer.
func builtToolkit(t *testing.T) *peer {
	t.Helper()
	driver := filepath.Join(t.TempDir(), "toolkit")
	if err := execute(t.Context(), root, "go", "build", "-o", driver, "./"+sources+"/toolkit"); err != nil {
		t.Fatal(err)
	}
	toolkit := peers(root)[0]
	toolkit.command = []string{driver}
	return toolkit
}

// Without a guard, the only rules that hold are those that let the handler run for each request.
func TestScoreboard_RulesFindAMissingGuard(t *testing.T) {
	runsAgain := []string{"status-500", "error", "other-path", "other-caller", "no-key"}
	server := ddblocal.ForTest(t)
	unguarded := builtToolkit(t)
	unguarded.env = []string{"LAMBDAIDEM_OFF=true"}
	for _, sc := range scenarios {
		if sc.timed {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			want := no
			if slices.Contains(runsAgain, sc.name) {
				want = yes
			}
			r, err := sc.judge(t.Context(), unguarded, server)
			if err != nil || r.Verdict != want {
				t.Errorf("the verdict is %s (%s), %v; want %s", r.Verdict, r.Evidence, err, want)
			}
		})
	}
}

// Other pages name the number of scenarios, which must be right.
func TestScoreboard_PagesNameTheNumberOfScenarios(t *testing.T) {
	for _, page := range []string{"README.md", "CHANGELOG.md", "docs/powertools.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%d scenarios", len(scenarios)); !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s does not say that there are %s", page, want)
		}
	}
}

// If the machine is too slow for a scenario, judge plays it again. After the last try judge returns
// an error, never a verdict.
func TestScoreboard_TooSlowIsNoVerdict(t *testing.T) {
	server := ddblocal.ForTest(t)
	played := 0
	sc := scenario{name: "slow", play: func(*stage) error { played++; return errTooSlow }, holds: func(seen) bool { return true }}
	r, err := sc.judge(t.Context(), peers(root)[0], server)
	if !errors.Is(err, errTooSlow) || r.Verdict != "" || played != tries {
		t.Errorf("judge = %+v, %v after %d tries; want an error after %d", r, err, played, tries)
	}
}
