package commands

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/lambdaidem/toolkit/dynamostore"
)

// journal is where a purge keeps how far it came. What was not kept is done again,
// which is no harm.
type journal struct {
	file string // "": it is kept nowhere

	Table  string    `json:"table"`
	Filter filter    `json:"filter"`
	Forget bool      `json:"forget"`
	DryRun bool      `json:"dryRun"`
	After  string    `json:"after"`
	Kept   time.Time `json:"kept"`
}

// openJournal reads the journal of the same purge, if there is one.
func openJournal(p *purging, table string) (*journal, error) {
	j := &journal{file: p.state, Table: table, Filter: p.filter, Forget: p.forget, DryRun: p.dryRun, After: p.after}
	if j.file == "" {
		return j, nil
	}
	text, err := os.ReadFile(j.file)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read --state: %w", err)
	}
	var kept journal
	if err := json.Unmarshal(text, &kept); err != nil {
		return nil, fmt.Errorf("--state %s is no journal of a purge: %w", j.file, err)
	}
	if kept.Table != j.Table || kept.Filter != j.Filter || kept.Forget != j.Forget || kept.DryRun != j.DryRun {
		return nil, fmt.Errorf("--state %s is of another purge; use the same flags, or remove it", j.file)
	}
	j.After = kept.After
	return j, nil
}

// keep writes the progress, whole or not at all.
func (j *journal) keep(sum dynamostore.PurgeProgress) error {
	if j.After = sum.After; j.file == "" {
		return nil
	}
	j.Kept = time.Now().UTC()
	text, err := json.Marshal(j)
	if err != nil { // texts: can't happen
		return fmt.Errorf("keep the progress: %w", err)
	}
	next := filepath.Join(filepath.Dir(j.file), "."+filepath.Base(j.file)+".next")
	const ownersOnly = 0o600
	if err := os.WriteFile(next, text, ownersOnly); err != nil {
		return fmt.Errorf("keep the progress: %w", err)
	}
	if err := os.Rename(next, j.file); err != nil {
		return fmt.Errorf("keep the progress: %w", err)
	}
	return nil
}

// done removes the journal: the same command then begins anew.
func (j *journal) done() error {
	if j.file == "" {
		return nil
	}
	if err := os.Remove(j.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove --state: %w", err)
	}
	return nil
}
