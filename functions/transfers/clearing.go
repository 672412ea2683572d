package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/lambdaidem/toolkit/functions/internal/ledger"
)

// clearing is the base URL of the clearing house, an outside service that must approve every
// transfer. It must honor Idempotency-Key for at least as long as this function's records
// live. A clearing can't be undone. Package localstack/clearing implements such a service for
// local runs.
type clearing string

// ruling is the clearing house's decision about a transfer. Exactly one field is set.
type ruling struct {
	ID      string `json:"id"`     // ID of the clearing; empty if the transfer was refused
	Refused string `json:"reason"` // why the transfer was refused, for good; empty if it was cleared
}

// clear asks the clearing house to clear a transfer. After an error, the transfer may have been
// cleared. Call clear again with the same key to find out.
func (c clearing) clear(ctx context.Context, key string, t ledger.Transfer) (ruling, error) {
	body, err := json.Marshal(map[string]any{"transfer": t.ID, "amount": t.Amount, "currency": t.Currency, "reference": t.Reference})
	if err != nil {
		return ruling{}, fmt.Errorf("clear %s: %w", t.ID, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, string(c)+"/clearings", bytes.NewReader(body))
	if err != nil {
		return ruling{}, fmt.Errorf("clear %s: %w", t.ID, err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return ruling{}, fmt.Errorf("clear %s: %w", t.ID, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it is only read
	var said ruling
	err = json.NewDecoder(resp.Body).Decode(&said)
	switch {
	case resp.StatusCode == http.StatusCreated && err == nil && said.ID != "":
		return ruling{ID: said.ID}, nil
	case resp.StatusCode == http.StatusUnprocessableEntity && err == nil && said.Refused != "":
		return ruling{Refused: said.Refused}, nil
	}
	return ruling{}, fmt.Errorf("clear %s: the answer is %s, and no ruling", t.ID, resp.Status)
}
