package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// The committed results, seen from the project's folder.
const resultsFile = sources + "/results.json"

// scoreboard is the results of one run of everything.
type scoreboard struct {
	Date     string                       `json:"date"`     // of the run, as 2026-11-26
	Versions map[string]string            `json:"versions"` // by the peer's name; none for this toolkit
	Results  map[string]map[string]result `json:"results"`  // by the scenario's name, then the peer's
}

func newScoreboard(all []*peer) scoreboard {
	b := scoreboard{Date: time.Now().UTC().Format(time.DateOnly), Versions: map[string]string{}, Results: map[string]map[string]result{}}
	for _, p := range all {
		if p.version != "" {
			b.Versions[p.Name] = p.version
		}
	}
	return b
}

func (b scoreboard) set(scenario, peer string, r result) {
	if b.Results[scenario] == nil {
		b.Results[scenario] = map[string]result{}
	}
	b.Results[scenario][peer] = r
}

// readScoreboard returns the committed results.
func readScoreboard(root string) (scoreboard, error) {
	var b scoreboard
	text, err := os.ReadFile(filepath.Join(root, resultsFile))
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	return b, err
}

// write writes the results and the page.
func (b scoreboard) write(root string) error {
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	page, err := os.ReadFile(filepath.Join(root, pageFile))
	if err != nil {
		return err
	}
	if page, err = b.into(page); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(root, resultsFile), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(root, pageFile), page, 0o644),
	)
}

// compare returns an error that names every result that differs from the committed one.
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
