package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// resultsFile is the path of the committed results, from the project's folder.
const resultsFile = sources + "/results.json"

// scoreboard has the results of a run of all scenarios with all peers.
type scoreboard struct {
	Date     string                       `json:"date"`     // of the run, as 2026-11-26
	Versions map[string]string            `json:"versions"` // by the peer's name; none for this toolkit
	Results  map[string]map[string]result `json:"results"`  // by the scenario's name, then the peer's
}

func newScoreboard(all []*peer) scoreboard {
	return scoreboard{Date: today(), Versions: versions(all), Results: map[string]map[string]result{}}
}

func today() string { return time.Now().UTC().Format(time.DateOnly) }

// versions returns the versions of the peers that have one, by the peer's name.
func versions(all []*peer) map[string]string {
	of := map[string]string{}
	for _, p := range all {
		if p.version != "" {
			of[p.Name] = p.version
		}
	}
	return of
}

func (b scoreboard) set(scenario, peer string, r result) {
	if b.Results[scenario] == nil {
		b.Results[scenario] = map[string]result{}
	}
	b.Results[scenario][peer] = r
}

// readScoreboard returns the committed results.
func readScoreboard(root string) (scoreboard, error) {
	return readJSON[scoreboard](filepath.Join(root, resultsFile))
}

func readJSON[T any](file string) (value T, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	return value, err
}

// write writes the results and the page.
func (b scoreboard) write(root string) error { return publish(root, resultsFile, b, b.into) }

// publish writes results as JSON into a file, and writes the page as fill returns it. It writes
// neither if fill returns an error.
func publish(root, file string, results any, fill func(page []byte) ([]byte, error)) error {
	text, err := json.MarshalIndent(results, "", "  ")
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		return err
	}
	if page, err = fill(page); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(root, file), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(root, pageFile), page, 0o644),
	)
}

// compare returns an error that lists every result that differs from the committed one.
func (b scoreboard) compare(root string) error {
	committed, err := readScoreboard(root)
	if err != nil {
		return err
	}
	var differences error
	for _, sc := range scenarios {
		for _, p := range peers(root) {
			was, is := committed.Results[sc.name][p.Name], b.Results[sc.name][p.Name]
			if was != is {
				differences = errors.Join(differences, fmt.Errorf("%s, %s: was %s (%s), is %s (%s)",
					sc.name, p.Name, was.Verdict, was.Evidence, is.Verdict, is.Evidence))
			}
		}
	}
	if differences != nil {
		return fmt.Errorf("this run differs from %s; if the new results are right, run make scoreboard ARGS=-write:\n%w", resultsFile, differences)
	}
	fmt.Printf("all %d results are those of %s\n", len(scenarios)*len(peers(root)), resultsFile)
	return nil
}
